package replicatedstatefulset

import (
	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
)

// Services and PodDisruptionBudgets select pods by labels, and any user who may create pods can set
// these labels. A pod that is not a member but has the primary label would receive client writes, and
// a budget that counts it would allow the eviction of the primary. So the labels are removed from it.

// ownPodLabels are the labels by which Services and budgets select members.
var ownPodLabels = []string{v1alpha1.LabelManaged, v1alpha1.LabelRole, v1alpha1.LabelActive}

// maxForeign is the max number of foreign pods that one pass handles. Later passes handle the rest.
const maxForeign = 100

// removeLabels removes the operator's labels from pods that are not members.
func removeLabels(f *facts, p *plan) {
	if !f.keeps() || f.deleting() {
		return
	}
	for _, pod := range f.foreignPods {
		p.Do(action.RemoveLabels(pod, ownPodLabels, reasonForeign, "it is not a member"))
	}
}
