package replicatedstatefulset

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
)

// relieve stops a primary when another member can take its role, with a copy as new as the
// primary's was a moment before.
func relieve(f *facts, p *plan, m *member, why string) {
	r := relief{facts: f, old: m}
	others, followed := r.otherPrimaries(), f.hasFollowers()
	switch {
	case r.isSpare(others, followed):
		p.stop(f, m, why)
	case others == 0 && !followed && !m.leaves:
		// No other member has its data, so the same member starts again. Its sequence must be on
		// record before the stop.
		p.askVersions(f, []*member{m})
		if m.version.known {
			p.stop(f, m, why+", and it has no secondary")
		} else {
			p.WaitFor(v1alpha1.ReasonHandingOver, "waiting for a response from sequence in "+m.name())
		}
	case len(f.primaries()) < f.target():
		p.WaitFor(
			v1alpha1.ReasonHandingOver,
			"starting another primary before this one is stopped: "+m.name(),
		)
	default:
		h := r.handover()
		p.ready(f, h)
		if h.successor != nil {
			p.proven = true
			p.stop(f, m, fmt.Sprintf("%s, and %s can take over", why, h.successor.name()))
		}
	}
}

// relief is a primary whose role another member takes. If by is set, only that member may take it.
type relief struct {
	*facts
	old *member
	by  string
	// away is true if the new primary must not be a member that should leave its Node.
	away bool
}

// isSpare reports whether a primary may stop without a successor: the other primaries are enough,
// or have the same data, or it is the only member.
func (r relief) isSpare(others int, followed bool) bool {
	switch {
	case others >= r.target():
		return true
	case others > 0 && !followed:
		return true
	}
	return r.wanted() == 1 && !r.old.leaves
}

// otherPrimaries returns the number of other primaries that stay.
func (r relief) otherPrimaries() int {
	n := 0
	for _, o := range r.primaries() {
		if o != r.old && !o.leaves {
			n++
		}
	}
	return n
}

// hasFollowers reports whether members follow the primaries.
func (w *world) hasFollowers() bool {
	return hasFollowers(w.set, w.wanted(), w.target())
}

// question asks a member for its sequence: at once if it was not asked since that time, otherwise
// one second after its last response, whose copy was too old.
type question struct {
	*member
	since time.Time
}

// handover is the member that can succeed a primary, and the missing preconditions.
type handover struct {
	// successor has all data that the primary had when it was asked. It is nil while there is no
	// such member.
	successor *member
	// waiting is the reason why the handover is delayed.
	waiting string
	// stale are the members to ask for their sequence. asked are those to ask again after others
	// were asked.
	stale []*member
	asked []question
}

func (h *handover) wait(what string) {
	if h.waiting == "" {
		h.waiting = what
	}
}

// ready asks for the sequences that a handover needs.
func (p *plan) ready(f *facts, h handover) {
	p.askVersions(f, h.stale)
	for _, q := range h.asked {
		p.askSince(f, q)
	}
	if h.waiting != "" {
		p.WaitFor(v1alpha1.ReasonHandingOver, h.waiting)
	}
}

func (p *plan) askSince(f *facts, q question) {
	if last, ok := q.result(v1alpha1.CommandSequence); ok && last.Began.After(q.since) {
		if wait := last.Ended.Add(backoff(1)).Sub(f.now); wait > 0 {
			p.LookAgain(wait)
			return
		}
	}
	p.ask(f, q.member, v1alpha1.CommandSequence)
}

// handover returns the member that can succeed the primary. If by is set, only that member can.
func (r relief) handover() handover {
	m := r.old
	h := handover{stale: []*member{m}}
	if !m.version.known {
		h.wait("waiting for a response from sequence in " + m.name())
		return h
	}
	mine, _ := m.answer(v1alpha1.CommandSequence)
	if then := r.changedAt(); !mine.Began.After(then) {
		// This sequence excludes entries that only a member had that was stopped since.
		h.wait("waiting for a response from sequence in " + m.name())
		h.asked = append(h.asked, question{member: m, since: then})
		return h
	}
	for _, o := range r.members {
		if !r.couldSucceed(o) {
			continue
		}
		if !hasAllOf(o, m.version.sequence, mine.Ended) {
			h.wait(fmt.Sprintf("waiting for %s to catch up with %s", o.name(), m.name()))
			h.asked = append(h.asked, question{member: o, since: mine.Ended})
			continue
		}
		if h.successor == nil || isBetterPlaced(o, h.successor) > 0 {
			h.successor = o
		}
	}
	if h.successor == nil {
		h.wait("no member can take over from " + m.name())
	}
	return h
}

// isBetterPlaced compares members with equally new copies. In this order, it prefers a member that
// is not in spec.maintenance, whose pod is Ready, whose pod was created from the current template,
// and that should not leave its Node. It returns 1 if the first member is better, and -1 if the
// second is.
func isBetterPlaced(m, than *member) int {
	return cmp.Or(
		truth(than.listed)-truth(m.listed),
		truth(podstate.Ready(m.pod))-truth(podstate.Ready(than.pod)),
		truth(m.upToDate)-truth(than.upToDate),
		truth(than.toLeave)-truth(m.toLeave),
	)
}

// wellPlaced reports whether a member may keep a role that it gets.
func (m *member) wellPlaced() bool { return !m.toLeave && !m.listed }

// couldSucceed reports whether a member could succeed a primary if its copy is new enough.
func (r relief) couldSucceed(m *member) bool { return r.whyNoSuccessor(m) == "" }

// hasAllOf reports whether a member has at least that sequence, as read after then.
func hasAllOf(m *member, sequence uint64, then time.Time) bool {
	r, said := m.answer(v1alpha1.CommandSequence)
	n, known := sequenceOf(r)
	return said && known && n >= sequence && r.Began.After(then)
}

// changedAt returns when the last mutating command in any member ended.
func (all members) changedAt() (last time.Time) {
	for _, m := range all {
		if at := m.changedAt(); at.After(last) {
			last = at
		}
	}
	return last
}

// switchOver gives the role of a primary to the member that a user ordered.
func switchOver(f *facts, p *plan) {
	o := overrideOf(f, v1alpha1.OrderSwitchoverTo)
	m := f.named(o.name)
	if m == nil || m.state == primary || !f.starts() || o.isSpent() {
		return
	}
	if !f.wellStaffed() {
		p.WaitFor(v1alpha1.ReasonHandingOver, fmt.Sprintf("the switchover to %s (%s) waits until no member is missing; missing: %s",
			m.name(), o.by(), f.whatIsMissing()))
		return
	}
	live := f.primaries()
	p.askVersions(f, live)
	all := copiesOf(live)
	if len(all) == 0 || !all.answered() {
		p.WaitFor(v1alpha1.ReasonHandingOver, "waiting for a response from sequence in "+namesOf(live))
		return
	}
	h := relief{facts: f, old: all.oldest(), by: m.name()}.handover()
	p.ready(f, h)
	if h.successor == nil {
		return
	}
	before, old := p.record, all.oldest()
	p.record.orders = o.begin(p.record.orders, old)
	if p.demote(f, old, m.name()+" takes over, as requested"); !p.sent {
		p.record = before
	}
}

// whatIsMissing states what keeps the set from being well staffed.
func (f *facts) whatIsMissing() string {
	var parts []string
	for _, m := range f.members {
		if why := f.whyOutOfPlace(m); why != "" {
			parts = append(parts, fmt.Sprintf("%s (%s)", m.name(), why))
		}
	}
	if n := f.wanted() - len(f.members); n > 0 {
		parts = append(parts, fmt.Sprintf("%d of %d pods", n, f.wanted()))
	}
	if n := f.target() - len(f.primaries()); n > 0 {
		parts = append(parts, fmt.Sprintf("%d of %d primaries", n, f.target()))
	}
	return cmp.Or(strings.Join(parts, ", "), "none, but some roles are not known yet")
}

// whyOutOfPlace states why a member is not in its expected state. It is "" if it is.
func (f *facts) whyOutOfPlace(m *member) string {
	switch {
	case m.command != nil:
		return "command " + m.command.Name + " is in progress"
	case m.parked:
		return ""
	case m.terminating():
		return "its pod is being deleted"
	case m.state == primary, f.isAtRest(m.state):
		return ""
	}
	return string(m.state)
}

// takeOverrides ends orders that are complete or impossible. It removes an annotation from the
// object.
func takeOverrides(f *facts, p *plan) {
	if !f.serves() || f.deleting() {
		return
	}
	for _, name := range orderNames {
		for _, o := range overridesOf(f, name) {
			if reason, detail := o.ends(); reason != "" {
				p.takeOverride(o, reason, detail)
				return
			}
		}
	}
}

// takeOverride ends an order. An order by annotation ends with the removal of the annotation. An
// order in the spec ends with an entry in the record.
func (p *plan) takeOverride(o override, reason, detail string) {
	if o.twin != nil {
		p.endTwin(o, reason, detail)
		return
	}
	set := o.set.DeepCopy()
	delete(set.Annotations, annotationOf[o.order])
	p.Do(action.Chain{{
		Verb:      action.Patch,
		Object:    set,
		From:      o.set,
		Unchanged: true,
		Reason:    reason,
		Detail:    detail,
	}})
}

func (p *plan) endTwin(o override, reason, detail string) {
	if p.sent {
		return // one record per pass
	}
	p.sent = true
	r, result := p.record, v1alpha1.OrderDone
	if reason == reasonRefused {
		result = v1alpha1.OrderRefused
		detail += ". To retry, give the order a new id"
	}
	r.orders = r.orders.ended(o.now, o.twin, result, detail)
	p.Do(action.Chain{o.store(r, reason, detail)})
}

// seedingEnds returns how a manual seeding ended, and why. It returns "" while it may go on.
func (o override) seedingEnds() (reason, detail string) {
	switch {
	case !o.couldBeMember():
		return reasonRefused, o.name + " was not seeded: no such member"
	case o.isListed() && !o.record.grantsName(o.name):
		return reasonRefused, o.name + " was not seeded: it is in spec.maintenance; remove it from that list first"
	case !o.record.hasGrants() && o.isSpent():
		return reasonRefused, o.name + " was not seeded: it was started and did not become primary"
	case !o.record.hasGrants():
		return "", ""
	case o.record.grantsName(o.name): // the grant precedes the seed, so the order is never used twice
		return reasonOverride, o.name + " is being seeded, as requested"
	}
	return reasonRefused, o.name + " was not seeded: a primary is running or may be running"
}

// couldBeMember reports whether a member of that name exists or is wanted.
func (o override) couldBeMember() bool {
	if o.named(o.name) != nil {
		return true
	}
	ordinal, ok := ordinalOf(o.set, o.name)
	return ok && ordinal < int(*o.set.Spec.Replicas)
}

// isListed reports whether the named member is in spec.maintenance.
func (o override) isListed() bool {
	m := o.named(o.name)
	return m != nil && m.listed
}

// switchoverEnds returns how a switchover ended, and why. It returns "" while it may go on.
func (o override) switchoverEnds() (reason, detail string) {
	m := o.named(o.name)
	switch {
	case m == nil:
		return reasonRefused, o.name + " was not promoted: no such member"
	case m.state == primary && m.grantedHere:
		return reasonOverride, o.name + " is primary, as requested"
	case m.listed:
		return reasonRefused, o.name + " was not promoted: it is in spec.maintenance; remove it from that list first"
	case m.state == unknown, len(o.record.commands) > 0, o.record.primaries() < o.target():
		return "", ""
	case o.isSpent():
		return reasonRefused, fmt.Sprintf("%s was not promoted: the former primary was already stopped or demoted for it; current primary: %s", o.name, namesOf(o.primaries()))
	case m.state != secondary:
		return reasonRefused, o.name + " was not promoted: it is not running as secondary"
	}
	for _, m := range o.primaries() {
		if o.failedToHandOver(m) {
			return reasonRefused, fmt.Sprintf(
				"%s was not promoted: demote of %s %s",
				o.name, m.name(), howFailed(int(m.failure.Code)),
			)
		}
	}
	return "", ""
}

// failedToHandOver reports whether the demotion of a primary failed after the user's order. If the
// user repeats the order after that, the primary is stopped (demote).
func (o override) failedToHandOver(m *member) bool {
	if m.failure == nil || m.failure.Command != v1alpha1.CommandDemote {
		return false
	}
	return !m.failure.Last.Time.Before(o.since().Truncate(time.Second))
}
