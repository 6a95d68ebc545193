package rules

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
)

// deleteSurplus deletes pods on ordinals that their StatefulSet no longer has, if the StatefulSet
// controller does not delete them. The controller creates missing pods first. While the API server
// denies a missing pod, for example because surplus pods use up a quota, the controller deletes none
// (kubernetes#140858). It has observed the scale-down, so it does not recreate them.
func deleteSurplus(f *facts.Facts, p *Plan) {
	for _, c := range f.Children {
		if !cannotDelete(f.World, c) {
			continue
		}
		for _, pod := range surplus(c) {
			p.Do(action.Chain{{Verb: action.Delete, Object: pod, Reason: v1alpha1.EventSurplusDeleted}})
		}
	}
}

// cannotDelete reports whether the StatefulSet controller has observed the latest spec but cannot
// delete surplus pods, because the API server denies a missing pod.
func cannotDelete(w *facts.World, c *facts.Child) bool {
	if c.Terminating() || !c.Observed() {
		return false
	}
	for name := range w.Refusals {
		if c.Lacks(name) {
			return true
		}
	}
	return false
}

// surplus returns the pods on ordinals that a StatefulSet no longer has, sorted by ordinal.
func surplus(c *facts.Child) (all []*corev1.Pod) {
	for _, ordinal := range slices.Sorted(maps.Keys(c.Pods)) {
		if c.Span().Has(ordinal) || podstate.Terminating(c.Pods[ordinal]) {
			continue
		}
		all = append(all, c.Pods[ordinal])
	}
	return all
}
