package extendedstatefulset

import (
	"maps"
	"slices"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/mutant"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
)

// deleteSurplus deletes the pods of ordinals that their StatefulSet no longer has, where its
// controller does not. The controller creates missing pods first: while one is refused, as by
// a quota that the surplus pods use up, it deletes none (kubernetes#140858). It has observed
// the scale-down, so it does not create them again.
func deleteSurplus(w *world, p *plan) {
	for _, c := range w.children {
		observed := c.observed() || mutant.Is("ests-unobserved-surplus") // a pod is deleted that its StatefulSet may still want
		if c.terminating() || !observed || !w.refusesPodsOf(c) {
			continue
		}
		for _, ordinal := range slices.Sorted(maps.Keys(c.pods)) {
			if pod := c.pods[ordinal]; !c.span().has(ordinal) && !podstate.Terminating(pod) {
				p.Do(action.Chain{{Verb: action.Delete, Object: pod, Reason: v1alpha1.EventSurplusDeleted}})
			}
		}
	}
}

// refusesPodsOf reports whether the API server refuses a pod that a StatefulSet lacks.
func (w *world) refusesPodsOf(c *child) bool {
	for name := range w.refusals {
		if c.lacks(name) {
			return true
		}
	}
	return false
}
