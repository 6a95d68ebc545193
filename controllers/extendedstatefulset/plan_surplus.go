package extendedstatefulset

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
)

// deleteSurplus deletes pods on ordinals that their StatefulSet no longer has, if the StatefulSet
// controller does not delete them. The controller creates missing pods first. While the API server
// denies a missing pod, for example because surplus pods use up a quota, the controller deletes none
// (kubernetes#140858). It has observed the scale-down, so it does not recreate them.
func deleteSurplus(f *facts, p *plan) {
	for _, c := range f.children {
		if !cannotDelete(f.world, c) {
			continue
		}
		for _, pod := range surplus(c) {
			p.Do(action.Chain{{Verb: action.Delete, Object: pod, Reason: v1alpha1.EventSurplusDeleted}})
		}
	}
}

// cannotDelete reports whether the StatefulSet controller has observed the latest spec but cannot
// delete surplus pods, because the API server denies a missing pod.
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

// surplus returns the pods on ordinals that a StatefulSet no longer has, sorted by ordinal.
func surplus(c *child) (all []*corev1.Pod) {
	for _, ordinal := range slices.Sorted(maps.Keys(c.pods)) {
		if c.span().has(ordinal) || podstate.Terminating(c.pods[ordinal]) {
			continue
		}
		all = append(all, c.pods[ordinal])
	}
	return all
}
