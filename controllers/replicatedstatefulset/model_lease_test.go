package replicatedstatefulset_test

import (
	"cmp"
	"slices"
)

// The Lease of each member, as one more proof that a member is not primary. Process 1 of a member's container renews
// the Lease while it names the pod, and ends the container if it cannot. A start has the epoch of the grant, and
// begins only if process 1 renews the Lease of this epoch.
//
// As in the model of a StatefulSingleton, a write that is bound to a Lease which has not changed for its duration ends
// the container, and a renewal takes no time. The model in controllers/internal/fencing shows why.

// modelEpoch is an epoch of a member, compared with that of its Lease. Lower ones are older.
type modelEpoch int8

const (
	modelNoEpoch   modelEpoch = 0
	modelSameEpoch modelEpoch = 10
	modelNextEpoch modelEpoch = 11 // the Lease has not been written for it
)

// modelLeasesBound are the rules of writes of a Lease.
const modelLeasesBound = ruleAssignmentBound | ruleTakeoverBound | ruleReleaseBound

// modelSight is what the leader has read of the Lease of a member.
type modelSight struct {
	of      int8 // the index of the member plus 1
	holds   bool // it names the pod
	epoch   modelEpoch
	same    bool // the Lease has the resourceVersion that was read
	expired bool // it has not changed for its duration
}

var leaseMoves = []modelMove{
	{"the agent of MEMBER renews its Lease", func(v modelView) bool { return v.member().holds }, modelView.renew},
	{"the agent of MEMBER sees that its Lease does not name it", func(v modelView) bool { return !v.member().holds && v.member().armed != modelNoEpoch }, func(v modelView) { v.member().armed = modelNoEpoch }},

	{"the leader reads the Lease of MEMBER", modelView.canLook, func(v modelView) { v.look(false) }},
	{"the leader reads the Lease of MEMBER, which has expired", func(v modelView) bool { return v.canLook() && v.member().holds }, func(v modelView) { v.look(true) }},
	{"the leader decides to name MEMBER in its Lease", modelView.mayName, modelDecides(modelNames)},
	{"the leader decides to take over the Lease of MEMBER", modelView.mayTakeOver, modelDecides(modelTakesOver)},
	{"the leader decides that the grant of MEMBER has ended with its Lease", modelView.isRevoked, modelDecides(modelRevokes)},
	{"the leader decides to release the Lease of MEMBER", modelView.mayRelease, modelDecides(modelReleases)},
}

// moves returns the moves of a world.
func (m *setModel) moves() []modelMove {
	if m.has(faultLeases) {
		return append(setMoves[:len(setMoves):len(setMoves)], leaseMoves...)
	}
	return setMoves
}

// isLeased reports whether a member has a Lease. The Leases of members do not depend on one another, so that one is
// enough in a large world.
func (m *setModel) isLeased(i int) bool {
	return m.has(faultLeases) && (i == 0 || !m.has(faultOneLease))
}

// writes returns the pending writes.
func (s *modelState) writes() []*modelWrite { return []*modelWrite{&s.leader.write, &s.former} }

// touchLease changes the resourceVersion of a Lease.
func (s *modelState) touchLease(i int) {
	if int(s.leader.sight.of) == i+1 {
		s.leader.sight.same = false
	}
	for _, w := range s.writes() {
		if int(w.target) == i {
			w.bound = false
		}
	}
}

// epochs returns the epochs of a member.
func (s *modelState) epochs(i int) []*modelEpoch {
	x := &s.members[i]
	all := []*modelEpoch{&x.armed, &x.grantEpoch, &x.requestEpoch, &s.leader.grants[i]}
	if int(s.leader.sight.of) == i+1 {
		all = append(all, &s.leader.sight.epoch)
	}
	for _, w := range s.writes() {
		if int(w.target) == i {
			all = append(all, &w.epoch)
		}
	}
	return slices.DeleteFunc(all, func(e *modelEpoch) bool { return *e == modelNoEpoch })
}

// shift begins the next epoch of a member's Lease.
func (s *modelState) shift(i int) {
	for _, e := range s.epochs(i) {
		*e--
	}
}

// rank numbers the former epochs of a member by their order, which is all that matters.
func (s *modelState) rank(i int) {
	all := s.epochs(i)
	slices.SortFunc(all, func(a, b *modelEpoch) int { return cmp.Compare(*b, *a) })
	last, rank := modelSameEpoch, modelSameEpoch
	for _, e := range all {
		if *e >= modelSameEpoch {
			continue
		}
		if *e != last {
			last, rank = *e, rank-1
		}
		*e = rank
	}
}

// Agents.

func (v modelView) renew() {
	v.member().armed = modelSameEpoch
	v.s.touchLease(v.at)
}

// begins reports whether a request that has reached the container begins there.
func (v modelView) begins() bool {
	x := v.member()
	switch {
	case !v.m.isLeased(v.at), !v.m.obeys(ruleArmed):
		return true
	case !v.m.obeys(ruleArmedEpoch):
		return x.armed != modelNoEpoch
	}
	return x.armed == x.requestEpoch
}

// The leader. A pass reads the Leases before the object.

func (v modelView) canLook() bool {
	inOrder := !v.leader().read || v.leader().stale || !v.m.obeys(ruleLeaseFirst)
	return v.isFree() && inOrder && v.m.isLeased(v.at)
}

func (v modelView) look(expired bool) {
	if v.m.obeys(ruleLeaseFirst) {
		v.leader().forget()
	}
	v.leader().sight = modelSight{of: int8(v.at + 1), holds: v.member().holds, epoch: modelSameEpoch, same: true, expired: expired}
}

// decidesRole reports whether the leader has read all that a decision about a role requires.
func (v modelView) decidesRole() bool {
	return v.decides() && (v.decidesLease() || !v.m.isLeased(v.at))
}

// forget ends a pass.
func (p *modelProcess) forget() {
	p.read, p.stale, p.grants, p.sight = false, false, [2]modelEpoch{}, modelSight{}
}

func (v modelView) readObject() {
	l := v.leader()
	l.read, l.stale = true, false
	for i := range v.s.members {
		l.grants[i] = v.s.members[i].grantEpoch
	}
}

// decidesLease reports whether the leader has read the object, which can have changed since, and the Lease of this
// member.
func (v modelView) decidesLease() bool {
	return v.isFree() && v.leader().read && int(v.leader().sight.of) == v.at+1
}

// grantSeen returns the epoch of the member's grant, as the leader has read it.
func (v modelView) grantSeen() modelEpoch { return v.leader().grants[v.at] }

func (v modelView) mayName() bool {
	return v.decidesLease() && v.grantSeen() > v.leader().sight.epoch
}

func (v modelView) mayTakeOver() bool {
	l := v.leader().sight
	return v.decidesLease() && l.expired && l.holds && v.grantSeen() != modelNoEpoch && v.grantSeen() <= l.epoch
}

func (v modelView) isRevoked() bool {
	x, l := v.member(), v.leader().sight
	if !v.decides() || !v.decidesLease() || x.granted == modelNone {
		return false
	}
	ended := x.grantEpoch == l.epoch && !l.holds
	return ended || x.grantEpoch < l.epoch
}

func (v modelView) mayRelease() bool {
	idle := v.grantSeen() == modelNoEpoch || !v.m.obeys(ruleReleaseAfterGrant)
	return v.decidesLease() && v.leader().sight.holds && idle
}

// epochOfGrant returns the epoch of a grant that is about to be written.
func (v modelView) epochOfGrant(at modelStep) modelEpoch {
	l := v.leader().sight
	switch {
	case !v.m.isLeased(v.at):
		return modelNoEpoch
	case at == modelRecords, at == modelAdopts:
		return min(l.epoch+1, modelNextEpoch)
	}
	return v.grantSeen()
}

// leaseRules are the rules by which a write of a Lease is refused if the Lease has changed.
var leaseRules = map[modelStep]modelRule{
	modelAssigns: ruleAssignmentBound, modelNames: ruleAssignmentBound, modelTakesOver: ruleTakeoverBound, modelReleases: ruleReleaseBound,
}

// writeLease executes a write of a Lease, and reports whether it succeeds.
func (v modelView) writeLease(w modelWrite) bool {
	if !w.bound && v.m.obeys(leaseRules[w.at]) {
		return false
	}
	x := v.member()
	x.holds = w.at == modelAssigns || w.at == modelNames
	switch {
	case x.holds && w.epoch == modelNextEpoch:
		v.s.shift(v.at)
	case w.at == modelTakesOver && w.bound && x.armed != modelNoEpoch:
		v.crash()
	}
	v.s.touchLease(v.at)
	return true
}

// normalizeLeases makes states equal in which a write of a Lease would be refused, or which differ in epochs that
// have no effect.
func (s *modelState) normalizeLeases(m *setModel) {
	l := &s.leader.sight
	l.expired = l.expired && l.same
	if l.holds && !l.same && m.obeys(modelLeasesBound) {
		*l = modelSight{}
	}
	for _, w := range s.writes() {
		refused := w.at.writesLease() && !w.bound && m.obeys(modelLeasesBound)
		// The leader has yet to see that its start is not sent.
		isSeen := w == &s.leader.write && w.at == modelAssigns
		if refused && !isSeen {
			*w = modelWrite{}
		}
	}
	for i := range s.members {
		x := &s.members[i]
		if x.granted == modelNone {
			x.grantEpoch = modelNoEpoch
		}
		if !x.request {
			x.requestEpoch = modelNoEpoch
		}
		s.rank(i)
	}
}
