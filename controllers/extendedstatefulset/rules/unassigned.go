package rules

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/spec"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
)

// replaceUnassigned deletes pods that were created without the webhook, for example after OLM removed
// it with the operator. They are Pending because of a claim that never exists, and the claims of a pod
// cannot be changed. None of them has a Node, so none has ever run.
func replaceUnassigned(f *facts.Facts, p *Plan) {
	for _, c := range f.Children {
		for _, ordinal := range slices.Sorted(maps.Keys(c.Pods)) {
			pod := c.Pods[ordinal]
			if !lacksClaim(pod, f.Set.Name) || podstate.Terminating(pod) || podstate.Scheduled(pod) {
				continue
			}
			if wait := pod.CreationTimestamp.Add(spec.UnassignedAge).Sub(f.Now); wait > 0 {
				p.LookAgain(wait)
				p.waitFor("pod " + pod.Name + " is replaced: it has no claim because the webhook was unavailable when it was created")
				continue
			}
			p.Do(action.Chain{{Verb: action.Delete, Object: pod, Reason: v1alpha1.EventStrayReplaced}})
		}
	}
}

// lacksClaim reports whether a pod of a set waits for the claim that never exists.
func lacksClaim(pod *corev1.Pod, set string) bool {
	return slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return unassigned(&v, set) })
}

// unassigned reports whether a volume uses the claim of the set that never exists.
func unassigned(v *corev1.Volume, set string) bool {
	return v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ClaimName == set+v1alpha1.UnassignedClaim
}
