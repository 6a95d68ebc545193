package extendedstatefulset

import (
	"maps"
	"slices"

	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/owned"
)

// A pod that matches two PodDisruptionBudgets cannot be evicted. Each zone therefore has one budget,
// which selects by the label of the zone's StatefulSets. It selects only serving pods, like Service
// <name>-active: with Coexist, the pods of the new version would count as available and allow the
// eviction of all serving pods.

// budgeted returns the zones that get a budget: the wanted zones, and zones that still have
// StatefulSets. It returns none without spec.podDisruptionBudget.
func (w *world) budgeted() []zone {
	if w.set.Spec.PodDisruptionBudget == nil || w.invalid != "" {
		return nil
	}
	all := slices.Clone(w.zones)
	for _, c := range w.children {
		if !slices.ContainsFunc(all, func(z zone) bool { return z.index == c.zone }) {
			all = append(all, zone{index: c.zone})
		}
	}
	return all
}

// keepBudgets creates the budgets, reverts changes of other clients to the managed fields, and deletes
// budgets that are no longer wanted. It ignores budgets of other owners.
func keepBudgets(f *facts, p *plan) {
	wanted := map[string]bool{}
	for _, z := range f.budgeted() {
		want := buildBudget(f.set, z, servingLabels(f))
		wanted[want.Name] = true
		have := f.budgets[want.Name]
		if have == nil {
			p.Do(action.Chain{{Verb: action.Create, Object: want, Reason: reasonBudget}})
			continue
		}
		next, differs := owned.Budget(have, want)
		switch {
		case !controls(f.set, have):
			p.LookAgain(budgetRetry)
		case have.DeletionTimestamp != nil || !differs:
		default:
			p.Do(action.Chain{{Verb: action.Patch, Object: next, From: have, Unchanged: true, Reason: reasonBudget}})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(f.budgets)) {
		have := f.budgets[name]
		unwanted := !wanted[name] && controls(f.set, have)
		if unwanted && have.DeletionTimestamp == nil {
			p.Do(action.Chain{{Verb: action.Delete, Object: have, Reason: reasonBudget}})
		}
	}
}

// foreignBudget returns the name of a wanted budget that belongs to another owner; "" if there is none.
func (w *world) foreignBudget() string {
	for _, z := range w.budgeted() {
		name := z.stem(w.set.Name)
		if have := w.budgets[name]; have != nil && !controls(w.set, have) {
			return name
		}
	}
	return ""
}
