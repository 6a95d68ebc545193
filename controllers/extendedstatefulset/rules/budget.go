package rules

import (
	"maps"
	"slices"

	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/children"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/spec"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/owned"
)

// A pod that matches two PodDisruptionBudgets cannot be evicted. Each zone therefore has one budget,
// which selects by the label of the zone's StatefulSets. It selects only serving pods, like Service
// <name>-active: with Coexist, the pods of the new version would count as available and allow the
// eviction of all serving pods.

// keepBudgets creates the budgets, reverts changes of other clients to the managed fields, and deletes
// budgets that are no longer wanted. It ignores budgets of other owners.
func keepBudgets(f *facts.Facts, p *Plan) {
	wanted := map[string]bool{}
	for _, z := range f.Budgeted() {
		want := children.BuildBudget(f.Set, z, ServingLabels(f))
		wanted[want.Name] = true
		have := f.Budgets[want.Name]
		if have == nil {
			p.Do(action.Chain{{Verb: action.Create, Object: want, Reason: reasonBudget}})
			continue
		}
		next, differs := owned.Budget(have, want)
		switch {
		case !children.Controls(f.Set, have):
			p.LookAgain(spec.BudgetRetry)
		case have.DeletionTimestamp != nil || !differs:
		default:
			p.Do(action.Chain{{Verb: action.Patch, Object: next, From: have, Unchanged: true, Reason: reasonBudget}})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(f.Budgets)) {
		have := f.Budgets[name]
		unwanted := !wanted[name] && children.Controls(f.Set, have)
		if unwanted && have.DeletionTimestamp == nil {
			p.Do(action.Chain{{Verb: action.Delete, Object: have, Reason: reasonBudget}})
		}
	}
}
