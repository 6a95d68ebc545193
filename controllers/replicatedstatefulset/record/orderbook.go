package record

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/excerpt"
	"github.com/stateful-operator/stateful-operator/controllers/internal/order"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/spec"
)

// OrderBook contains the orders in the spec with their results, the newest first. Its methods do
// not modify data that is shared with the status.
type OrderBook []v1alpha1.OrderStatus

// noteOrders records new orders in the spec before any action. The orders in a newly created object
// are ignored, because they may come from a backup or an earlier object.
func (r *Record) noteOrders(o *Observed) {
	if o.Invalid || o.deleting() {
		return
	}
	// A set whose spec could not be decoded has an observed generation, but its orders are not recorded. It has no phase
	// until its spec is decoded for the first time.
	isNew := o.Set.Status.Phase == v1alpha1.PhaseNone || order.IsNew(o.Set.Generation, o.Set.Status.ObservedGeneration)
	for _, name := range spec.OrderNames {
		now := spec.OrderIn(&o.Set.Spec, name)
		r.Orders = r.Orders.withoutWithdrawn(name, now)
		if now != nil && isOrder(o.Set, now) {
			r.Orders = r.Orders.withNew(o.Now, name, now)
		}
		if isNew {
			r.ignoreOrders(o.Now, name)
		}
	}
}

// ignoreOrders ends the orders of a new object without an action.
func (r *Record) ignoreOrders(now time.Time, name v1alpha1.OrderName) {
	for _, o := range r.Orders {
		if o.Order != name || isComplete(&o) {
			continue
		}
		text := fmt.Sprintf(
			"%s: spec.%s already had order %s when the object was created. To carry it out, give the order a new id",
			NotDone(name, o.Member), name, o.ID,
		)
		r.Orders = r.Orders.WithResult(now, &o, v1alpha1.OrderIgnored, text)
		r.addEvent(v1alpha1.EventOverrideRefused, "%s", text)
	}
}

// isOrder reports whether an order in the spec is valid. The CRD schema and the webhook reject
// invalid ones.
func isOrder(set *v1alpha1.ReplicatedStatefulSet, o *v1alpha1.MemberOrder) bool {
	_, ok := spec.OrdinalOf(set, o.Member)
	return ok && order.IsID(o.ID)
}

// isComplete reports whether an order is complete.
func isComplete(o *v1alpha1.OrderStatus) bool {
	return !slices.Contains([]v1alpha1.OrderResult{v1alpha1.OrderWaiting, v1alpha1.OrderStarted}, o.Result)
}

// withNew returns the book with an order of the spec, unless its id is in the book already. It
// keeps the newest order.Most orders of each name.
func (all OrderBook) withNew(at time.Time, name v1alpha1.OrderName, now *v1alpha1.MemberOrder) OrderBook {
	if all.index(name, now.ID) >= 0 {
		return all
	}
	noted := OrderBook{{
		Order:  name,
		ID:     now.ID,
		Member: now.Member,
		Result: v1alpha1.OrderWaiting,
		Time:   metav1.NewTime(at.Truncate(time.Second)),
	}}
	count := 1
	for _, x := range all {
		if x.Order != name {
			noted = append(noted, x)
			continue
		}
		if x.ID != now.ID && count < order.Most {
			noted = append(noted, x)
			count++
		}
	}
	return noted
}

// withoutWithdrawn returns the book without the orders that were not started and are no longer in
// the spec. now is the order in the spec, or nil.
func (all OrderBook) withoutWithdrawn(name v1alpha1.OrderName, now *v1alpha1.MemberOrder) OrderBook {
	var wanted v1alpha1.MemberOrder
	if now != nil {
		wanted = *now
	}
	return slices.DeleteFunc(slices.Clone(all), func(x v1alpha1.OrderStatus) bool {
		isUnbegun := x.Order == name && x.Result == v1alpha1.OrderWaiting
		return isUnbegun && wanted != v1alpha1.MemberOrder{Member: x.Member, ID: x.ID}
	})
}

// index returns the index of an order. It returns -1 if there is none.
func (all OrderBook) index(name v1alpha1.OrderName, id string) int {
	return slices.IndexFunc(all, func(x v1alpha1.OrderStatus) bool { return x.Order == name && x.ID == id })
}

// Open returns a copy of the order of a name that is not complete, preferably a started one. It
// returns nil if there is none.
func (all OrderBook) Open(name v1alpha1.OrderName) *v1alpha1.OrderStatus {
	for _, result := range []v1alpha1.OrderResult{v1alpha1.OrderStarted, v1alpha1.OrderWaiting} {
		for _, x := range all {
			if x.Order == name && x.Result == result {
				return &x
			}
		}
	}
	return nil
}

// WithResult returns the book with the result of an order.
func (all OrderBook) WithResult(at time.Time, o *v1alpha1.OrderStatus, result v1alpha1.OrderResult, message string) OrderBook {
	i := all.index(o.Order, o.ID)
	if i < 0 {
		return all
	}
	now := *o
	now.Result, now.Message = result, excerpt.Message(message)
	if now.Result != all[i].Result {
		now.Time = metav1.NewTime(at.Truncate(time.Second))
	}
	all = slices.Clone(all)
	all[i] = now
	return all
}

// NotDone returns the message prefix for an order that is not carried out.
func NotDone(name v1alpha1.OrderName, member string) string {
	if name == v1alpha1.OrderSeedFrom {
		return member + " was not seeded"
	}
	return member + " was not promoted"
}
