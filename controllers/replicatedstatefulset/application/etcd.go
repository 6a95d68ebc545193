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

// allArePrimaries is why a field of sets with one primary is refused.
const allArePrimaries = "etcd elects its leader, and all members are primaries; remove it"

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
	for name, timeout := range map[string]v1alpha1.Duration{
		v1alpha1.CommandStatus: statusTimeout, v1alpha1.CommandSequence: commandTimeout, v1alpha1.CommandSeed: commandTimeout,
		v1alpha1.CommandPrimary: commandTimeout, v1alpha1.CommandStop: commandTimeout, v1alpha1.CommandLeave: leaveTimeout,
	} {
		f.command(name, []string{agentInPod, etcd, name}, timeout)
	}
}

// validateEtcd checks what only etcd requires.
func validateEtcd(spec *v1alpha1.ReplicatedStatefulSetSpec, at *field.Path) field.ErrorList {
	options := ptr.Deref(spec.Application.Etcd, v1alpha1.EtcdPolicy{})
	errs := invalidSettings(settings.Problems(options.Settings), at.Child("etcd", "settings"))
	if p := spec.Primaries; p != nil && spec.Replicas != nil && *p < *spec.Replicas {
		errs = append(errs, field.Invalid(field.NewPath("spec", "primaries"), *p, allArePrimaries))
	}
	for _, name := range []string{v1alpha1.CommandSecondary, v1alpha1.CommandPromote, v1alpha1.CommandDemote} {
		if _, isSet := spec.Pod.Commands[name]; isSet {
			errs = append(errs, field.Forbidden(field.NewPath("spec", "pod", "commands").Key(name), allArePrimaries))
		}
	}
	if spec.Seeding == v1alpha1.SeedingQuorum {
		errs = append(errs, field.Forbidden(field.NewPath("spec", "seeding"), "a majority of new volumes would create a second cluster of etcd while the first one has data; remove it"))
	}
	if spec.TLS != nil {
		errs = append(errs, field.Forbidden(field.NewPath("spec", "TLS"), "type Etcd does not support TLS yet; remove it, and restrict the network"))
	}
	return errs
}
