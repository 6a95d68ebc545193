package facts

import (
	"slices"

	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/children"
)

// Budgeted returns the zones that get a budget: the wanted zones, and zones that still have
// StatefulSets. It returns none without spec.podDisruptionBudget.
func (w *World) Budgeted() []children.Zone {
	if w.Set.Spec.PodDisruptionBudget == nil || w.Invalid != "" {
		return nil
	}
	all := slices.Clone(w.Zones)
	for _, c := range w.Children {
		if !slices.ContainsFunc(all, func(z children.Zone) bool { return z.Index == c.Zone }) {
			all = append(all, children.Zone{Index: c.Zone})
		}
	}
	return all
}

// ForeignBudget returns the name of a wanted budget that belongs to another owner; "" if there is none.
func (w *World) ForeignBudget() string {
	for _, z := range w.Budgeted() {
		name := z.Stem(w.Set.Name)
		if have := w.Budgets[name]; have != nil && !children.Controls(w.Set, have) {
			return name
		}
	}
	return ""
}
