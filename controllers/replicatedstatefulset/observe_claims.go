package replicatedstatefulset

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/engine"
)

// claimsOf lists the claims with the labels of a set.
func claimsOf(ctx context.Context, from client.Reader, set *v1alpha1.ReplicatedStatefulSet) ([]corev1.PersistentVolumeClaim, error) {
	var list corev1.PersistentVolumeClaimList
	if err := from.List(ctx, &list, client.InNamespace(set.Namespace), client.MatchingLabels(ownLabels(set))); err != nil {
		return nil, fmt.Errorf("list claims: %w", err)
	}
	return list.Items, nil
}

// readLeftClaims reads the claims of a set that is being deleted with its claims, after its last
// pod is gone. The StatefulSet controller created the claims with our labels.
func (r *reader) readLeftClaims(ctx context.Context, w *world, from engine.View) error {
	if !from.Live || w.invalid != "" || len(w.members) > 0 || !deletesAllClaims(w) {
		return nil
	}
	claims, err := claimsOf(ctx, from, w.set)
	if err != nil {
		return err
	}
	for i := range claims {
		w.leftClaims = append(w.leftClaims, &claims[i])
	}
	return nil
}

// readCopies counts the members that have claims, for a stopped set whose former number of members
// is unknown.
func (r *reader) readCopies(ctx context.Context, w *world, from engine.View) error {
	if !isUnknownStop(w) {
		return nil
	}
	claims, err := claimsOf(ctx, from, w.set)
	if err != nil {
		return err
	}
	w.copies = copiesIn(w, claims)
	return nil
}

// readClaims reads the claims of the members of a set whose claim templates differ from those of
// its StatefulSet. A claim that is older than its member, such as a restored one, may lack our
// labels. It is found by its name.
func (r *reader) readClaims(ctx context.Context, w *world) error {
	adjusting := w.adjusting()
	if w.invalid != "" || len(adjusting) == 0 {
		return nil
	}
	labelled, err := claimsOf(ctx, r.Cache, w.set)
	if err != nil {
		return err
	}
	w.claims = map[string]*corev1.PersistentVolumeClaim{}
	for i := range labelled {
		w.claims[labelled[i].Name] = &labelled[i]
	}
	missing := 0
	for _, m := range w.members {
		for _, t := range adjusting {
			name := claimOf(&t, m)
			if w.claims[name] != nil || missing == maxLookups {
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
