package statefulsingleton_test

// Moves of an operator. A pass reads the object, then the pods and their Nodes, and
// decides; then it writes. Anything can happen between two of these steps, including whole
// passes of another operator. A pass may choose any of the possible actions, so the order
// of its rules does not matter.

var decisions = []struct {
	words string
	may   func(view) bool
	write step
}{
	{"will set pod POD as holder", view.mayGrant, writeHolder},
	{"will grant pod POD, the holder", view.mayComplete, writeGrant},
	{"will name pod POD as successor", view.mayNameNext, writeNext},
	{"will adopt pod POD", view.mayAdopt, writeAdopted},
	{"will add the finalizer to pod POD", view.mayProtect, writeFinalizer},
	{"will remove the finalizer of pod POD", view.mayRelease, writeRelease},
	{"will remove the grant of pod POD", view.mayRevoke, writeRevoke},
	{"will release pod POD because the object is being deleted", view.mayLoose, writeLoose},
}

var writes = []struct {
	words string
	at    step
	do    func(view)
	helps bool
}{
	{"sets the holder", writeHolder, view.nameHolder, helps},
	{"sets the holder, and does not get the response", writeHolder, view.adoptTarget, mishap},
	{"creates the Lease", writeNewLease, view.createLease, helps},
	{"writes the Lease", writeLease, view.assignLease, helps},
	{"names the successor", writeNext, view.nameNext, helps},
	{"grants", writeGrant, view.grantTarget, helps},
	{"adopts", writeAdopted, view.adoptTarget, helps},
	{"adds the finalizer", writeFinalizer, view.protectTarget, helps},
	{"removes the finalizer", writeRelease, view.releaseTarget, helps},
	{"removes the grant", writeRevoke, view.revokeTarget, helps},
	{"releases the pod of the deleted object", writeLoose, view.looseTarget, helps},
	{"removes the finalizer of the object", writeFree, view.freeObject, helps},
	{"releases the pod", writeLetGo, view.letTargetGo, mishap},
}

// passes returns all moves of an operator.
func passes() []move {
	all := []move{
		{"OPERATOR reads the object", anOperator, view.canReadObject, view.readObject, helps},
		{"OPERATOR reads the Lease", anOperator, view.canReadLease, view.readLease, helps},
		{"OPERATOR will create the Lease", anOperator, view.mayCreateLease, willDo(writeNewLease), helps},
		{"OPERATOR reads the Lease, which has not changed for its duration", anOperator, view.canReadExpired, view.readExpired, helps},
		{"OPERATOR reads the pods, and will remove the finalizer of the object", anOperator, view.mayFree, view.willFree, helps},
		{"OPERATOR crashes, or aborts", anOperator, func(v view) bool { return v.process().at != idle }, view.die, helps},
		// Without a rule:
		{"OPERATOR reads that the object does not exist", anOperator, view.canReadNoObject, view.readNoObject, mishap},
		{"OPERATOR reads the pods, and will release pod POD", anOperatorOnAPod, view.mayLetGo, intends(writeLetGo), mishap},
		{"OPERATOR reads the pods, and would start pod POD", anOperatorOnAPod, view.mayReadPodsFirst, intends(readPodsFirst), mishap},
		{"OPERATOR reads the object and the pod of its holder", anOperator, view.canReadObjectLast, view.readObjectLast, mishap},
	}
	for _, d := range decisions {
		may := func(v view) bool { return v.hasRead() && d.may(v) }
		all = append(all, move{"OPERATOR reads the pods, and " + d.words, anOperatorOnAPod, may, intends(d.write), helps})
	}
	for _, w := range writes {
		at := func(v view) bool { return v.process().at == w.at }
		all = append(all, move{"OPERATOR " + w.words, anOperator, at, w.do, w.helps})
	}
	return all
}

func (v view) canReadObject() bool { return v.process().at == idle && v.object().made }

func (v view) readObject() {
	*v.process() = process{at: readObject, holder: v.object().holder, newest: true, seen: sight{used: v.object().leased, pending: v.object().pending}}
	if !v.m.obeys(nodesReadLast) {
		for n := range v.m.nodes {
			if v.s.nodes[n].word == outOfService {
				v.process().fenced |= 1 << n
			}
		}
	}
}

// intends ends the reads of a pass. From now on only the intended write is known.
func intends(at step) func(view) {
	return func(v view) {
		o, next, agent := v.process(), at, v.pod().leased
		if at == writeGrant && v.needsLease(agent) {
			next = writeHolder // again, because the object may have changed before the Lease was read
		}
		seen := sight{made: o.seen.made, same: o.seen.same, expired: o.seen.expired}
		if next != writeHolder && next != writeNext {
			seen, agent = sight{}, false
		}
		*o = process{at: next, target: slot(v.i + 1), newest: o.newest, same: true, seen: seen, agent: agent}
	}
}

func (v view) willFree() { *v.process() = process{at: writeFree, newest: true} }

// Without rule orphansWait: pods are released when there is no object.
func (v view) canReadNoObject() bool {
	return !v.m.obeys(orphansWait) && v.process().at == idle && !v.object().made
}

func (v view) readNoObject() { *v.process() = process{at: readNoObject} }

func (v view) mayLetGo() bool { return v.process().at == readNoObject && v.isNext() }

// Without rule objectReadFirst: the pods are read before the object and its holder.
func (v view) mayReadPodsFirst() bool {
	return !v.m.obeys(objectReadFirst) && v.process().at == idle && v.isNext()
}

func (v view) canReadObjectLast() bool {
	if v.process().at != readPodsFirst || !v.object().made || !v.starts() {
		return false
	}
	h := v.holder()
	return h == noPod || !v.of(int(h)-1).mayRun()
}

func (v view) readObjectLast() { v.process().at, v.process().newest = writeHolder, true }

// holder returns the holder in the object as it was read.
func (v view) holder() slot {
	if v.process().at == readPodsFirst { // the object is read now
		return v.object().holder
	}
	return v.process().holder
}

// The writes. Those that the API server would reject have been dropped, see dropRefused.

func (v view) die() { *v.process() = process{} }

func (v view) nameHolder() {
	o := v.process()
	if v.object().made {
		v.object().holder = o.target
		v.object().leased = v.object().leased || o.seen.made
		v.object().pending = o.at == writeHolder && (o.seen.made || o.agent)
		if o.gone {
			v.object().holder = noPod
		}
		v.s.touchObject(v.m, v.objectAt)
	}
	*o = process{at: writeGrant, target: o.target, same: o.same, gone: o.gone, seen: o.seen, agent: o.agent}
	if v.needsLease(o.agent) {
		o.at = writeLease
	}
}

// adoptTarget makes the first write of a grant without the second.
func (v view) adoptTarget() {
	v.nameHolder()
	v.die()
}

// target returns the pod to write to, and ends the operator's pass.
func (v view) target() *pod {
	i := int8(v.process().target) - 1
	v.s.touch(i)
	v.die()
	return &v.s.pods[i]
}

// grantTarget sets annotation and finalizer in one patch.
func (v view) grantTarget() {
	gone := v.process().gone
	p := v.target()
	if !p.made {
		return
	}
	p.grant = ownGrant
	if gone { // the write is by name, and reaches another pod
		p.grant = foreignGrant
	}
	if v.m.obeys(grantBringsFinalizer) {
		p.kept, p.unwatched = true, false
	}
}

func (v view) protectTarget() {
	p := v.target()
	p.kept, p.unwatched = v.m.obeys(protects), false
}

func (v view) releaseTarget() { v.target().kept = false }

func (v view) revokeTarget() {
	p := v.target()
	p.grant = noGrant
	p.kept = p.kept && v.m.revokes != grantAndFinalizer
}

func (v view) looseTarget() {
	p := v.target()
	p.kept = false
	p.unwatched = !p.leased && (p.unwatched || v.object().dying || !v.object().made)
}

// freeObject removes the object. Its pods are unwatched until a later object adds its
// finalizer.
func (v view) freeObject() {
	for i := range v.s.pods {
		v.s.pods[i].older = v.s.pods[i].leased
		if p := &v.s.pods[i]; p.made && !p.leased && (p.kept || p.grant == ownGrant || !p.gated) {
			p.unwatched = true
		}
	}
	*v.object() = object{}
	v.rival().younger = false
	v.s.touchObject(v.m, v.objectAt)
	v.die()
}

func (v view) letTargetGo() {
	p := v.target()
	p.grant, p.unwatched = ownGrant, true
}
