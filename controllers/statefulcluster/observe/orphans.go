package observe

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/engine"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/children"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/spec"
)

// isMember reports whether a pod is a member: the set controls it, or controlled it when this process
// last saw it and nothing controls it now. In the second case a user can release the pod by removing
// the selector's labels. The cache does not have these labels, so they are checked only in live reads.
func (r *Reader) isMember(set *v1alpha1.StatefulCluster, pod metav1.Object, live bool) bool {
	if metav1.GetControllerOf(pod) != nil {
		return children.Controls(set, pod)
	}
	wasMember := r.Of(set).members[pod.GetUID()]
	return wasMember && (!live || spec.Selects(set, pod))
}

// checkDeletion reads the set again after its pods if one of them lost its owner reference, because
// `kubectl delete --cascade=orphan` first marks the set as deleted. A pod adopted after that would
// be deleted with the set.
func checkDeletion(ctx context.Context, w *facts.World, pods []*corev1.Pod, from engine.View) error {
	isOrphan := func(pod *corev1.Pod) bool { return metav1.GetControllerOf(pod) == nil }
	if !from.Live || !slices.ContainsFunc(pods, isOrphan) {
		return nil
	}
	var now v1alpha1.StatefulCluster
	err := from.Get(ctx, client.ObjectKeyFromObject(w.Set), &now)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("get the StatefulCluster again: %w", err)
	}
	if apierrors.IsNotFound(err) || now.UID != w.Set.UID {
		w.Set.DeletionTimestamp = &metav1.Time{Time: w.Now}
	} else if now.DeletionTimestamp != nil {
		w.Set.DeletionTimestamp = now.DeletionTimestamp
	}
	return nil
}

// noteMembers remembers which pods the set controls. Pods that are gone are forgotten only after a
// live read.
func (mem *Remembered) noteMembers(w *facts.World) {
	seen := mem.members
	if w.Live || seen == nil {
		mem.members = map[types.UID]bool{}
	}
	for _, m := range w.Members {
		if children.Controls(w.Set, m.Pod) || seen[m.Pod.UID] {
			mem.members[m.Pod.UID] = true
		}
	}
}
