package statefulsingleton

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/enqueue"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation/objects"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/simulate"
)

// cutAsCached returns an object as the manager's cache holds it; nil if the cache does not
// hold it.
func cutAsCached(obj client.Object) client.Object {
	switch o := obj.(type) {
	case *corev1.Node, *v1.StatefulSingleton:
		for kind, by := range Cache() {
			if objects.KindOf(kind) == objects.KindOf(obj) {
				cut, err := by.Transform(o)
				if err != nil {
					panic(err)
				}
				return cut.(client.Object)
			}
		}
	}
	return nil
}

// wakes reports whether a change queues the key, as the watches of Setup do.
func wakes(o *simulate.Operator, was, is client.Object) bool {
	ctx, to := context.Background(), mapper{o.Reconciler.Reader}
	both := []client.Object{is, was}
	if is == nil {
		both = both[1:]
	}
	var keys []reconcile.Request
	switch obj := both[0].(type) {
	case *corev1.Pod:
		keys = to.requestsForPod(ctx, obj)
		if was != nil && !labels.Equals(was.GetLabels(), obj.Labels) {
			keys = append(keys, to.requestsForPod(ctx, was)...)
		}
	case *corev1.Node:
		if was == nil || is == nil || enqueue.NodeTurned.Update(event.UpdateEvent{ObjectOld: was, ObjectNew: is}) {
			keys = to.onNode(ctx, obj)
		}
	case *v1.StatefulSingleton:
		return true
	case *corev1.ConfigMap, *policyv1.PodDisruptionBudget:
		return true
	}
	for _, k := range keys {
		if k.NamespacedName == fixture.Key {
			return true
		}
	}
	return false
}
