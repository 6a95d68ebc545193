package statefulcluster

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/mutant"
)

// The budget of a set selects pods by a label, and whoever may create pods can write it. A pod that
// has it and is no member lets one member more be evicted while it is Ready. So the labels are
// removed from it.

// ownPodLabels are those that the operator writes on members alone.
var ownPodLabels = []string{v1alpha1.LabelCluster, v1alpha1.LabelClusterUID, v1alpha1.LabelMember}

// maxLabelled is the max number of such pods that a pass changes. The next pass changes others.
const maxLabelled = 100

// removeLabels removes our labels from pods that are no members. An orphan that has the claims of a
// member keeps them: a person decides whose it is.
func removeLabels(f *facts, p *plan) {
	if mutant.Is("stc-label-opens-budget") { // Mutant: a label makes a pod part of the budget.
		return
	}
	if f.refusedNow(reasonForeign) {
		p.tryLater(f, reasonForeign)
		return
	}
	pods := slices.Clone(f.labelled)
	for _, pod := range f.orphans {
		if !f.orphanIDs[f.idOf(pod.Name)] {
			pods = append(pods, pod)
		}
	}
	for _, pod := range pods[:min(len(pods), maxLabelled)] {
		p.Do(action.Chain{{Verb: action.Patch, Object: withoutOwnLabels(pod), From: pod, Reason: reasonForeign, Detail: "it is no member"}})
	}
}

// withoutOwnLabels returns a pod without our labels.
func withoutOwnLabels(pod *corev1.Pod) *corev1.Pod {
	next := pod.DeepCopy()
	for _, label := range ownPodLabels {
		delete(next.Labels, label)
	}
	return next
}
