package slim

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// mostLabels is how many bytes of labels are kept of an object, mostOwners how many owners
// and mostOwned how many bytes of them, and mostFinalizers how many finalizers. The API
// server bounds none of them: one object may have 1 MiB of each, and who may make objects
// that the operator watches could fill its memory with them.
const (
	mostLabels     = 16 << 10
	mostOwners     = 32
	mostOwned      = 16 << 10
	mostFinalizers = 64
)

// Bounded cuts metadata that anybody may have written. Of annotations those keys stay.
// Labels that are too many are all dropped, and crowded is true: nobody knows then which
// selectors they match. Of owners that are too many the controller stays, unless it is too
// long itself: no object has such a name. Of finalizers the first stay.
func Bounded(m *metav1.ObjectMeta, annotations ...string) (crowded bool) {
	m.ManagedFields, m.Annotations = nil, keep(m.Annotations, annotations)
	bytes := 0
	for key, value := range m.Labels {
		bytes += len(key) + len(value)
	}
	if crowded = bytes > mostLabels; crowded {
		m.Labels = nil
	}
	if len(m.OwnerReferences) > mostOwners || ownersBytes(m.OwnerReferences) > mostOwned {
		m.OwnerReferences = slices.DeleteFunc(slices.Clone(m.OwnerReferences), func(o metav1.OwnerReference) bool { return o.Controller == nil || !*o.Controller })
	}
	if ownersBytes(m.OwnerReferences) > mostOwned {
		m.OwnerReferences = nil
	}
	if len(m.Finalizers) > mostFinalizers {
		m.Finalizers = slices.Clone(m.Finalizers[:mostFinalizers])
	}
	return crowded
}

func ownersBytes(owners []metav1.OwnerReference) int {
	bytes := 0
	for _, o := range owners {
		bytes += len(o.APIVersion) + len(o.Kind) + len(o.Name) + len(o.UID)
	}
	return bytes
}
