package replicatedstatefulset

import (
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
)

// Services and PodDisruptionBudgets select pods by labels, and whoever may create pods can write
// these. A pod that is no member, and has the label of a primary, would receive what clients write,
// and a budget that counts it lets the primary be evicted. So the labels are removed from it.

// ownPodLabels are those by which Services and budgets select members.
var ownPodLabels = []string{v1alpha1.LabelManaged, v1alpha1.LabelRole, v1alpha1.LabelActive}

// maxForeign is the max number of foreign pods that a pass looks at. The next pass looks at others.
const maxForeign = 100

// isForeign reports whether a pod with the labels of members, which is none, may lose them. One that
// is being deleted stops being selected by itself, and one with our finalizer was a member.
func isForeign(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && !controllerutil.ContainsFinalizer(pod, v1alpha1.FinalizerMember)
}

// removeLabels removes our labels from pods that are no members.
func removeLabels(f *facts, p *plan) {
	if !f.keeps() || f.deleting() {
		return
	}
	for _, pod := range f.foreignPods {
		next := pod.DeepCopy()
		for _, label := range ownPodLabels {
			delete(next.Labels, label)
		}
		p.Do(action.Chain{{Verb: action.Patch, Object: next, From: pod, Reason: reasonForeign, Detail: "it is no member"}})
	}
}
