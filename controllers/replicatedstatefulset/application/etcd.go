package application

import (
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/stateful-operator/stateful-operator/agent/etcd/settings"
	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
)

// Names of the agent's driver, and defaults of etcd.
const (
	etcd     = "etcd" // also the name of the port
	etcdPort = 2379
	etcdUser = 65532 // the upstream image has no user
	etcdData = "/var/lib/etcd"
)

// etcd fills a set of etcd.
func (f *filling) etcd() {
	data := f.data(etcdData)
	f.agent(etcd)
	f.credentials(settings.PasswordKey)
	options := ptr.Deref(f.set.Spec.Application.Etcd, v1alpha1.EtcdPolicy{})
	f.variable(settings.Variable, settings.Config{Common: f.common(data, options.Settings), Service: f.set.MembersServiceName()})
	f.port(etcd, etcdPort)
	f.readiness(etcd)
	f.security(etcdUser)
	f.primaryCommands(etcd)
	f.command(v1alpha1.CommandLeave, []string{agentInPod, etcd, v1alpha1.CommandLeave}, leaveTimeout)
}

// validateEtcd checks what only etcd requires.
func validateEtcd(spec *v1alpha1.ReplicatedStatefulSetSpec, at *field.Path) field.ErrorList {
	options := ptr.Deref(spec.Application.Etcd, v1alpha1.EtcdPolicy{})
	errs := invalidSettings(settings.Problems(options.Settings), at.Child("etcd", "settings"))
	return append(errs, validateAllPrimaries(spec, "etcd elects its leader, and all members are primaries; remove it")...)
}
