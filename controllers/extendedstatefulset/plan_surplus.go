package extendedstatefulset

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
)

// deleteSurplus deletes the pods of ordinals that their StatefulSet no longer has, where its
// controller does not. The controller creates missing pods first: while one is refused, as by
// a quota that the surplus pods use up, it deletes none (kubernetes#140858). It has observed
// the scale-down, so it does not create them again.
func deleteSurplus(w *world, p *plan) {
	for _, c := range w.children {
		if !cannotDelete(w, c) {
			continue
		}
		for _, pod := range surplus(c) {
			p.Do(action.Chain{{Verb: action.Delete, Object: pod, Reason: v1alpha1.EventSurplusDeleted}})
		}
	}
}

// cannotDelete reports whether the controller of a StatefulSet has observed what it has, and
// cannot delete surplus pods, since the API server refuses one that is missing.
func cannotDelete(w *world, c *child) bool {
	if c.terminating() || !c.observed() {
		return false
	}
	for name := range w.refusals {
		if c.lacks(name) {
			return true
		}
	}
	return false
}

// surplus returns the pods of ordinals that a StatefulSet no longer has, by ordinal.
func surplus(c *child) (all []*corev1.Pod) {
	for _, ordinal := range slices.Sorted(maps.Keys(c.pods)) {
		if c.span().has(ordinal) || podstate.Terminating(c.pods[ordinal]) {
			continue
		}
		all = append(all, c.pods[ordinal])
	}
	return all
}
