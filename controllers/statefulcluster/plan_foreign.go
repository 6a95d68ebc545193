package statefulcluster

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
)

// The budget of a set selects pods by a label. If a pod that is not a member has the label and is Ready,
// the budget allows the eviction of one more member. So the labels are removed from the pod.

// ownPodLabels are the labels that only members have.
var ownPodLabels = []string{v1alpha1.LabelCluster, v1alpha1.LabelClusterUID, v1alpha1.LabelMember}

// maxLabelled is the max number of pods whose labels one pass removes. Later passes handle the rest.
const maxLabelled = 100

// removeLabels removes the labels of members from other pods. An orphan with the claims of a member
// keeps the labels until a user decides whether it is a member.
func removeLabels(f *facts, p *plan) {
	if f.refusedNow(reasonForeign) {
		p.tryLater(f, reasonForeign)
		return
	}
	pods := outsiders(f.world)
	for _, pod := range pods[:min(len(pods), maxLabelled)] {
		p.Do(action.RemoveLabels(pod, ownPodLabels, reasonForeign, "it is not a member"))
	}
}

// outsiders returns the pods that have the labels of members and are not members.
func outsiders(w *world) []*corev1.Pod {
	pods := slices.Clone(w.labelled)
	for _, pod := range w.orphans {
		if !w.orphanIDs[w.idOf(pod.Name)] {
			pods = append(pods, pod)
		}
	}
	return pods
}
