package main

import (
	"slices"
	"strings"
	"time"
)

// move is a move of the model that writes the Lease.
type move string

// The moves.
const (
	creation   move = "creation"
	renewal    move = "renewal"
	handover   move = "handover"
	naming     move = "naming"     // of a successor, or of none
	assignment move = "assignment" // of a free Lease, or of a new epoch to the same pod
	takeover   move = "takeover"   // of the Lease from a holder
	release    move = "release"    // of the Lease of a member that is not primary
	upkeep     move = "upkeep"     // of metadata that the protocol does not use
)

// boundBy are the rules by which moves are bound to the version that they replace.
var boundBy = map[move]rule{
	renewal: renewalBound, handover: handoverBound, naming: namingBound, assignment: assignmentBound,
	takeover: takeoverBound, release: takeoverBound,
}

// checkHistory checks the writes of the Leases of a name.
func (c *checker) checkHistory(h *history) {
	for i, l := range h.lives {
		var former life
		if i > 0 {
			former = h.lives[i-1]
		}
		c.checkFirst(l.first(), former)
		c.checkRecreated(l, former)
		for k := 1; k < len(l); k++ {
			c.checkStep(l[k-1], l[k])
		}
	}
}

// checkFirst checks the first version of a Lease. former are the writes of the Lease that it replaces.
func (c *checker) checkFirst(w *write, former life) {
	if !w.created {
		return // it is older than the audit log
	}
	c.steps[creation]++
	c.require(c.isOperator(w.by), writtenByOperator, w, "%s has created it", w.by)
	continues := isMember(w.lease) && w.after.continues(former)
	c.require(w.after.holder == "" || continues, createdFree, w, "it was created with holder %s", w.after.holder)
}

// continues reports whether a Lease has the holder of the one that it replaces, or a higher epoch.
func (s *state) continues(former life) bool {
	if former == nil {
		return false
	}
	last := &former.last().after
	return last.isHeldBy(s.holder, s.epoch) || s.epoch > last.epoch
}

// checkRecreated checks that the epochs of a StatefulSingleton increase although its Lease was recreated. Those of a
// member begin again if it had no grant.
func (c *checker) checkRecreated(l, former life) {
	if former == nil || !isSingleton(l.first().lease) {
		return
	}
	last := &former.last().after
	i := slices.IndexFunc(l, func(w *write) bool { return w.after.holder != "" })
	if i < 0 || l[i].after.owner != last.owner || last.owner == "" {
		return
	}
	c.require(l[i].after.epoch > last.epoch, epochsIncrease, l[i], "the first holder of the recreated Lease has epoch %d, and the former Lease had epoch %d", l[i].after.epoch, last.epoch)
}

func (c *checker) isOperator(by requester) bool {
	return strings.HasPrefix(by.account, "system:serviceaccount:") && strings.HasSuffix(by.account, ":"+c.controller)
}

// checkStep checks a version against the former one.
func (c *checker) checkStep(before, after *write) {
	if after.bound > before.after.version {
		c.checkGap(before, after)
		return
	}
	c.checks[everyVersionLogged]++
	s := step{c.moveOf(before, after), before, after}
	c.moves[after] = s
	c.steps[s.move]++
	if bound := boundBy[s.move]; bound != "" {
		c.require(after.bound == before.after.version, bound, after, "the %s by %s is bound to version %d, and has replaced version %d",
			s.move, after.by, after.bound, before.after.version)
	}
	switch s.move {
	case renewal:
		c.checkRenewal(s)
		c.renewed[after.lease] = after
	case handover:
		c.checkHandover(s)
	case naming:
		c.checkNaming(s)
	case assignment, takeover, release:
		c.checkAssignment(s)
	}
}

// checkGap checks a version whose former version is not in the audit log: the API server was killed before it logged the
// write, or its response has timed out.
func (c *checker) checkGap(before, after *write) {
	c.missing++
	same := before.after.isHeldBy(after.after.holder, after.after.epoch)
	c.require(same, everyVersionLogged, after, "it was bound to version %d, which is not in the log; the holder was %s with epoch %d, and is %s with epoch %d",
		after.bound, nameOf(before.after.holder), before.after.epoch, nameOf(after.after.holder), after.after.epoch)
	if after.by.pod != "" && after.by.pod == after.after.holder {
		c.moves[after] = step{renewal, before, after}
		c.renewed[after.lease] = after
	}
}

// moveOf returns the move that a step can be. The checks of that move follow.
func (c *checker) moveOf(before, after *write) move {
	b, a := &before.after, &after.after
	sameHolder := b.isHeldBy(a.holder, a.epoch)
	timed := b.renewed != a.renewed || b.duration != a.duration || b.acquired != a.acquired
	byHolder := b.holder != "" && after.by.pod == b.holder
	renews := timed || byHolder
	switch {
	case sameHolder && b.next != a.next:
		return naming
	case sameHolder && renews:
		return renewal
	case sameHolder:
		return upkeep
	case byHolder && b.holder != a.holder:
		return handover
	case b.holder == "" || b.holder == a.holder:
		return assignment
	case isMember(after.lease) && a.holder == "" && a.fenced == b.fenced:
		return release
	}
	return takeover
}

func (c *checker) checkRenewal(s step) {
	b, a := &s.before.after, &s.after.after
	c.require(s.after.by.pod != "" && s.after.by.pod == b.holder, renewedByHolder, s.after, "%s has renewed it, and its holder is %s", s.after.by, nameOf(b.holder))
	c.require(b.acquired == a.acquired && b.fenced == a.fenced && b.rest == a.rest, itsFields, s.after, "the renewal has changed other fields than renewTime and leaseDurationSeconds")
}

func (c *checker) checkHandover(s step) {
	b, a := &s.before.after, &s.after.after
	named := isSingleton(s.after.lease) && b.next != "" && a.holder == b.next
	c.require(named, handoverNamed, s.after, "%s has handed over to %s, and the successor is %s", b.holder, nameOf(a.holder), nameOf(b.next))
	c.require(a.epoch == b.epoch+1, epochsIncrease, s.after, "the handover has changed the epoch from %d to %d", b.epoch, a.epoch)
	c.require(a.next == "" && b.fenced == a.fenced && b.rest == a.rest, itsFields, s.after, "the handover has not removed the successor, or has changed other fields")
}

func (c *checker) checkNaming(s step) {
	b, a := &s.before.after, &s.after.after
	c.require(c.isOperator(s.after.by), writtenByOperator, s.after, "%s has named %s as the successor", s.after.by, nameOf(a.next))
	same := b.renewed == a.renewed && b.duration == a.duration && b.acquired == a.acquired
	c.require(same && b.fenced == a.fenced && b.rest == a.rest, itsFields, s.after, "the write that names a successor has changed other fields")
}

// checkAssignment checks a write that changes the holder, or its epoch. The release of a member is not checked against
// the reports about its role, which are not in the audit log.
func (c *checker) checkAssignment(s step) {
	b, a := &s.before.after, &s.after.after
	c.require(c.isOperator(s.after.by), writtenByOperator, s.after, "%s has changed the holder from %s to %s", s.after.by, nameOf(b.holder), nameOf(a.holder))
	c.require(a.next == "" && b.rest == a.rest, itsFields, s.after, "the %s has not removed the successor, or has changed other fields", s.move)
	increases := a.epoch > b.epoch || a.epoch == b.epoch && a.holder == ""
	c.require(increases, epochsIncrease, s.after, "the %s has changed the epoch from %d to %d, and the holder from %s to %s", s.move, b.epoch, a.epoch, nameOf(b.holder), nameOf(a.holder))
	if s.move == takeover {
		c.checkTakeover(s)
	}
}

// checkTakeover checks that the former holder runs no program any more. The operator measures from when it has seen the
// version that it replaces, which is never before the write was received.
func (c *checker) checkTakeover(s step) {
	b := &s.before.after
	unchanged := s.after.received.Sub(s.before.received)
	proof := c.endingOf(s.after, b.holder)
	c.require(unchanged+c.skew >= b.duration || proof != nil, watchesWholeTime, s.after,
		"%s was removed after %s without a change, the duration is %s, and its pod has not ended before", b.holder, unchanged.Round(time.Millisecond), b.duration)
}

// endingOf returns a proof, before a write, that a pod has ended. It returns nil if there is none. A node counts as off if
// that was stated after the last renewal.
func (c *checker) endingOf(w *write, pod string) *ending {
	namespace := namespaceOf(w.lease)
	name, _, _ := strings.Cut(pod, "_")
	identity := namespace + "/" + pod
	last := c.renewed[w.lease]
	for _, e := range c.trace.endings {
		isPod := e.pod == identity || e.pod == namespace+"/"+name
		isNode := e.node != "" && e.node == c.trace.homes[identity]
		isOlder := last != nil && last.by.pod == pod && e.at.Before(last.received)
		concerns := isPod || isNode && !isOlder
		if concerns && !e.at.After(w.received.Add(c.skew)) {
			return e
		}
	}
	return nil
}

func nameOf(holder string) string {
	if holder == "" {
		return "none"
	}
	return holder
}
