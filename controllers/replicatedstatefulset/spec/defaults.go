package spec

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/application"
)

// WithDefaults sets the schema's defaults, for objects that were stored without them, the fields that
// spec.application fills, and the default port of Services.
func WithDefaults(set *v1alpha1.ReplicatedStatefulSet) *v1alpha1.ReplicatedStatefulSet {
	set = set.DeepCopy()
	application.Fill(set)
	spec := &set.Spec
	spec.Replicas = ptr.To(ptr.Deref(spec.Replicas, 3))
	spec.FailureThreshold = ptr.To(ptr.Deref(spec.FailureThreshold, 2))
	spec.Pod.TerminationGracePeriodSeconds = ptr.To(ptr.Deref(
		spec.Pod.TerminationGracePeriodSeconds,
		600,
	))
	if spec.Seeding == "" {
		spec.Seeding = v1alpha1.SeedingAll
	}
	if spec.EvictionPolicy == "" {
		spec.EvictionPolicy = v1alpha1.EvictionHandover
	}
	if len(spec.ServicePorts) == 0 { // the API server rejects a Service with a cluster IP and no port
		spec.ServicePorts = []corev1.ServicePort{{
			Name:       "dummy",
			Protocol:   corev1.ProtocolTCP,
			Port:       12345,
			TargetPort: intstr.FromString("dummy"),
		}}
	}
	return set
}
