package observe

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/spec"
)

// readRefusedOwners reads the ReplicaSets and StatefulSets that lack pods and whose pods
// this object selects.
func (r *Reader) readRefusedOwners(ctx context.Context, w *facts.World, key types.NamespacedName) error {
	replicaSets := func() client.ObjectList { return &appsv1.ReplicaSetList{} }
	err := r.pages(ctx, key.Namespace, ownersPerPage, replicaSets, func(page client.ObjectList) {
		sets := page.(*appsv1.ReplicaSetList).Items
		for i := range sets {
			if s := &sets[i]; isRefused(s) && w.LacksPods(&s.Spec.Template, s.Status.Replicas, s.Spec.Replicas) {
				w.RefusedOwners = append(w.RefusedOwners, s.DeepCopy()) // a copy, so that the page can be freed
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
			isNew := w.Now.Sub(s.CreationTimestamp.Time) <= spec.OwnerPatience
			if !isNew && w.LacksPods(&s.Spec.Template, s.Status.Replicas, s.Spec.Replicas) {
				w.RefusedOwners = append(w.RefusedOwners, s.DeepCopy())
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
