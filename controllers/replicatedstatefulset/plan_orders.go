package replicatedstatefulset

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/excerpt"
	"github.com/stateful-operator/stateful-operator/controllers/internal/order"
)

// orderNames are all orders, in the order of their evaluation.
var orderNames = []v1alpha1.OrderName{v1alpha1.OrderSeedFrom, v1alpha1.OrderSwitchoverTo}

// annotationOf maps an order to the annotation by which a user gives it once.
var annotationOf = map[v1alpha1.OrderName]string{
	v1alpha1.OrderSeedFrom:     v1alpha1.AnnotationSeedFrom,
	v1alpha1.OrderSwitchoverTo: v1alpha1.AnnotationSwitchoverTo,
}

// orderIn returns the order of that name in a spec. It returns nil if there is none.
func orderIn(spec *v1alpha1.ReplicatedStatefulSetSpec, name v1alpha1.OrderName) *v1alpha1.MemberOrder {
	if name == v1alpha1.OrderSeedFrom {
		return spec.SeedFrom
	}
	return spec.SwitchoverTo
}

// override is a user's order that is not complete: an annotation, or its twin in the spec.
type override struct {
	*facts
	order v1alpha1.OrderName
	// name is the member that the order names.
	name string
	// twin is the record of an order in the spec. It is nil for an annotation.
	twin *v1alpha1.OrderStatus
}

// overridesOf returns the orders of a name that are not complete. An annotation takes precedence,
// because a user wrote it manually.
func overridesOf(f *facts, name v1alpha1.OrderName) (all []override) {
	if member := f.set.Annotations[annotationOf[name]]; member != "" {
		all = append(all, override{facts: f, order: name, name: member})
	}
	if twin := f.record.orders.open(name); twin != nil {
		all = append(all, override{facts: f, order: name, name: twin.Member, twin: twin})
	}
	return all
}

// overrideOf returns the order of a name that is in effect now. Its name is "" if there is none.
func overrideOf(f *facts, name v1alpha1.OrderName) override {
	if all := overridesOf(f, name); len(all) > 0 {
		return all[0]
	}
	return override{facts: f, order: name}
}

// by states where the order was given.
func (o override) by() string {
	if o.twin != nil {
		return "spec." + string(o.order)
	}
	return "annotation " + annotationOf[o.order]
}

// since returns when the order began: for an order in the spec, when it was started or first seen;
// for an annotation, when this process first saw it.
func (o override) since() time.Time {
	if o.twin != nil {
		return o.twin.Time.Time
	}
	return o.requestedAt
}

// ends returns how an order ended, and why. It returns "" while it may go on.
func (o override) ends() (reason, detail string) {
	if reason, detail = o.isOvertaken(); reason != "" {
		return reason, detail
	}
	if o.order == v1alpha1.OrderSeedFrom {
		return o.seedingEnds()
	}
	return o.switchoverEnds()
}

// isOvertaken returns which later order replaces an order in the spec. It returns "" if none does.
func (o override) isOvertaken() (reason, detail string) {
	if o.twin == nil {
		return "", ""
	}
	if other := o.set.Annotations[annotationOf[o.order]]; other != "" && other != o.name {
		return reasonRefused, fmt.Sprintf("%s: annotation %s names %s", o.not(), annotationOf[o.order], other)
	}
	if now := orderIn(&o.set.Spec, o.order); now == nil || now.ID != o.twin.ID {
		return reasonRefused, fmt.Sprintf("%s: order %s was removed from %s while it was in progress", o.not(), o.twin.ID, o.by())
	}
	return "", ""
}

// not returns the message prefix for an order that is not carried out.
func (o override) not() string { return notDone(o.order, o.name) }

// isSpent reports whether an order in the spec was started, and the grant of the primary that it
// replaces is gone. Such an order is not started again.
func (o override) isSpent() bool {
	if o.twin == nil || o.twin.Result != v1alpha1.OrderStarted {
		return false
	}
	return !slices.ContainsFunc(o.record.granted, func(g v1alpha1.Grant) bool {
		return g.Pod == o.twin.From && g.Since.Equal(o.twin.GrantedAt)
	})
}

// orderBook contains the orders in the spec with their results, the newest first. Its methods do
// not modify data that is shared with the status.
type orderBook []v1alpha1.OrderStatus

// noteOrders records new orders in the spec before any action. The orders in a newly created object
// are ignored, because they may come from a backup or an earlier object.
func (r *record) noteOrders(o *observation) {
	if o.invalid || o.deleting() {
		return
	}
	isNew := order.IsNew(o.set.Generation, o.set.Status.ObservedGeneration)
	for _, name := range orderNames {
		now := orderIn(&o.set.Spec, name)
		r.orders = r.orders.withoutUnbegun(name, now)
		if now != nil && isOrder(o.set, now) {
			r.orders = r.orders.with(o.now, name, now)
		}
		if isNew {
			r.ignoreOrders(o.now, name)
		}
	}
}

// ignoreOrders ends the orders of a new object without an action.
func (r *record) ignoreOrders(now time.Time, name v1alpha1.OrderName) {
	for _, o := range r.orders {
		if o.Order != name || isOver(&o) {
			continue
		}
		text := fmt.Sprintf(
			"%s: spec.%s already had order %s when the object was created. To carry it out, give the order a new id",
			notDone(name, o.Member), name, o.ID,
		)
		r.orders = r.orders.ended(now, &o, v1alpha1.OrderIgnored, text)
		r.tell(v1alpha1.EventOverrideRefused, "%s", text)
	}
}

// isOrder reports whether an order in the spec is valid. The CRD schema and the webhook reject
// invalid ones.
func isOrder(set *v1alpha1.ReplicatedStatefulSet, o *v1alpha1.MemberOrder) bool {
	_, ok := ordinalOf(set, o.Member)
	return ok && order.IsID(o.ID)
}

// isOver reports whether an order is complete.
func isOver(o *v1alpha1.OrderStatus) bool {
	return !slices.Contains([]v1alpha1.OrderResult{v1alpha1.OrderWaiting, v1alpha1.OrderStarted}, o.Result)
}

// with adds an order unless it is on record.
func (all orderBook) with(at time.Time, name v1alpha1.OrderName, now *v1alpha1.MemberOrder) orderBook {
	if all.at(name, now.ID) >= 0 {
		return all
	}
	noted := orderBook{{
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

// withoutUnbegun removes the orders that were not started and are no longer in the spec.
func (all orderBook) withoutUnbegun(name v1alpha1.OrderName, now *v1alpha1.MemberOrder) orderBook {
	var wanted v1alpha1.MemberOrder
	if now != nil {
		wanted = *now
	}
	return slices.DeleteFunc(slices.Clone(all), func(x v1alpha1.OrderStatus) bool {
		isUnbegun := x.Order == name && x.Result == v1alpha1.OrderWaiting
		return isUnbegun && wanted != v1alpha1.MemberOrder{Member: x.Member, ID: x.ID}
	})
}

// at returns the index of an order. It returns -1 if there is none.
func (all orderBook) at(name v1alpha1.OrderName, id string) int {
	return slices.IndexFunc(all, func(x v1alpha1.OrderStatus) bool { return x.Order == name && x.ID == id })
}

// open returns a copy of the order of a name that is not complete, preferably a started one. It
// returns nil if there is none.
func (all orderBook) open(name v1alpha1.OrderName) *v1alpha1.OrderStatus {
	for _, result := range []v1alpha1.OrderResult{v1alpha1.OrderStarted, v1alpha1.OrderWaiting} {
		for _, x := range all {
			if x.Order == name && x.Result == result {
				return &x
			}
		}
	}
	return nil
}

// begin records that the first command for an order is about to be sent. from is the primary whose
// role it takes; nil means none. It is part of the record that is written before the command is
// sent.
func (o override) begin(all orderBook, from *member) orderBook {
	if o.twin == nil {
		return all
	}
	begun := *o.twin
	if from != nil {
		begun.From, begun.GrantedAt = from.name(), o.record.grantedAt(from.identity())
	}
	return all.ended(o.now, &begun, v1alpha1.OrderStarted, "")
}

// ended records the result of an order.
func (all orderBook) ended(at time.Time, o *v1alpha1.OrderStatus, result v1alpha1.OrderResult, message string) orderBook {
	i := all.at(o.Order, o.ID)
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

// notDone returns the message prefix for an order that is not carried out.
func notDone(name v1alpha1.OrderName, member string) string {
	if name == v1alpha1.OrderSeedFrom {
		return member + " was not seeded"
	}
	return member + " was not promoted"
}
