package extendedstatefulset

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
)

// strayAge is how old a pod is before it is deleted for want of a claim. As long as
// there is no webhook its successor has none either, so this bounds how often.
const strayAge = 15 * time.Second

// replaceStrays deletes the pods that no webhook saw, as where OLM took it away
// with the operator: they are Pending for a claim that never exists, and the claims
// of a pod cannot be changed. None of them has a node, so none has ever run.
func replaceStrays(w *world, p *plan) {
	for _, c := range w.children {
		for _, ordinal := range slices.Sorted(maps.Keys(c.pods)) {
			pod := c.pods[ordinal]
			if !w.stray(pod) || podstate.Terminating(pod) || podstate.Scheduled(pod) {
				continue
			}
			if wait := pod.CreationTimestamp.Add(strayAge).Sub(w.now); wait > 0 {
				p.LookAgain(wait)
				p.WaitFor("", "pod "+pod.Name+" is replaced, which has no claim because no webhook saw it")
				continue
			}
			p.Do(action.Chain{{Verb: action.Delete, Object: pod, Reason: v1alpha1.EventStrayReplaced}})
		}
	}
}

// stray tells whether a pod of ours waits for the claim that never exists.
func (w *world) stray(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return unassigned(&v, w.set.Name) })
}

// unassigned reports whether a volume is of the claim of that set that never exists.
func unassigned(v *corev1.Volume, set string) bool {
	return v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ClaimName == set+v1alpha1.UnassignedClaim
}
