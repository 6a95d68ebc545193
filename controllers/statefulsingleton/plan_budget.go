package statefulsingleton

import (
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/owned"
)

// keepBudget maintains the PodDisruptionBudget that protects the holder from eviction. It
// deletes the budget if no successor can be created first, because then the budget would
// only block drains.
func keepBudget(f *facts, p *plan) {
	if f.object == nil {
		return
	}
	wanted := f.wantsBudget()
	switch {
	case f.budget == nil && wanted:
		p.Do(action.Chain{{
			Verb:   action.Create,
			Object: buildBudget(f.object),
			Reason: reasonBudget,
		}})
	case f.budget == nil, !f.ownsBudget(), f.budget.DeletionTimestamp != nil:
	case !wanted:
		p.Do(action.Chain{{
			Verb:   action.Delete,
			Object: f.budget,
			Reason: reasonBudget,
		}})
	default:
		if mended := f.mendedBudget(); mended != nil {
			p.Do(action.Chain{{
				Verb:      action.Patch,
				Object:    mended,
				From:      f.budget,
				Unchanged: true,
				Reason:    reasonBudget,
			}})
		}
	}
}

// wantsBudget reports whether the object should have a budget. The present state is kept
// while no live pod is granted, or while the active pod has no controller because it is
// being returned to its ReplicaSet.
func (f *facts) wantsBudget() bool {
	if !f.replacesFirst() {
		return false
	}
	m := f.active
	switch {
	case m == nil,
		!m.lives(),
		!m.granted(),
		metav1.GetControllerOf(m.pod) == nil:
		return f.budget != nil
	}
	return f.whyNoSuccessor(m) == ""
}

// ownsBudget reports whether the existing budget belongs to this object.
func (f *facts) ownsBudget() bool {
	return owned.By(f.budget, f.object, v1.GroupVersion.WithKind("StatefulSingleton"))
}

// mendedBudget returns the corrected budget; nil if it is correct.
func (f *facts) mendedBudget() *policyv1.PodDisruptionBudget {
	mended, differs := owned.Budget(f.budget, buildBudget(f.object))
	if !differs {
		return nil
	}
	return mended
}
