package observe

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/engine"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/spec"
)

// claimsOf lists the claims with the labels of a set.
func claimsOf(ctx context.Context, from client.Reader, set *v1alpha1.ReplicatedStatefulSet) ([]corev1.PersistentVolumeClaim, error) {
	var list corev1.PersistentVolumeClaimList
	if err := from.List(ctx, &list, client.InNamespace(set.Namespace), client.MatchingLabels(spec.OwnLabels(set))); err != nil {
		return nil, fmt.Errorf("list claims: %w", err)
	}
	return list.Items, nil
}

// readLeftClaims reads the claims of a set that is being deleted with its claims, after its last
// pod is gone. The StatefulSet controller created the claims with our labels.
func (r *Reader) readLeftClaims(ctx context.Context, w *facts.World, from engine.View) error {
	if !from.Live || w.Invalid != "" || len(w.Members) > 0 || !facts.DeletesAllClaims(w) {
		return nil
	}
	claims, err := claimsOf(ctx, from, w.Set)
	if err != nil {
		return err
	}
	for i := range claims {
		w.LeftClaims = append(w.LeftClaims, &claims[i])
	}
	return nil
}

// readCopies counts the members that have claims, for a stopped set whose former number of members
// is unknown.
func (r *Reader) readCopies(ctx context.Context, w *facts.World, from engine.View) error {
	if !facts.FormerSizeIsUnknown(w) {
		return nil
	}
	claims, err := claimsOf(ctx, from, w.Set)
	if err != nil {
		return err
	}
	w.MembersWithClaims = facts.CopiesIn(w, claims)
	return nil
}

// readClaims reads the claims of the members of a set whose claim templates differ from those of
// its StatefulSet. A claim that is older than its member, such as a restored one, may lack our
// labels. It is found by its name.
func (r *Reader) readClaims(ctx context.Context, w *facts.World) error {
	adjusting := w.Adjusting()
	if w.Invalid != "" || len(adjusting) == 0 {
		return nil
	}
	labelled, err := claimsOf(ctx, r.Cache, w.Set)
	if err != nil {
		return err
	}
	w.Claims = map[string]*corev1.PersistentVolumeClaim{}
	for i := range labelled {
		w.Claims[labelled[i].Name] = &labelled[i]
	}
	missing := 0
	for _, m := range w.Members {
		for _, t := range adjusting {
			name := facts.ClaimOf(&t, m)
			if w.Claims[name] != nil || missing == MaxLookups {
				continue
			}
			missing++
			found, err := Find[corev1.PersistentVolumeClaim](ctx, r.Live, types.NamespacedName{Namespace: w.Set.Namespace, Name: name})
			if err != nil {
				return err
			}
			if found != nil {
				w.Claims[name] = found
			}
		}
	}
	return nil
}
