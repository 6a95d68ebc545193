package statefulsingleton_test

// The Lease of pods whose program an agent runs, as one more proof that a program has ended. The model in
// controllers/internal/fencing has clocks and networks, and shows that a takeover which is bound to a Lease that has
// not changed for its duration finds no program of an agent running. Here a write that is bound to such a Lease
// ends these programs, and a renewal takes no time. A renewal that changes the Lease between a read and a write of an operator is an operator
// that aborts.

// lease is the Lease of an object.
type lease struct {
	made   bool
	fresh  bool // nothing has been written since it was created
	holder slot
	next   slot // the successor, as an operator has named it
}

// sight is what an operator has read of the Lease.
type sight struct {
	made, fresh bool
	holder      slot
	same        bool // the Lease still has the resourceVersion that was read
	used        bool // the object has had a holder while there was a Lease
	pending     bool // the Lease has not been written since the holder was named
	expired     bool // it has not changed for its duration
}

var agents = []move{
	{"the program of pod POD ends, and its agent hands the Lease over", aPod, view.canHandOver, func(v view) { v.handOver(); v.end() }, mishap},
	{"the program of pod POD crashes, and its agent hands the Lease over", aPod, view.canHandOverCrash, func(v view) { v.handOver(); v.crash() }, mishap},
}

func (s *state) touchLease() {
	for i := range s.operators {
		s.operators[i].seen.same = false
	}
}

func (s *state) isLeaseHolder(i int) bool { return s.lease.holder == slot(i+1) }

// forgetLeaseOf removes an identity that no pod and no program has any more.
func (s *state) forgetLeaseOf(i int8) {
	was := slot(i + 1)
	if s.lease.holder == was {
		s.lease.holder = noPod
	}
	if s.lease.next == was {
		s.lease.next = noPod
	}
	for k := range s.operators {
		o := &s.operators[k]
		if o.seen.holder == was {
			o.seen.holder = noPod
		}
		if o.agent && o.target == was {
			*o = process{}
		}
	}
}

// changeLease changes the Lease, so that no holder of an object is pending.
func (s *state) changeLease(l lease) {
	s.lease = l
	s.touchLease()
	for k := range s.objects {
		s.objects[k].pending = false
	}
	for k := range s.operators {
		if s.operators[k].at == readObject {
			s.operators[k].seen.pending = false
		}
	}
}

// Agents.

func (v view) canMakeLeased() bool { return v.m.has(leases) && v.canMakeGated() }

func (v view) makeLeased() { *v.pod() = pod{made: true, gated: true, leased: true} }

func (v view) canRenew() bool { return v.s.lease.made && v.s.isLeaseHolder(int(v.i)) }

// renew changes the Lease when an agent starts its program.
func (v view) renew() {
	if v.pod().leased && v.canRenew() {
		v.s.touchLease()
	}
}

func (v view) canHandOver() bool {
	p := v.pod()
	return p.leased && p.program == working && v.connected() && v.canRenew() && v.s.lease.next != noPod
}

func (v view) canHandOverCrash() bool { return v.m.has(crashes) && v.canHandOver() }

func (v view) handOver() {
	v.s.changeLease(lease{made: true, holder: v.s.lease.next})
}

func (v view) canLoseLease() bool { return v.m.has(lostLeases) && v.s.lease.made }

func (v view) loseLease() {
	v.s.lease = lease{}
	v.s.touchLease()
}

// Operators read the object, then the Lease, then the pods.

func (v view) canReadLease() bool { return v.m.has(leases) && v.process().at == readObject }

func (v view) readLease() {
	o, l := v.process(), v.s.lease
	o.at = readLease
	o.seen = sight{made: l.made, fresh: l.fresh, holder: l.holder, same: true, used: o.seen.used, pending: o.seen.pending}
}

func (v view) canReadExpired() bool { return v.canReadLease() && v.s.lease.made }

func (v view) readExpired() {
	v.readLease()
	v.process().seen.expired = true
}

// hasRead reports whether a pass has read everything but the pods.
func (v view) hasRead() bool {
	if v.m.has(leases) {
		return v.process().at == readLease
	}
	return v.process().at == readObject
}

// granted reports whether a pod has been started, as it was read.
func (v view) granted() bool {
	return v.pod().grant == ownGrant || v.pod().leased && v.process().seen.holder == slot(v.i+1)
}

// agentMayRun reports whether an agent may run its program. Who holds a Lease that was recreated is unknown.
func (v view) agentMayRun() bool {
	l := v.process().seen
	switch {
	case l.expired:
		return false
	case l.made && l.holder == slot(v.i+1):
		return true
	case l.made && !l.fresh:
		return false
	}
	return (l.used || v.pod().older) && v.m.obeys(newLeaseWaits)
}

// unseenMayRun reports whether the holder of the Lease is not among the pods.
func (v view) unseenMayRun() bool {
	h := v.process().seen.holder
	unseen := h != noPod && !v.s.pods[h-1].made
	return unseen && !v.process().seen.expired && v.m.obeys(unseenHolderCounts)
}

// freesLease reports whether the Lease, if there is one, can be taken from its holder.
func (v view) freesLease() bool {
	if v.unseenMayRun() {
		return false
	}
	for i := range v.m.pods {
		if i != int(v.i) && v.of(i).mayRun() {
			return false
		}
	}
	return true
}

// needsLease reports whether the Lease is written before a pod can start.
func (v view) needsLease(agent bool) bool {
	return agent || v.process().seen.made && v.m.obeys(grantFollowsLease)
}

func (v view) mayCompleteLease() bool {
	due := v.isHolder() && v.lives() && v.process().seen.made && v.process().seen.pending
	return due && v.freesLease()
}

// mayAdoptLeased reports whether the holder of the Lease becomes that of the object. A pending holder without an agent
// may be about to be granted. One with an agent starts only by a write of the Lease.
func (v view) mayAdoptLeased() bool {
	due := !v.isHolder() && v.granted() && v.mayRun()
	h := v.holder()
	isGate := h != noPod && !v.s.pods[h-1].leased
	stays := v.process().seen.pending && isGate && v.m.obeys(pendingStays)
	return due && !stays
}

// mayNameNext reports whether a waiting pod can take over from the holder of the Lease, which alone may run.
func (v view) mayNameNext() bool {
	h := v.process().seen.holder
	if !v.m.has(successors) || h == noPod || !v.pod().leased || !v.pod().waiting() || v.mayRun() || v.unseenMayRun() {
		return false
	}
	for i := range v.m.pods {
		if i != int(h)-1 && v.of(i).mayRun() {
			return false
		}
	}
	return v.starts()
}

func (v view) mayCreateLease() bool { return v.process().at == readLease && !v.process().seen.made }

func willDo(at step) func(view) {
	return func(v view) { *v.process() = process{at: at, seen: sight{same: v.process().seen.same}} }
}

// leaseRefused reports whether the API server refuses a write of the Lease.
func (o *process) leaseRefused(m *model, s *state) bool {
	switch o.at {
	case writeNewLease:
		return s.lease.made
	case writeLease:
		return !s.lease.made || !o.seen.same && m.obeys(assignmentBound)
	}
	return !s.lease.made || !o.seen.same
}

func (v view) createLease() {
	v.s.lease = lease{made: true, fresh: true}
	v.s.touchLease()
	v.die()
}

// assignLease makes the target the holder. If no agent runs the program of the target, no pod is the holder, and the
// grant follows.
func (v view) assignLease() {
	o := *v.process()
	if o.seen.expired && o.seen.same {
		v.endAgents()
	}
	next := lease{made: true}
	if o.agent {
		next.holder = o.target
	}
	v.s.changeLease(next)
	v.die()
	if !o.agent {
		*v.process() = process{at: writeGrant, target: o.target, same: o.same, gone: o.gone}
	}
}

func (v view) nameNext() {
	v.s.lease.next = v.process().target
	v.s.touchLease()
	v.die()
}

// endAgents ends all programs of agents, because none of them has renewed the Lease.
func (v view) endAgents() {
	for i := range v.m.pods {
		if p := &v.s.pods[i]; p.leased && p.program == working {
			v.of(i).crash()
		}
	}
}

func (s *state) leaseBits(r *renaming) uint64 {
	l := &s.lease
	b := is(l.made)<<5 | is(l.fresh)<<4 | r.slots[l.holder]<<2 | r.slots[l.next]
	for _, from := range r.pods {
		b = b<<2 | is(s.pods[from].leased)<<1 | is(s.pods[from].older)
	}
	for i := range s.objects {
		b = b<<2 | is(s.objects[r.objects[i]].leased)<<1 | is(s.objects[r.objects[i]].pending)
	}
	for _, from := range r.operators {
		o := &s.operators[from]
		b = b<<5 | is(o.agent)<<4 | is(o.seen.made)<<3 | is(o.seen.fresh)<<2 | is(o.seen.same)<<1 | is(o.seen.used)
		b = b<<4 | is(o.seen.pending)<<3 | is(o.seen.expired)<<2 | r.slots[o.seen.holder]
	}
	return b
}
