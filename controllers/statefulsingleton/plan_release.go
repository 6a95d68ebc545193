package statefulsingleton

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/mutant"
	"github.com/stateful-operator/stateful-operator/controllers/internal/order"
)

// mostOrders is how many orders of spec.release are remembered.
const mostOrders = 16

// releaseOrder is the order of spec.release, and what is known of it. It takes effect when the
// object is deleted, and an object is deleted once: nothing has to be on record before that
// but which orders are of another life of the object.
type releaseOrder struct{ object *v1.StatefulSingleton }

// isOrdered reports whether all pods are to go at once when the object is deleted.
func (r releaseOrder) isOrdered() bool {
	o := r.object.Spec.Release
	if o == nil || !order.IsID(o.ID) {
		return false
	}
	return r.result(o.ID) == v1.OrderWaiting
}

// result is what becomes of an order: Waiting is one that counts.
func (r releaseOrder) result(id string) v1.OrderResult {
	s := &r.object.Status
	if mutant.Is("ssn-new-object-releases") { // what is ordered in a manifest counts when an object is made of it
		return v1.OrderWaiting
	}
	ignored := slices.ContainsFunc(s.Orders, func(x v1.OrderStatus) bool { return x.ID == id && x.Result == v1.OrderIgnored })
	if ignored || order.IsNew(r.object.Generation, s.ObservedGeneration) {
		return v1.OrderIgnored
	}
	return v1.OrderWaiting
}

// orders are those that the status is to tell of, the newest first.
func (r releaseOrder) orders(now time.Time) []v1.OrderStatus {
	before, o := r.object.Status.Orders, r.object.Spec.Release
	var orders []v1.OrderStatus
	if o != nil && order.IsID(o.ID) {
		orders = append(orders, r.status(o.ID, now))
	}
	for _, x := range before {
		isSame, isOver := o != nil && o.ID == x.ID, x.Result == v1.OrderIgnored
		if isOver && !isSame && len(orders) < mostOrders {
			orders = append(orders, x)
		}
	}
	return orders
}

// status is what the status is to tell of the order of an id.
func (r releaseOrder) status(id string, now time.Time) v1.OrderStatus {
	is := v1.OrderStatus{ID: id, Result: r.result(id), Time: metav1.NewTime(now.Truncate(time.Second))}
	switch {
	case is.Result == v1.OrderIgnored:
		is.Message = "spec.release had order " + id + " when the object was made. To order it, give it another id"
	case r.object.DeletionTimestamp != nil:
		is.Result = v1.OrderStarted
	default:
		is.Message = "when the StatefulSingleton is deleted, all its waiting pods start at once, together"
	}
	for _, x := range r.object.Status.Orders {
		if x.ID == id && x.Result == is.Result {
			is.Time = x.Time
		}
	}
	return is
}
