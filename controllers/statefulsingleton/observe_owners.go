package statefulsingleton

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// readRefusedOwners reads the ReplicaSets and StatefulSets that lack pods which
// this object selects.
func (r *Reconciler) readRefusedOwners(ctx context.Context, w *world, key types.NamespacedName) error {
	lacks := func(template *corev1.PodTemplateSpec, have int32, want *int32) bool {
		return have < ptr.Deref(want, 1) && selects(w.object, labelsOf(template))
	}
	replicaSets := func() client.ObjectList { return &appsv1.ReplicaSetList{} }
	err := r.pages(ctx, key.Namespace, ownersPerPage, replicaSets, func(page client.ObjectList) {
		sets := page.(*appsv1.ReplicaSetList).Items
		for i := range sets {
			refused := slices.ContainsFunc(sets[i].Status.Conditions, func(c appsv1.ReplicaSetCondition) bool {
				return c.Type == appsv1.ReplicaSetReplicaFailure && c.Status == corev1.ConditionTrue
			})
			if refused && lacks(&sets[i].Spec.Template, sets[i].Status.Replicas, sets[i].Spec.Replicas) {
				w.refusedOwners = append(w.refusedOwners, sets[i].DeepCopy()) // without the page
			}
		}
	})
	if err != nil {
		return fmt.Errorf("list ReplicaSets: %w", err)
	}
	statefulSets := func() client.ObjectList { return &appsv1.StatefulSetList{} }
	err = r.pages(ctx, key.Namespace, ownersPerPage, statefulSets, func(page client.ObjectList) {
		sets := page.(*appsv1.StatefulSetList).Items
		for i := range sets {
			if s := &sets[i]; lacks(&s.Spec.Template, s.Status.Replicas, s.Spec.Replicas) && w.now.Sub(s.CreationTimestamp.Time) > ownerPatience {
				w.refusedOwners = append(w.refusedOwners, s.DeepCopy())
			}
		}
	})
	if err != nil {
		return fmt.Errorf("list StatefulSets: %w", err)
	}
	return nil
}
