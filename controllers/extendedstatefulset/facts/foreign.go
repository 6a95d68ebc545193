package facts

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/children"
)

// MaxForeign is the max number of foreign pods that one pass handles. Later passes handle the rest.
const MaxForeign = 100

// ForeignPod is a pod that belongs to no version, with the labels to remove.
type ForeignPod struct {
	Pod    *corev1.Pod
	Labels []string
}

// ForeignLabels returns the operator's labels to remove from a pod. isNamed reports whether the pod has
// the name of a version's pod, and mayBeOurs whether it may belong to that version. For example, its
// StatefulSet may adopt an orphaned pod. A pod without such a name loses all labels. A pod with such a
// name may use the claims of its ordinal; it keeps LabelSet so that the operator still finds it.
func ForeignLabels(pod *corev1.Pod, isNamed, mayBeOurs bool) []string {
	if pod.DeletionTimestamp != nil || mayBeOurs {
		return nil
	}
	kept := ""
	if isNamed {
		kept = v1alpha1.LabelSet
	}
	return slices.DeleteFunc(slices.Clone(children.OwnPodLabels), func(label string) bool {
		_, has := pod.Labels[label]
		return !has || label == kept
	})
}
