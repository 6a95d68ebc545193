package rules

import (
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/owned"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/children"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/facts"
)

// keepBudget creates or patches the PodDisruptionBudget for replacement.maxConcurrent and
// onEviction. A budget of that name with another owner is left alone.
func keepBudget(f *facts.Facts, p *Plan) {
	want, have := children.BuildBudget(f.Settings, f.Wanted()), f.Budget
	change := action.Action{Verb: action.Create, Object: want, Reason: facts.ReasonBudget}
	if have != nil {
		if f.ForeignBudget() || have.DeletionTimestamp != nil {
			return
		}
		changed, differs := owned.Budget(have, want)
		if !differs {
			return
		}
		change = action.Action{Verb: action.Patch, Object: changed, From: have, Unchanged: true, Reason: facts.ReasonBudget}
	}
	if f.RefusedNow(facts.ReasonBudget) {
		p.tryLater(f, facts.ReasonBudget)
		return
	}
	p.Then(action.Chain{change})
}
