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

// readRefusedOwners reads the ReplicaSets and StatefulSets that lack pods and whose pods
// this object selects.
func (r *reader) readRefusedOwners(ctx context.Context, w *world, key types.NamespacedName) error {
	replicaSets := func() client.ObjectList { return &appsv1.ReplicaSetList{} }
	err := r.pages(ctx, key.Namespace, ownersPerPage, replicaSets, func(page client.ObjectList) {
		sets := page.(*appsv1.ReplicaSetList).Items
		for i := range sets {
			if s := &sets[i]; isRefused(s) && w.lacksPods(&s.Spec.Template, s.Status.Replicas, s.Spec.Replicas) {
				w.refusedOwners = append(w.refusedOwners, s.DeepCopy()) // a copy, so that the page can be freed
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
			s := &sets[i]
			isNew := w.now.Sub(s.CreationTimestamp.Time) <= ownerPatience
			if !isNew && w.lacksPods(&s.Spec.Template, s.Status.Replicas, s.Spec.Replicas) {
				w.refusedOwners = append(w.refusedOwners, s.DeepCopy())
			}
		}
	})
	if err != nil {
		return fmt.Errorf("list StatefulSets: %w", err)
	}
	return nil
}

// isRefused reports whether the API server refused a pod of the ReplicaSet.
func isRefused(set *appsv1.ReplicaSet) bool {
	return slices.ContainsFunc(set.Status.Conditions, func(c appsv1.ReplicaSetCondition) bool {
		return c.Type == appsv1.ReplicaSetReplicaFailure && c.Status == corev1.ConditionTrue
	})
}

// lacksPods reports whether an owner has fewer pods than it wants, and this object selects
// its pods.
func (w *world) lacksPods(template *corev1.PodTemplateSpec, have int32, want *int32) bool {
	return have < ptr.Deref(want, 1) && selects(w.object, labelsOf(template))
}
