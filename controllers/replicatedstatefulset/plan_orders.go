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

// orderNames are the orders that there are, in the order in which they are looked at.
var orderNames = []v1alpha1.OrderName{v1alpha1.OrderSeedFrom, v1alpha1.OrderSwitchoverTo}

// annotationOf is the annotation by which a person gives an order once.
var annotationOf = map[v1alpha1.OrderName]string{
	v1alpha1.OrderSeedFrom:     v1alpha1.AnnotationSeedFrom,
	v1alpha1.OrderSwitchoverTo: v1alpha1.AnnotationSwitchoverTo,
}

// orderIn is the order of that name in a spec; nil if there is none.
func orderIn(spec *v1alpha1.ReplicatedStatefulSetSpec, name v1alpha1.OrderName) *v1alpha1.MemberOrder {
	if name == v1alpha1.OrderSeedFrom {
		return spec.SeedFrom
	}
	return spec.SwitchoverTo
}

// override is an order of a person that is not over: an annotation, or its twin in the spec.
type override struct {
	*facts
	order v1alpha1.OrderName
	// name is the member that it names.
	name string
	// twin is what the record says of an order of the spec; nil for an annotation.
	twin *v1alpha1.OrderStatus
}

// overridesOf are the orders of a name that are not over. An annotation comes first: somebody
// wrote it by hand.
func overridesOf(f *facts, name v1alpha1.OrderName) (all []override) {
	if member := f.set.Annotations[annotationOf[name]]; member != "" {
		all = append(all, override{f, name, member, nil})
	}
	if twin := f.record.orders.open(name); twin != nil {
		all = append(all, override{f, name, twin.Member, twin})
	}
	return all
}

// overrideOf is the order of a name that is obeyed now; its name is "" if there is none.
func overrideOf(f *facts, name v1alpha1.OrderName) override {
	if all := overridesOf(f, name); len(all) > 0 {
		return all[0]
	}
	return override{facts: f, order: name}
}

// by says where the order was given.
func (o override) by() string {
	if o.twin != nil {
		return "spec." + string(o.order)
	}
	return "annotation " + annotationOf[o.order]
}

// since is since when it is known: an order of the spec since it was begun or first seen, an
// annotation for as long as this process knows of it.
func (o override) since() time.Time {
	if o.twin != nil {
		return o.twin.Time.Time
	}
	return o.requestedAt
}

// ends says how an order ended, and why; "" while it may go on.
func (o override) ends() (reason, detail string) {
	if reason, detail = o.isOvertaken(); reason != "" {
		return reason, detail
	}
	if o.order == v1alpha1.OrderSeedFrom {
		return o.seedingEnds()
	}
	return o.switchoverEnds()
}

// isOvertaken says which later order has taken the place of an order of the spec; "" if none
// has.
func (o override) isOvertaken() (reason, detail string) {
	if o.twin == nil {
		return "", ""
	}
	if other := o.set.Annotations[annotationOf[o.order]]; other != "" && other != o.name {
		return reasonRefused, fmt.Sprintf("%s: annotation %s names %s", o.not(), annotationOf[o.order], other)
	}
	if now := orderIn(&o.set.Spec, o.order); now == nil || now.ID != o.twin.ID {
		return reasonRefused, fmt.Sprintf("%s: order %s was taken off %s while it was under way", o.not(), o.twin.ID, o.by())
	}
	return "", ""
}

// not says what was ordered, and is not done.
func (o override) not() string {
	if o.order == v1alpha1.OrderSeedFrom {
		return o.name + " was not seeded"
	}
	return o.name + " does not take over"
}

// isSpent reports whether an order of the spec was begun, and the primary whose role it was to
// take has that role no more, by its grant: it is not begun again.
func (o override) isSpent() bool {
	if o.twin == nil || o.twin.Result != v1alpha1.OrderStarted {
		return false
	}
	return !slices.ContainsFunc(o.record.granted, func(g v1alpha1.Grant) bool {
		return g.Pod == o.twin.From && g.Since.Equal(o.twin.GrantedAt)
	})
}

// The record.

// orderBook is the orders of the spec and what became of them, the newest first. None of its
// methods changes what it shares with the status.
type orderBook []v1alpha1.OrderStatus

// noteOrders puts down the orders of the spec that are new, before anything is done for them.
// Those of an object that is as it was made are of another life of it, and not for this one.
func (r *record) noteOrders(f *facts) {
	if f.invalid != "" || f.deleting() {
		return
	}
	isNew := order.IsNew(f.set.Generation, f.set.Status.ObservedGeneration)
	for _, name := range orderNames {
		now := orderIn(&f.set.Spec, name)
		r.orders = r.orders.withoutUnbegun(name, now)
		if now != nil && isOrder(f.set, now) {
			r.orders = r.orders.with(f, name, now)
		}
		if isNew {
			r.ignoreOrders(f, name)
		}
	}
}

// ignoreOrders ends the orders of a new object: nothing is done for them.
func (r *record) ignoreOrders(f *facts, name v1alpha1.OrderName) {
	for _, o := range r.orders {
		if o.Order != name || isOver(&o) {
			continue
		}
		ignored := override{order: name, name: o.Member}
		text := fmt.Sprintf(
			"%s: spec.%s had order %s when the object was made. To order it, give it another id",
			ignored.not(), name, o.ID,
		)
		r.orders = r.orders.ended(f, &o, v1alpha1.OrderIgnored, text)
		r.tell(v1alpha1.EventOverrideRefused, "%s", text)
	}
}

// isOrder reports whether an order of the spec is one. The schema and the webhook refuse what
// is none.
func isOrder(set *v1alpha1.ReplicatedStatefulSet, o *v1alpha1.MemberOrder) bool {
	_, ok := ordinalOf(set, o.Member)
	return ok && order.IsID(o.ID)
}

// isOver reports whether nothing is done for an order any more.
func isOver(o *v1alpha1.OrderStatus) bool {
	return !slices.Contains([]v1alpha1.OrderResult{v1alpha1.OrderWaiting, v1alpha1.OrderStarted}, o.Result)
}

// with puts down an order, unless it is on record.
func (all orderBook) with(f *facts, name v1alpha1.OrderName, now *v1alpha1.MemberOrder) orderBook {
	if all.at(name, now.ID) >= 0 {
		return all
	}
	noted := orderBook{{
		Order:  name,
		ID:     now.ID,
		Member: now.Member,
		Result: v1alpha1.OrderWaiting,
		Time:   metav1.NewTime(f.now.Truncate(time.Second)),
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

// withoutUnbegun drops the orders for which nothing was done, and that the spec does not have
// any more.
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

// at is the place of an order; -1 if it is not there.
func (all orderBook) at(name v1alpha1.OrderName, id string) int {
	return slices.IndexFunc(all, func(x v1alpha1.OrderStatus) bool { return x.Order == name && x.ID == id })
}

// open is a copy of the order of a name that is not over, the one that was begun first; nil if
// there is none.
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

// begun puts down that the first command for an order is about to be sent, which takes the role
// from that primary; nil is none. It is a part of the record that is written before the command
// is sent.
func (all orderBook) begun(o override, from *member) orderBook {
	if o.twin == nil {
		return all
	}
	begun := *o.twin
	if from != nil {
		begun.From, begun.GrantedAt = from.name(), grantedAt(o.facts, from)
	}
	return all.ended(o.facts, &begun, v1alpha1.OrderStarted, "")
}

// ended puts down what became of an order.
func (all orderBook) ended(f *facts, o *v1alpha1.OrderStatus, result v1alpha1.OrderResult, message string) orderBook {
	i := all.at(o.Order, o.ID)
	if i < 0 {
		return all
	}
	now := *o
	now.Result, now.Message = result, excerpt.Message(message)
	if now.Result != all[i].Result {
		now.Time = metav1.NewTime(f.now.Truncate(time.Second))
	}
	all = slices.Clone(all)
	all[i] = now
	return all
}

// grantedAt is since when the container of a member that runs may be primary; nil if it may
// not be.
func grantedAt(f *facts, m *member) *metav1.MicroTime {
	for _, g := range f.record.granted {
		if g.UID == m.pod.UID && g.ContainerID == m.running() {
			return &g.Since
		}
	}
	return nil
}
