package extendedstatefulset

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
)

// The Services and budgets of an ExtendedStatefulSet select pods by labels, and any user who may
// create pods can set labels. A pod that belongs to no version would receive client traffic, so the
// operator removes the labels from it.

// ownPodLabels are the labels that Services and budgets select by.
var ownPodLabels = []string{v1alpha1.LabelSet, v1alpha1.LabelVersion, v1alpha1.LabelStatefulSet, v1alpha1.LabelPodActive}

// maxForeign is the max number of foreign pods that one pass handles. Later passes handle the rest.
const maxForeign = 100

// foreignPod is a pod that belongs to no version, with the labels to remove.
type foreignPod struct {
	pod    *corev1.Pod
	labels []string
}

// foreignLabels returns the operator's labels to remove from a pod. isNamed reports whether the pod has
// the name of a version's pod, and mayBeOurs whether it may belong to that version. For example, its
// StatefulSet may adopt an orphaned pod. A pod without such a name loses all labels. A pod with such a
// name may use the claims of its ordinal; it keeps LabelSet so that the operator still finds it.
func foreignLabels(pod *corev1.Pod, isNamed, mayBeOurs bool) []string {
	if pod.DeletionTimestamp != nil || mayBeOurs {
		return nil
	}
	kept := ""
	if isNamed {
		kept = v1alpha1.LabelSet
	}
	return slices.DeleteFunc(slices.Clone(ownPodLabels), func(label string) bool {
		_, has := pod.Labels[label]
		return !has || label == kept
	})
}

// removeLabels removes the operator's labels from pods that belong to no version.
func removeLabels(f *facts, p *plan) {
	for _, pod := range f.foreignPods {
		p.Do(action.RemoveLabels(pod.pod, pod.labels, v1alpha1.EventForeignPod, "it belongs to no version"))
	}
}
