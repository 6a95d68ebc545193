// Package enqueue maps events to the keys that must be reconciled.
package enqueue

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/stateful-operator/stateful-operator/controllers/internal/report"
)

// Settle is how long events of children are batched before their key is queued. Without it, a thousand
// pods that become Ready could cause a thousand passes.
const Settle = 50 * time.Millisecond

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// Children returns an event handler for children. find returns the name of the owner to reconcile, or
// "". If a child was deleted or became terminating, its key is queued immediately. All other events
// queue the key after Settle with lower priority. For a deleted child, gone is called first.
func Children(find func(client.Object) string, gone func(types.NamespacedName, client.Object)) handler.EventHandler {
	keyOf := func(obj client.Object) (reconcile.Request, bool) {
		name := find(obj)
		return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: obj.GetNamespace(), Name: name}}, name != ""
	}
	add := func(q queue, obj client.Object, after time.Duration) {
		req, ok := keyOf(obj)
		if !ok {
			return
		}
		if after == 0 {
			q.Add(req)
			return
		}
		if byPriority, ok := q.(priorityqueue.PriorityQueue[reconcile.Request]); ok {
			byPriority.AddWithOpts(priorityqueue.AddOpts{After: after, Priority: ptr.To(report.Later)}, req)
			return
		}
		q.AddAfter(req, after)
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) { add(q, e.Object, Settle) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) {
			if e.ObjectOld.GetResourceVersion() == e.ObjectNew.GetResourceVersion() {
				return // a resync contains no change
			}
			after := Settle
			if e.ObjectOld.GetDeletionTimestamp() == nil && e.ObjectNew.GetDeletionTimestamp() != nil {
				after = 0
			}
			add(q, e.ObjectNew, after)
			if old, ok := keyOf(e.ObjectOld); ok && old.Name != find(e.ObjectNew) { // the owner changed
				q.Add(old)
			}
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) {
			if req, ok := keyOf(e.Object); ok {
				gone(req.NamespacedName, e.Object)
			}
			add(q, e.Object, 0)
		},
	}
}

// Controller returns a function that returns the name of the controller owner of the given kind.
func Controller(kind string) func(client.Object) string {
	return func(obj client.Object) string {
		if owner := metav1.GetControllerOf(obj); owner != nil && owner.Kind == kind {
			return owner.Name
		}
		return ""
	}
}

// ControllerOrLabel returns a function that returns the name of the controller owner of the given kind.
// For objects without a controller, it returns the value of a label.
func ControllerOrLabel(kind, key string) func(client.Object) string {
	return func(obj client.Object) string {
		if metav1.GetControllerOf(obj) == nil {
			return obj.GetLabels()[key]
		}
		return Controller(kind)(obj)
	}
}

// Label returns a function that returns the value of a label.
func Label(key string) func(client.Object) string {
	return func(obj client.Object) string { return obj.GetLabels()[key] }
}
