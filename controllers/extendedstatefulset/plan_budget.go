package extendedstatefulset

import (
	"maps"
	"slices"

	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/owned"
)

// An evicted pod may match one PodDisruptionBudget only. Each zone has one, and it selects
// by the label of the zone's StatefulSets. Of a zone it selects the pods that serve, as
// Service <name>-active does: with Coexist the pods of a version that is on its way would
// count as available, and let all that serve be evicted.

// budgeted are the zones that get a budget: those that are wanted, and those that still
// have StatefulSets. None without spec.podDisruptionBudget.
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

// keepBudgets makes the budgets, puts back what others changed in what they say, and deletes
// those that are not wanted any more. One that is not ours is left alone.
func keepBudgets(w *world, p *plan) {
	wanted := map[string]bool{}
	for _, z := range w.budgeted() {
		want := buildBudget(w.set, z, w.traffic().serves())
		wanted[want.Name] = true
		have := w.budgets[want.Name]
		if have == nil {
			p.Do(action.Chain{{Verb: action.Create, Object: want, Reason: reasonBudget}})
			continue
		}
		next, differs := owned.Budget(have, want)
		switch {
		case !controls(w.set, have):
			p.LookAgain(budgetRetry)
		case have.DeletionTimestamp != nil || !differs:
		default:
			p.Do(action.Chain{{Verb: action.Patch, Object: next, From: have, Unchanged: true, Reason: reasonBudget}})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(w.budgets)) {
		have := w.budgets[name]
		unwanted := !wanted[name] && controls(w.set, have)
		if unwanted && have.DeletionTimestamp == nil {
			p.Do(action.Chain{{Verb: action.Delete, Object: have, Reason: reasonBudget}})
		}
	}
}

// foreignBudget is one that has the name of ours and belongs to another owner; "" if there
// is none.
func (w *world) foreignBudget() string {
	for _, z := range w.budgeted() {
		name := z.stem(w.set.Name)
		if have := w.budgets[name]; have != nil && !controls(w.set, have) {
			return name
		}
	}
	return ""
}
