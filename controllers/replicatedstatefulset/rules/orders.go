package rules

import (
	"fmt"
	"slices"
	"time"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/record"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/spec"
)

// openOrder is a user's order that is not complete: an annotation, or a field of the spec. Orders
// in the spec have an id, and their progress is in status.orders (record.OrderBook).
type openOrder struct {
	*facts.Facts
	order v1alpha1.OrderName
	// name is the member that the order names.
	name string
	// recorded is the entry in status.orders of an order in the spec. It is nil for an annotation.
	recorded *v1alpha1.OrderStatus
}

// openOrdersOf returns the orders of a name that are not complete. An annotation takes precedence,
// because a user wrote it manually.
func openOrdersOf(f *facts.Facts, name v1alpha1.OrderName) (all []openOrder) {
	if member := f.Set.Annotations[spec.AnnotationOf[name]]; member != "" {
		all = append(all, openOrder{Facts: f, order: name, name: member})
	}
	if recorded := f.Record.Orders.Open(name); recorded != nil {
		all = append(all, openOrder{Facts: f, order: name, name: recorded.Member, recorded: recorded})
	}
	return all
}

// openOrderOf returns the order of a name that is in effect now. Its name is "" if there is none.
func openOrderOf(f *facts.Facts, name v1alpha1.OrderName) openOrder {
	if all := openOrdersOf(f, name); len(all) > 0 {
		return all[0]
	}
	return openOrder{Facts: f, order: name}
}

// endOrders ends the first order that is complete or impossible.
func endOrders(f *facts.Facts, p *Plan) {
	if !f.MayRunCommands() || f.Deleting() {
		return
	}
	for _, name := range spec.OrderNames {
		for _, o := range openOrdersOf(f, name) {
			if reason, detail := o.ends(); reason != "" {
				p.endOrder(o, reason, detail)
				return
			}
		}
	}
}

// endOrder ends an order. An order by annotation ends with the removal of the annotation. An
// order in the spec ends with an entry in the record.
func (p *Plan) endOrder(o openOrder, reason, detail string) {
	if o.recorded != nil {
		p.endRecordedOrder(o, reason, detail)
		return
	}
	set := o.Set.DeepCopy()
	delete(set.Annotations, spec.AnnotationOf[o.order])
	p.Do(action.Chain{{
		Verb:      action.Patch,
		Object:    set,
		From:      o.Set,
		Unchanged: true,
		Reason:    reason,
		Detail:    detail,
	}})
}

// endRecordedOrder ends an order in the spec.
func (p *Plan) endRecordedOrder(o openOrder, reason, detail string) {
	if p.writesRecord {
		return // one record per pass
	}
	p.writesRecord = true
	r, result := p.Record, v1alpha1.OrderDone
	if reason == facts.ReasonRefused {
		result = v1alpha1.OrderRefused
		detail += ". To retry, give the order a new id"
	}
	r.Orders = r.Orders.WithResult(o.Now, o.recorded, result, detail)
	p.Do(action.Chain{store(o.World, r, reason, detail)})
}

// seedingEnds returns how a manual seeding ended, and why. It returns "" while it may go on.
func (o openOrder) seedingEnds() (reason, detail string) {
	switch {
	case !o.couldBeMember():
		return facts.ReasonRefused, o.name + " was not seeded: no such member"
	case o.isListed() && !o.Record.GrantsName(o.name):
		return facts.ReasonRefused, o.name + " was not seeded: it is in spec.maintenance; remove it from that list first"
	case !o.Record.HasGrants() && o.isSpent():
		return facts.ReasonRefused, o.name + " was not seeded: it was started and did not become primary"
	case !o.Record.HasGrants():
		return "", ""
	case o.Record.GrantsName(o.name): // the grant precedes the seed, so the order is never used twice
		return facts.ReasonOverride, o.name + " is being seeded, as requested"
	}
	return facts.ReasonRefused, o.name + " was not seeded: a primary is running or may be running"
}

// couldBeMember reports whether a member of that name exists or is wanted.
func (o openOrder) couldBeMember() bool {
	if o.Named(o.name) != nil {
		return true
	}
	ordinal, ok := spec.OrdinalOf(o.Set, o.name)
	return ok && ordinal < int(*o.Set.Spec.Replicas)
}

// isListed reports whether the named member is in spec.maintenance.
func (o openOrder) isListed() bool {
	m := o.Named(o.name)
	return m != nil && m.Listed
}

// switchoverEnds returns how a switchover ended, and why. It returns "" while it may go on.
func (o openOrder) switchoverEnds() (reason, detail string) {
	m := o.Named(o.name)
	switch {
	case m == nil:
		return facts.ReasonRefused, o.name + " was not promoted: no such member"
	case m.State == record.Primary && m.GrantedHere:
		return facts.ReasonOverride, o.name + " is primary, as requested"
	case m.Listed:
		return facts.ReasonRefused, o.name + " was not promoted: it is in spec.maintenance; remove it from that list first"
	case m.State == record.Unknown, len(o.Record.Commands) > 0, o.Record.Primaries() < o.WantedPrimaries():
		return "", ""
	case o.isSpent():
		return facts.ReasonRefused, fmt.Sprintf("%s was not promoted: the former primary was already stopped or demoted for it; current primary: %s", o.name, facts.NamesOf(o.Primaries()))
	case m.State != record.Secondary:
		return facts.ReasonRefused, o.name + " was not promoted: it is not running as secondary"
	}
	for _, m := range o.Primaries() {
		if o.failedToHandOver(m) {
			return facts.ReasonRefused, fmt.Sprintf(
				"%s was not promoted: demote of %s %s",
				o.name, m.Name(), record.HowFailed(int(m.Failure.Code)),
			)
		}
	}
	return "", ""
}

// failedToHandOver reports whether the demotion of a primary failed after the user's order, which
// then is refused. If the user repeats the order, the failure is older, and the primary is stopped
// instead of demoted (Plan.demote).
func (o openOrder) failedToHandOver(m *facts.Member) bool {
	if m.Failure == nil || m.Failure.Command != v1alpha1.CommandDemote {
		return false
	}
	return !m.Failure.Last.Time.Before(o.since().Truncate(time.Second))
}

// source returns the annotation or the field of the order, for messages.
func (o openOrder) source() string {
	if o.recorded != nil {
		return "spec." + string(o.order)
	}
	return "annotation " + spec.AnnotationOf[o.order]
}

// since returns when the order began: for an order in the spec, when it was started or first seen;
// for an annotation, when this process first saw it.
func (o openOrder) since() time.Time {
	if o.recorded != nil {
		return o.recorded.Time.Time
	}
	return o.RequestedAt
}

// ends returns how an order ended, and why. It returns "" while it may go on.
func (o openOrder) ends() (reason, detail string) {
	if reason, detail = o.isOvertaken(); reason != "" {
		return reason, detail
	}
	if o.order == v1alpha1.OrderSeedFrom {
		return o.seedingEnds()
	}
	return o.switchoverEnds()
}

// isOvertaken returns which later order replaces an order in the spec. It returns "" if none does.
func (o openOrder) isOvertaken() (reason, detail string) {
	if o.recorded == nil {
		return "", ""
	}
	if other := o.Set.Annotations[spec.AnnotationOf[o.order]]; other != "" && other != o.name {
		return facts.ReasonRefused, fmt.Sprintf("%s: annotation %s names %s", o.notDone(), spec.AnnotationOf[o.order], other)
	}
	if now := spec.OrderIn(&o.Set.Spec, o.order); now == nil || now.ID != o.recorded.ID {
		return facts.ReasonRefused, fmt.Sprintf("%s: order %s was removed from %s while it was in progress", o.notDone(), o.recorded.ID, o.source())
	}
	return "", ""
}

// notDone returns the message prefix for an order that is not carried out.
func (o openOrder) notDone() string { return record.NotDone(o.order, o.name) }

// isSpent reports whether an order in the spec was started, and the primary whose role it takes has
// lost its grant. Such an order has had its effect, and is not started again.
func (o openOrder) isSpent() bool {
	if o.recorded == nil || o.recorded.Result != v1alpha1.OrderStarted {
		return false
	}
	return !slices.ContainsFunc(o.Record.Granted, func(g v1alpha1.Grant) bool {
		return g.Pod == o.recorded.From && g.Since.Equal(o.recorded.GrantedAt)
	})
}

// begin records that the first command for an order is about to be sent. from is the primary whose
// role it takes; nil means none. It is part of the record that is written before the command is
// sent.
func (o openOrder) begin(all record.OrderBook, from *facts.Member) record.OrderBook {
	if o.recorded == nil {
		return all
	}
	begun := *o.recorded
	if from != nil {
		begun.From, begun.GrantedAt = from.Name(), o.Record.GrantedAt(from.Identity())
	}
	return all.WithResult(o.Now, &begun, v1alpha1.OrderStarted, "")
}
