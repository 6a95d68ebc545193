package slim

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Limits of the metadata that is kept of an object: bytes of labels, number and total bytes of owner
// references, number of finalizers. The API server does not limit them: each can have 1 MiB. A user who
// can create objects that the operator watches could otherwise fill its memory.
const (
	maxLabels     = 16 << 10
	maxOwners     = 32
	maxOwned      = 16 << 10
	maxFinalizers = 64
)

// Bounded truncates metadata from untrusted users. It keeps only annotations with the given keys. If
// there are too many labels, it removes all of them and returns true, because it is then unknown which
// selectors match. If there are too many owners, it keeps only the controller reference. It removes
// that too if it is too large; a valid reference never is. It keeps the first maxFinalizers
// finalizers.
func Bounded(m *metav1.ObjectMeta, annotations ...string) (crowded bool) {
	m.ManagedFields, m.Annotations = nil, keep(m.Annotations, annotations)
	bytes := 0
	for key, value := range m.Labels {
		bytes += len(key) + len(value)
	}
	if crowded = bytes > maxLabels; crowded {
		m.Labels = nil
	}
	if len(m.OwnerReferences) > maxOwners || ownersBytes(m.OwnerReferences) > maxOwned {
		m.OwnerReferences = slices.DeleteFunc(slices.Clone(m.OwnerReferences), func(o metav1.OwnerReference) bool { return o.Controller == nil || !*o.Controller })
	}
	if ownersBytes(m.OwnerReferences) > maxOwned {
		m.OwnerReferences = nil
	}
	if len(m.Finalizers) > maxFinalizers {
		m.Finalizers = slices.Clone(m.Finalizers[:maxFinalizers])
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
