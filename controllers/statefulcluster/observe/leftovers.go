package observe

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/engine"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/spec"
)

// readUnlabelled finds pods with the selector's labels but without the operator's label. Those
// controlled by the set are still members, although the cache no longer has them. The others are
// foreign.
func (r *Reader) readUnlabelled(ctx context.Context, w *facts.World, from engine.View) ([]*corev1.Pod, error) {
	selector, err := metav1.LabelSelectorAsSelector(w.Set.Spec.Selector)
	if err != nil || w.Invalid != "" {
		return nil, nil //nolint:nilerr // the spec is invalid, which w.Invalid reports
	}
	other, err := labels.NewRequirement(v1alpha1.LabelClusterUID, selection.NotIn, []string{string(w.Set.UID)})
	if err != nil {
		return nil, err
	}
	list := metadataList("Pod")
	if err := from.List(ctx, list, client.InNamespace(w.Set.Namespace),
		client.MatchingLabelsSelector{Selector: selector.Add(*other)}); err != nil {
		return nil, fmt.Errorf("list pods by the selector: %w", err)
	}
	var names []string
	w.Foreign = nil
	for i := range list.Items {
		if p := &list.Items[i]; r.isMember(w.Set, p, true) {
			names = append(names, p.Name)
		} else if len(w.Foreign) < ForeignKept {
			w.Foreign = append(w.Foreign, p.Name)
		}
	}
	return r.readByName(ctx, w, names, from)
}

// noteOutsiders adds the outsiders that the selector of the set matches to the foreign pods. Their
// labels of members are removed, and the next read by the selector finds them.
func noteOutsiders(w *facts.World) {
	for _, pod := range facts.Outsiders(w) {
		if len(w.Foreign) < ForeignKept && spec.Selects(w.Set, pod) {
			w.Foreign = append(w.Foreign, pod.Name)
		}
	}
}

// ForeignKept bounds the number of remembered foreign pods; a condition names 10.
const ForeignKept = 50

// ReadAbandoned lists the claims of deleted sets with that name that lack the retained label and that
// nothing else will delete. present is the UID of the set that has the name now: its claims are not
// listed, nor those without a UID. It is "" if there is no such set.
func (r *Reader) ReadAbandoned(ctx context.Context, key types.NamespacedName, present types.UID) ([]*corev1.PersistentVolumeClaim, error) {
	list := metadataList("PersistentVolumeClaim")
	if err := r.Cache.List(ctx, list, client.InNamespace(key.Namespace), client.MatchingLabels{v1alpha1.LabelCluster: key.Name}); err != nil {
		return nil, err
	}
	var left []*corev1.PersistentVolumeClaim
	for i := range list.Items {
		c := &list.Items[i]
		if !explained(c) && leftBehind(c, present) {
			left = append(left, &corev1.PersistentVolumeClaim{ObjectMeta: c.ObjectMeta})
		}
	}
	return left, nil
}

// explained reports whether a claim needs no retained label: it has one, or is deleted without the
// operator.
func explained(c *metav1.PartialObjectMetadata) bool {
	return c.Labels[v1alpha1.LabelRetained] != "" || c.DeletionTimestamp != nil || len(c.OwnerReferences) > 0
}

// leftBehind reports whether a claim belongs to a deleted set. present is the UID of the set that
// now has the name; "" if there is none.
func leftBehind(c *metav1.PartialObjectMetadata, present types.UID) bool {
	if present == "" {
		return true
	}
	uid := types.UID(c.Labels[v1alpha1.LabelClusterUID])
	return uid != "" && uid != present
}

// readOffers finds the claims of earlier sets with this name that the set may adopt, and the pods
// that prevent it. They are needed only in a live pass in which members are missing.
func readOffers(ctx context.Context, w *facts.World, from engine.View) error {
	present := len(w.Members)
	for _, m := range w.Members {
		if m.Terminating() {
			present--
		}
	}
	if !from.Live || !w.Served() || present >= w.Replicas() || len(w.Set.Spec.VolumeClaimTemplates) == 0 {
		return nil
	}
	list := metadataList("PersistentVolumeClaim")
	if err := from.List(ctx, list, client.InNamespace(w.Set.Namespace), client.MatchingLabels{v1alpha1.LabelCluster: w.Set.Name}); err != nil {
		return err
	}
	claims := make([]*corev1.PersistentVolumeClaim, 0, len(list.Items))
	for i := range list.Items {
		claims = append(claims, &corev1.PersistentVolumeClaim{ObjectMeta: list.Items[i].ObjectMeta})
	}
	w.Offers = w.OffersOf(claims)
	ids := w.Offers.IDs()
	for _, id := range ids[:min(len(ids), w.Replicas())] {
		pod := metadataOf("Pod")
		err := from.Get(ctx, types.NamespacedName{Namespace: w.Set.Namespace, Name: w.NameOf(id)}, pod)
		if client.IgnoreNotFound(err) != nil {
			return err
		}
		if err == nil {
			w.Offers.Block(id, pod.Name)
		}
	}
	return nil
}
