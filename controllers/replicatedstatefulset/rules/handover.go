package rules

import (
	"cmp"
	"fmt"
	"time"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/record"
)

// switchOver gives the role of a primary to the member that a user ordered.
func switchOver(f *facts.Facts, p *Plan) {
	o := openOrderOf(f, v1alpha1.OrderSwitchoverTo)
	m := f.Named(o.name)
	if m == nil || m.State == record.Primary || !f.MayStartMembers() || o.isSpent() {
		return
	}
	if !f.WellStaffed() {
		p.WaitFor(v1alpha1.ReasonHandingOver, fmt.Sprintf("the switchover to %s (%s) waits until no member is missing; missing: %s",
			m.Name(), o.source(), f.WhatIsMissing()))
		return
	}
	live := f.Primaries()
	p.askVersions(f, live)
	all := copiesOf(live)
	if len(all) == 0 || !all.answered() {
		p.WaitFor(v1alpha1.ReasonHandingOver, "waiting for a response from sequence in "+facts.NamesOf(live))
		return
	}
	h := transfer{Facts: f, primary: all.oldest(), only: m.Name()}.findSuccessor()
	p.askForHandover(f, h)
	if h.successor == nil {
		return
	}
	before, old := p.Record, all.oldest()
	p.Record.Orders = o.begin(p.Record.Orders, old)
	if p.demote(f, old, m.Name()+" takes over, as requested"); !p.writesRecord {
		p.Record = before
	}
}

// stopWithSuccessor stops a primary when another member can take its role, with a copy as new as
// the primary's was a moment before.
func stopWithSuccessor(f *facts.Facts, p *Plan, m *facts.Member, why string) {
	r := transfer{Facts: f, primary: m}
	p.askDegraded(f)
	others, followed := r.otherPrimaries(), f.HasFollowers()
	lacking := f.Among(func(o *facts.Member) bool { return o != m && o.IsPrimary() && o.LacksData() })
	switch {
	case r.isSpare(others, followed):
		p.stop(f, m, why)
	case others == 0 && len(lacking) > 0:
		p.WaitFor(v1alpha1.ReasonHandingOver, fmt.Sprintf("%s is not stopped before others have all data: %s", m.Name(), facts.NamesOf(lacking)))
	case others == 0 && !followed && !m.ScaledDown:
		// No other member has its data, so the same member starts again. Its sequence must be on
		// record before the stop.
		p.askVersions(f, []*facts.Member{m})
		if m.Version.Known {
			p.stop(f, m, why+", and it has no secondary")
		} else {
			p.WaitFor(v1alpha1.ReasonHandingOver, "waiting for a response from sequence in "+m.Name())
		}
	case len(f.Primaries()) < f.WantedPrimaries():
		p.WaitFor(
			v1alpha1.ReasonHandingOver,
			"starting another primary before this one is stopped: "+m.Name(),
		)
	default:
		h := r.findSuccessor()
		p.askForHandover(f, h)
		if h.successor != nil {
			p.proven = true
			p.stop(f, m, fmt.Sprintf("%s, and %s can take over", why, h.successor.Name()))
		}
	}
}

// demoteWithSuccessor demotes a primary when another member can succeed it.
func demoteWithSuccessor(f *facts.Facts, p *Plan, r transfer, why string) {
	p.askVersions(f, []*facts.Member{r.primary})
	h := r.findSuccessor()
	p.askForHandover(f, h)
	if h.successor != nil {
		p.demote(f, r.primary, fmt.Sprintf("%s, and %s can take over", why, h.successor.Name()))
	}
}

// handover is the member that can succeed a primary, and the missing preconditions.
type handover struct {
	// successor has all data that the primary had when it was asked. It is nil while there is no
	// such member.
	successor *facts.Member
	// waiting is the reason why the handover is delayed.
	waiting string
	// toAsk are the members to ask for their sequence. toAskAgain are those whose last sequence is
	// older than that of the primary, or lower.
	toAsk      []*facts.Member
	toAskAgain []question
}

// transfer is a planned change of the primary: primary loses its role, and another member takes it.
type transfer struct {
	*facts.Facts
	primary *facts.Member
	// only is the name of the only member that may take the role. If it is "", any may.
	only string
	// avoidLeaving is true if the new primary must not be a member that should leave its Node.
	avoidLeaving bool
}

// isSpare reports whether a primary may stop without a successor: the other primaries are enough,
// or have the same data, or it is the only member.
func (r transfer) isSpare(others int, followed bool) bool {
	switch {
	case others >= r.WantedPrimaries():
		return true
	case others > 0 && !followed:
		return true
	}
	return r.Wanted() == 1 && !r.primary.ScaledDown
}

// otherPrimaries returns the number of other primaries that stay and have all data.
func (r transfer) otherPrimaries() int {
	n := 0
	for _, o := range r.Primaries() {
		if o != r.primary && !o.ScaledDown && !o.LacksData() {
			n++
		}
	}
	return n
}

// wait sets the reason of the delay, unless it is set already.
func (h *handover) wait(what string) {
	if h.waiting == "" {
		h.waiting = what
	}
}

// askForHandover asks for the sequences that a handover needs.
func (p *Plan) askForHandover(f *facts.Facts, h handover) {
	p.askVersions(f, h.toAsk)
	for _, q := range h.toAskAgain {
		p.askSince(f, q)
	}
	if h.waiting != "" {
		p.WaitFor(v1alpha1.ReasonHandingOver, h.waiting)
	}
}

// findSuccessor returns the member that can succeed the primary: one whose sequence, read after
// that of the primary, is at least as high.
func (r transfer) findSuccessor() handover {
	primary := r.primary
	h := handover{toAsk: []*facts.Member{primary}}
	if !primary.Version.Known {
		h.wait("waiting for a response from sequence in " + primary.Name())
		return h
	}
	answer, _ := primary.Answer(v1alpha1.CommandSequence)
	if then := r.ChangedAt(); !answer.Began.After(then) {
		// Another member was stopped or demoted after this sequence was read. This primary may have
		// received entries from it meanwhile, which the sequence does not include.
		h.wait("waiting for a response from sequence in " + primary.Name())
		h.toAskAgain = append(h.toAskAgain, question{Member: primary, after: then})
		return h
	}
	for _, o := range r.Members {
		if !r.couldSucceed(o) {
			continue
		}
		if !hasAllOf(o, primary.Version.Sequence, answer.Ended) {
			h.wait(fmt.Sprintf("waiting for %s to catch up with %s", o.Name(), primary.Name()))
			h.toAskAgain = append(h.toAskAgain, question{Member: o, after: answer.Ended})
			continue
		}
		if h.successor == nil || comparePlacement(o, h.successor) > 0 {
			h.successor = o
		}
	}
	if h.successor == nil {
		h.wait("no member can take over from " + primary.Name())
	}
	return h
}

// couldSucceed reports whether a member could succeed a primary if its copy is new enough.
func (r transfer) couldSucceed(m *facts.Member) bool { return r.whyNoSuccessor(m) == "" }

// whyNoSuccessor states why a member cannot succeed a primary, regardless of its copy. It is "" if
// it can.
func (r transfer) whyNoSuccessor(m *facts.Member) string {
	switch {
	case r.only != "" && m.Name() != r.only:
		return "another member is requested"
	case m.WhyNotStartable != "":
		return m.WhyNotStartable
	case m.Listed:
		return "it is in spec.maintenance"
	case r.WhyNoLease(m) != "":
		return r.WhyNoLease(m)
	case !r.IsAtRest(m.State):
		return string(m.State)
	case !r.avoidLeaving:
		return ""
	case m.ShouldLeaveNode:
		return whyToLeave(m)
	case m.Degraded():
		return "it is degraded"
	case r.primary.Unserved() == "" && m.Shown == record.Secondary && !podstate.Ready(m.Pod):
		return "its pod is not Ready"
	}
	return ""
}

// comparePlacement compares members with equally new copies. In this order, it prefers a member
// that is not in spec.maintenance, whose pod is Ready, whose pod was created from the current
// template, and that should not leave its Node. It returns 1 if the first member is better, and -1
// if the second is.
func comparePlacement(m, than *facts.Member) int {
	return cmp.Or(
		boolToInt(than.Listed)-boolToInt(m.Listed),
		boolToInt(podstate.Ready(m.Pod))-boolToInt(podstate.Ready(than.Pod)),
		boolToInt(m.UpToDate)-boolToInt(than.UpToDate),
		boolToInt(than.ShouldLeaveNode)-boolToInt(m.ShouldLeaveNode),
	)
}

// hasAllOf reports whether a member has at least that sequence, as read after then.
func hasAllOf(m *facts.Member, sequence uint64, then time.Time) bool {
	r, answered := m.Answer(v1alpha1.CommandSequence)
	n, known := record.SequenceOf(r)
	return answered && known && n >= sequence && r.Began.After(then)
}
