package replicatedstatefulset

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// readClaims reads the claims of the members of a set that asks for more storage than its
// StatefulSet gives to new ones. A claim that was there before its member, such as one that
// somebody restored, may lack our labels, and is found by its name.
func (r *Reconciler) readClaims(ctx context.Context, w *world) error {
	growing := w.growing()
	if w.invalid != "" || len(growing) == 0 {
		return nil
	}
	var list corev1.PersistentVolumeClaimList
	if err := r.Cache.List(ctx, &list, client.InNamespace(w.set.Namespace), client.MatchingLabels(ownLabels(w.set))); err != nil {
		return fmt.Errorf("list claims: %w", err)
	}
	w.claims = map[string]*corev1.PersistentVolumeClaim{}
	for i := range list.Items {
		w.claims[list.Items[i].Name] = &list.Items[i]
	}
	missing := 0
	for _, m := range w.members {
		for _, t := range growing {
			name := claimOf(&t, m)
			if w.claims[name] != nil || missing == mostLookups {
				continue
			}
			missing++
			found, err := find[corev1.PersistentVolumeClaim](ctx, r.Live, types.NamespacedName{Namespace: w.set.Namespace, Name: name})
			if err != nil {
				return err
			}
			if found != nil {
				w.claims[name] = found
			}
		}
	}
	return nil
}
