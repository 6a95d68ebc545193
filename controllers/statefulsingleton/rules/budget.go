package rules

import (
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/owned"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/children"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/facts"
)

// keepBudget maintains the PodDisruptionBudget that protects the holder from eviction. It
// deletes the budget if no successor can be created first, because then the budget would
// only block drains.
func keepBudget(f *facts.Facts, p *Plan) {
	if f.Object == nil {
		return
	}
	wanted := wantsBudget(f)
	switch {
	case f.Budget == nil && wanted:
		p.Do(action.Chain{{
			Verb:   action.Create,
			Object: children.BuildBudget(f.Object),
			Reason: ReasonBudget,
		}})
	case f.Budget == nil, !f.OwnsBudget(), f.Budget.DeletionTimestamp != nil:
	case !wanted:
		p.Do(action.Chain{{
			Verb:   action.Delete,
			Object: f.Budget,
			Reason: ReasonBudget,
		}})
	default:
		if mended := mendedBudget(f); mended != nil {
			p.Do(action.Chain{{
				Verb:      action.Patch,
				Object:    mended,
				From:      f.Budget,
				Unchanged: true,
				Reason:    ReasonBudget,
			}})
		}
	}
}

// wantsBudget reports whether the object should have a budget. The present state is kept
// while no live pod is granted, or while the active pod has no controller because it is
// being returned to its ReplicaSet.
func wantsBudget(f *facts.Facts) bool {
	if !f.ReplacesFirst() {
		return false
	}
	m := f.Active
	switch {
	case m == nil,
		!m.Lives(),
		!m.HasTurn(),
		metav1.GetControllerOf(m.Pod) == nil:
		return f.Budget != nil
	}
	return f.WhyNoSuccessor(m) == ""
}

// mendedBudget returns the corrected budget; nil if it is correct.
func mendedBudget(f *facts.Facts) *policyv1.PodDisruptionBudget {
	mended, differs := owned.Budget(f.Budget, children.BuildBudget(f.Object))
	if !differs {
		return nil
	}
	return mended
}
