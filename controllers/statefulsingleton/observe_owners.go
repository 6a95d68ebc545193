package statefulsingleton

import (
	"context"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ownerPatience is how old a StatefulSet is before it counts as hindered: it
// does not say what was refused, and a new one lacks its pods for a moment.
const ownerPatience = 10 * time.Second

// readRefusedOwners reads the ReplicaSets and StatefulSets that lack pods which
// this object selects.
func (r *Reconciler) readRefusedOwners(ctx context.Context, w *world, key types.NamespacedName) error {
	var sets appsv1.ReplicaSetList
	if err := r.Live.List(ctx, &sets, client.InNamespace(key.Namespace)); err != nil {
		return fmt.Errorf("list ReplicaSets: %w", err)
	}
	lacks := func(template *corev1.PodTemplateSpec, have int32, want *int32) bool {
		return have < ptr.Deref(want, 1) && selectorOf(w.object).Matches(labelsOf(template))
	}
	for i := range sets.Items {
		s := &sets.Items[i]
		refused := slices.ContainsFunc(s.Status.Conditions, func(c appsv1.ReplicaSetCondition) bool {
			return c.Type == appsv1.ReplicaSetReplicaFailure && c.Status == corev1.ConditionTrue
		})
		if refused && lacks(&s.Spec.Template, s.Status.Replicas, s.Spec.Replicas) {
			w.refusedOwners = append(w.refusedOwners, s)
		}
	}
	var stateful appsv1.StatefulSetList
	if err := r.Live.List(ctx, &stateful, client.InNamespace(key.Namespace)); err != nil {
		return fmt.Errorf("list StatefulSets: %w", err)
	}
	for i := range stateful.Items {
		if s := &stateful.Items[i]; lacks(&s.Spec.Template, s.Status.Replicas, s.Spec.Replicas) && w.now.Sub(s.CreationTimestamp.Time) > ownerPatience {
			w.refusedOwners = append(w.refusedOwners, s)
		}
	}
	return nil
}
