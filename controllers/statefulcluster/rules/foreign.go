package rules

import (
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/spec"
)

// The budget of a set selects pods by a label. If a pod that is not a member has the label and is Ready,
// the budget allows the eviction of one more member. So the labels are removed from the pod.

// removeLabels removes the labels of members from other pods. An orphan with the claims of a member
// keeps the labels until a user decides whether it is a member.
func removeLabels(f *facts.Facts, p *Plan) {
	if f.RefusedNow(facts.ReasonForeign) {
		p.tryLater(f, facts.ReasonForeign)
		return
	}
	pods := facts.Outsiders(f.World)
	for _, pod := range pods[:min(len(pods), facts.MaxLabelled)] {
		p.Do(action.RemoveLabels(pod, spec.OwnPodLabels, facts.ReasonForeign, "it is not a member"))
	}
}
