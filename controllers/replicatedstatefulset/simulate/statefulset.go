package simulate

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stateful-operator/stateful-operator/controllers/internal/owned"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation/objects"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/spec"
)

// controllerMoves returns the possible next steps of the StatefulSet controller.
func (s *Simulation) controllerMoves(set *appsv1.StatefulSet) []func() {
	return simulation.Steps(s.sets.Moves(set))
}

// claimsOf returns the keys of the claims that a pod mounts.
func claimsOf(p *corev1.Pod) (keys []objects.Key) {
	for _, v := range p.Spec.Volumes {
		if claim := v.PersistentVolumeClaim; claim != nil {
			keys = append(keys, objects.Key{Kind: "PersistentVolumeClaim", Namespace: p.Namespace, Name: claim.ClaimName})
		}
	}
	return keys
}

// collected are the kinds of children that the garbage collector deletes. Stories do not contain the others.
var collected = []string{"ControllerRevision", "PersistentVolumeClaim", "Pod", "StatefulSet"}

// garbage returns the garbage collector's steps.
func (s *Simulation) garbage() []func() {
	return simulation.Steps(simulation.Collector{Text: "is garbage-collected", IsRead: s.isRead, Collects: func(obj client.Object) bool {
		return slices.Contains(collected, objects.KindOf(obj))
	}}.Moves(s.Cluster))
}

// isRead reports whether an owner is in the cluster if it exists: the set, or its StatefulSet.
func (s *Simulation) isRead(owner metav1.OwnerReference) bool {
	if owned.IsStatefulSet(&owner, spec.StatefulSetName(named(s.Key))) {
		return true
	}
	return owner.Kind == objects.KindOf(Kind{}.New()) && owner.Name == s.Key.Name
}
