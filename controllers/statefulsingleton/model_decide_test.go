package statefulsingleton_test

// Decisions of an operator about the data it has read, as in plan.go.

func (v view) stopped() bool {
	p := v.pod()
	switch {
	case p.phase == living:
		return p.shown == terminated && !v.m.obeys(stoppedNeedsPhase)
	case p.shown == nothing:
		// The kubelet refused the pod before it ran, unless it ran once.
		return p.phase == ended && !p.kept && !v.granted() && (p.gated || !v.m.obeys(stoppedNeedsStatuses)) ||
			!v.m.obeys(stoppedNeedsContainers)
	case p.shown == up:
		return !v.m.obeys(stoppedNeedsContainers)
	}
	return p.phase != collected || !v.m.obeys(stoppedNeedsKubelet)
}

// fenced reports whether the machine is off and the pod cannot start when it is on again.
func (v view) fenced() bool {
	p := v.pod()
	never := p.dying || p.phase != living || v.m.revokes != nothingElse && p.gated && p.grant != ownGrant
	return v.onFencedNode() && (never || !v.m.obeys(fenceNeedsEnd))
}

func (v view) onFencedNode() bool {
	n := v.node()
	switch {
	case !v.m.obeys(nodesReadLast):
		return v.process().fenced&(1<<v.nodeAt) != 0
	case !v.m.obeys(fenceNeedsWord):
		return n.machine != works
	}
	return n.word == outOfService && (n.machine != works || !v.m.obeys(fenceNeedsSilence))
}

// listed reports whether the pod is listed by the selector's labels or by those of the
// webhook.
func (v view) listed() bool {
	p := v.pod()
	return p.made && (p.labels == matching || p.labels == marked && v.m.obeys(relabelledCount))
}

func (v view) isHolder() bool { return v.holder() == slot(v.i+1) }

// seen reports whether the pod is listed or is read by the holder's name.
func (v view) seen() bool {
	named := v.isHolder() || v.process().seen.holder == slot(v.i+1)
	return v.listed() || named && v.pod().made && v.m.obeys(holderByName)
}

func (v view) mayRun() bool {
	p := v.pod()
	switch {
	case !v.seen() || v.stopped() || v.fenced():
		return false
	case p.leased: // the finalizer proves nothing, because the Lease decides
		return v.agentMayRun() || v.isHolder() && v.lives() && v.process().seen.pending
	case p.grant == ownGrant && v.m.obeys(grantedCount):
		return true
	case p.kept && v.m.obeys(grantedCount):
		return true
	case p.gated:
		return v.isHolder() && v.lives() && v.m.obeys(namedCount)
	}
	return v.m.obeys(ungatedCount) && (!p.late || v.m.obeys(newcomersCount))
}

// lives reports whether the pod that is named holder can still run: it was granted, or
// could be.
func (v view) lives() bool {
	p := v.pod()
	ended := p.phase != living && v.m.obeys(endedWaitsNoMore)
	return p.grant == ownGrant || !p.dying && !ended && v.m.obeys(holderStays)
}

// isNext reports whether the pod waits and no pod may run.
func (v view) isNext() bool {
	if !v.pod().waiting() || v.onFencedNode() || v.mayRun() {
		return false
	}
	blockers := 0
	if v.unseenMayRun() {
		blockers = 2
	}
	for i := range v.m.pods {
		if v.of(i).mayRun() {
			blockers++
		}
	}
	return blockers == 0 || blockers == 1 && !v.m.obeys(liveRead)
}

// starts reports whether the object may start pods.
func (v view) starts() bool {
	stops := v.rival().made && v.m.obeys(rivalsStop) || v.object().younger && v.m.obeys(youngerYields)
	return !stops && (v.object().settled || !v.m.obeys(settles))
}

func (v view) mayGrant() bool {
	if v.pod().leased && !v.process().seen.made {
		return false
	}
	return v.starts() && v.isNext()
}

func (v view) mayComplete() bool {
	if v.pod().leased {
		return v.mayCompleteLease()
	}
	return v.isHolder() && v.mayRun() && v.pod().grant != ownGrant && v.lives() && v.freesLease()
}

func (v view) mayAdopt() bool {
	if v.pod().leased && v.m.obeys(adopts) {
		return v.mayAdoptLeased()
	}
	if !v.m.obeys(adopts) || !v.mayRun() || v.pod().grant != ownGrant {
		return false
	}
	h := v.holder()
	return h == noPod || !v.of(int(h)-1).mayRun()
}

func (v view) mayProtect() bool {
	p := v.pod()
	named := v.isHolder() && !v.granted()
	due := !p.kept && (v.m.obeys(protects) || p.unwatched)
	return due && v.mayRun() && !p.dying && !named
}

func (v view) mayRelease() bool { return v.seen() && v.pod().kept && !v.mayRun() }

func (v view) mayRevoke() bool {
	p := v.pod()
	return v.m.revokes != nothingElse && v.seen() && v.onFencedNode() && p.gated && p.grant == ownGrant && p.phase == living
}

// mayEnd reports whether the object is terminating, no pod waits, and its holder does not
// need it.
func (v view) mayEnd() bool {
	if !v.process().newest || !v.object().dying {
		return false
	}
	for i := range v.m.pods {
		of := v.of(i)
		overlooked := of.isHolder() && !v.m.obeys(objectStaysForHolder)
		if of.pod().waiting() && !of.granted() && !overlooked {
			return false
		}
	}
	return true
}

func (v view) mayLoose() bool { return v.mayEnd() && v.listed() && v.pod().kept }

// mayFree reports whether the object may end and all pods are released.
func (v view) mayFree() bool {
	if !v.hasRead() {
		return false
	}
	for i := range v.m.pods {
		if of := v.of(i); of.listed() && of.pod().kept {
			return false
		}
	}
	return v.mayEnd()
}
