package spec

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/order"
)

// ReleaseOrder is the order in spec.release, which a user identifies by an id. It takes effect
// when the object is deleted, which happens once. So the status records only the orders that
// are ignored, because the object was created with them: they were meant for an earlier object
// of the same name.
type ReleaseOrder struct{ Object *v1.StatefulSingleton }

// IsOrdered reports whether all pods are released at once when the object is deleted.
func (r ReleaseOrder) IsOrdered() bool {
	id := r.id()
	return id != "" && r.result(id) == v1.OrderWaiting
}

// id returns the id of the order; "" if there is none. The schema rejects malformed ids.
func (r ReleaseOrder) id() string {
	o := r.Object.Spec.Release
	if o == nil || !order.IsID(o.ID) {
		return ""
	}
	return o.ID
}

// result returns the result of the order with that id. OrderWaiting means that it takes effect
// when the object is deleted.
func (r ReleaseOrder) result(id string) v1.OrderResult {
	s := &r.Object.Status
	ignored := slices.ContainsFunc(s.Orders, func(x v1.OrderStatus) bool {
		return x.ID == id && x.Result == v1.OrderIgnored
	})
	if ignored || r.isNew() {
		return v1.OrderIgnored
	}
	return v1.OrderWaiting
}

// isNew reports whether the object may have been created with its order. An object whose spec could
// not be decoded has an observed generation, but its orders are not recorded. It has no phase until
// its spec is decoded for the first time.
func (r ReleaseOrder) isNew() bool {
	s := &r.Object.Status
	return s.Phase == "" || order.IsNew(r.Object.Generation, s.ObservedGeneration)
}

// Orders returns the orders for the status, newest first.
func (r ReleaseOrder) Orders(now time.Time) []v1.OrderStatus {
	var orders []v1.OrderStatus
	id := r.id()
	if id != "" {
		orders = append(orders, r.status(id, now))
	}
	for _, x := range r.Object.Status.Orders {
		if x.Result == v1.OrderIgnored && x.ID != id {
			orders = append(orders, x)
		}
	}
	return orders[:min(len(orders), order.Most)]
}

// status returns the status of the order with that id.
func (r ReleaseOrder) status(id string, now time.Time) v1.OrderStatus {
	is := v1.OrderStatus{
		ID:     id,
		Result: r.result(id),
		Time:   metav1.NewTime(now.Truncate(time.Second)),
	}
	switch {
	case is.Result == v1.OrderIgnored:
		is.Message = fmt.Sprintf(
			"spec.release already had id %s when the object was created. To release the pods, set another id",
			id,
		)
	case r.Object.DeletionTimestamp != nil:
		is.Result = v1.OrderStarted
	default:
		is.Message = "when the StatefulSingleton is deleted, all its waiting pods start at the same time"
	}
	before := slices.IndexFunc(r.Object.Status.Orders, func(x v1.OrderStatus) bool {
		return x.ID == id && x.Result == is.Result
	})
	if before >= 0 {
		is.Time = r.Object.Status.Orders[before].Time
	}
	return is
}
