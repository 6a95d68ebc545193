package replicatedstatefulset

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stateful-operator/stateful-operator/controllers/internal/engine"
)

// readLeftClaims reads the claims of a set that is being deleted, and whose claims go with it,
// when its last pod is gone. The StatefulSet gave them our labels when it made them.
func (r *Reconciler) readLeftClaims(ctx context.Context, w *world, from engine.View) error {
	if !from.Live || w.invalid != "" || len(w.members) > 0 || !(leftovers{w}).deletesAll() {
		return nil
	}
	var list corev1.PersistentVolumeClaimList
	if err := from.List(ctx, &list, client.InNamespace(w.set.Namespace), client.MatchingLabels(ownLabels(w.set))); err != nil {
		return fmt.Errorf("list claims: %w", err)
	}
	for i := range list.Items {
		w.leftClaims = append(w.leftClaims, &list.Items[i])
	}
	return nil
}

// readCopies counts the members whose claims are there, for a set that is stopped and does not
// know how many it had.
func (r *Reconciler) readCopies(ctx context.Context, w *world, from engine.View) error {
	if !(restore{w}).isUnknownStop() {
		return nil
	}
	var list corev1.PersistentVolumeClaimList
	if err := from.List(ctx, &list, client.InNamespace(w.set.Namespace), client.MatchingLabels(ownLabels(w.set))); err != nil {
		return fmt.Errorf("list claims: %w", err)
	}
	w.copies = restore{w}.copiesIn(list.Items)
	return nil
}

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
