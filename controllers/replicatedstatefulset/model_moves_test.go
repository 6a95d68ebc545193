package replicatedstatefulset_test

import (
	"strconv"
	"strings"
)

// modelMove is something that can happen to a member.
type modelMove struct {
	words string
	can   func(modelView) bool
	do    func(modelView)
}

func (mv modelMove) say(member int) string {
	return strings.ReplaceAll(mv.words, "MEMBER", "member "+strconv.Itoa(member+1))
}

// modelView is a state as a move of a member sees it.
type modelView struct {
	m  *setModel
	s  *modelState
	at int
}

func (v modelView) member() *modelMember  { return &v.s.members[v.at] }
func (v modelView) leader() *modelProcess { return &v.s.leader }
func (v modelView) answer() *modelAnswer  { return &v.s.leader.answers[v.at] }
func (v modelView) seen() *modelEnd       { return &v.s.leader.starts[v.at] }

var setMoves = []modelMove{
	{"the start makes MEMBER primary", func(v modelView) bool { return v.member().start }, func(v modelView) { v.member().start, v.member().role = false, modelPrimary }},
	{"the start of MEMBER fails", func(v modelView) bool { return v.member().start }, func(v modelView) { v.member().start = false }},
	{"MEMBER runs as secondary", func(v modelView) bool { return v.member().role == modelIdle }, func(v modelView) { v.member().role = modelSecondary }},
	{"MEMBER steps down", modelView.canStepDown, func(v modelView) { v.member().role = modelSecondary }},
	{"the container of MEMBER ends, and another one begins", modelView.canCrash, modelView.crash},
	{"the kubelet reports the end of the former container of MEMBER", func(v modelView) bool { return v.member().reported == modelOutdated }, modelView.reportEnd},
	{"the kubelet reports the container of MEMBER", func(v modelView) bool { return v.member().reported != modelRunning }, modelView.reportContainer},
	{"the request reaches MEMBER", func(v modelView) bool { return v.member().request && !v.member().start }, func(v modelView) { v.member().request, v.member().start = false, v.begins() }},
	{"the request for MEMBER is lost", modelView.canLose, func(v modelView) { v.member().request = false }},
	{"the stream of the start of MEMBER breaks", modelView.canBreak, func(v modelView) { *v.seen() = modelUnseen }},
	{"no start of MEMBER can begin any more", modelView.canAge, modelView.age},

	{"the leader reads the object", func(v modelView) bool { return v.first() && v.isFree() && (!v.leader().read || v.leader().stale) }, modelView.readObject},
	{"the leader queries the status of MEMBER", modelView.canAsk, modelView.ask},
	{"the leader sees the start of MEMBER fail", modelView.canSeeFailure, modelSees(modelFailed)},
	{"the leader sees the start of MEMBER return 0", modelView.canSeeSuccess, modelSees(modelSucceeded)},
	{"the leader decides to start MEMBER", modelView.mayStart, modelDecides(modelRecords)},
	{"the leader decides that the start of MEMBER is over", modelView.mayEndStart, modelDecides(modelEndsStart)},
	{"the leader decides that the grant of MEMBER is over", modelView.mayEndGrant, modelDecides(modelEndsGrant)},
	{"the leader finds MEMBER running as primary", modelView.mayAdopt, modelDecides(modelAdopts)},
	{"the leader writes, or sends", func(v modelView) bool { return v.first() && !v.isFree() }, func(v modelView) { v.execute(&v.s.leader.write, true) }},
	{"another process leads", modelView.canDepose, modelView.depose},
	{"the former leader writes, or sends", func(v modelView) bool { return v.first() && v.s.former.at != modelIdleStep }, func(v modelView) { v.execute(&v.s.former, false) }},
	{"the former leader ends", func(v modelView) bool { return v.first() && v.s.former.at != modelIdleStep }, func(v modelView) { v.s.former = modelWrite{} }},
}

// first reports whether a move of the whole set may happen. It has no member, and so happens for the first one.
func (v modelView) first() bool { return v.at == 0 }

// isFree reports whether the leader has no pending write.
func (v modelView) isFree() bool { return v.leader().write.at == modelIdleStep }

// Containers.

func (v modelView) canStepDown() bool {
	return v.m.has(faultSteps) && v.member().role == modelPrimary && !v.member().start
}

// canCrash reports whether a container can end. The API server shows at most one earlier one.
func (v modelView) canCrash() bool {
	return v.m.has(faultCrashes) && v.member().reported == modelRunning
}

func (v modelView) crash() {
	x := v.member()
	if x.start && *v.seen() == modelAwaited {
		*v.seen() = modelUnseen
	}
	x.role, x.start, x.reported, x.armed = modelIdle, false, modelOutdated, modelNoEpoch
	x.granted, x.started = outdated(x.granted), outdated(x.started)
	x.nextYoung = x.young
	for _, w := range v.s.writes() {
		if int(w.target) == v.at {
			w.old = true
		}
	}
}

func outdated(c modelContainer) modelContainer {
	if c == modelCurrent {
		return modelOld
	}
	return c
}

// reportEnd ends the results about the former container. A result from the current one was taken for one of the
// former.
func (v modelView) reportEnd() {
	v.member().reported = modelEnded
	*v.answer() = modelUnasked
}

func (v modelView) reportContainer() {
	v.member().reported = modelRunning
	*v.answer() = modelUnasked
}

// Requests.

func (v modelView) canLose() bool { return v.m.has(faultStreams) && v.member().request }

func (v modelView) canBreak() bool { return v.m.has(faultStreams) && *v.seen() == modelAwaited }

// canAge reports whether so much time can pass that a request has arrived or is lost.
func (v modelView) canAge() bool {
	x := v.member()
	late := x.reported != modelRunning && v.m.obeys(rulePrompt)
	return x.young && !x.request && !late
}

// age lets that time pass. A process that is about to send the start does not send it any more.
func (v modelView) age() {
	v.member().young = false
	for _, w := range v.s.writes() {
		if !w.sendsTo(v.at) || !v.m.obeys(ruleInTime) {
			continue
		}
		if w == &v.s.leader.write {
			*v.seen() = modelFailed // it knows that it was not sent
		}
		if w.at == modelAssigns {
			w.at = modelNames // nothing is sent after it
			continue
		}
		*w = modelWrite{}
	}
}

// The leader.

// canAsk reports whether status can be sent, and would change an answer. One command runs at a time in a pod.
func (v modelView) canAsk() bool {
	busy := *v.seen() == modelAwaited || v.member().reported == modelEnded
	return !busy && *v.answer() != v.now()
}

// now returns the answer of the container that runs now. The request finds it by its name.
func (v modelView) now() modelAnswer { return modelSaysIdle + modelAnswer(v.member().role) }

func (v modelView) ask() { *v.answer() = v.now() }

func (v modelView) isOver() bool { return !v.member().request && !v.member().start }

func (v modelView) canSeeFailure() bool { return *v.seen() == modelAwaited && v.isOver() }

func (v modelView) canSeeSuccess() bool {
	early := v.m.has(faultEarly) && v.member().start
	return *v.seen() == modelAwaited && (v.isOver() || early)
}

func modelSees(end modelEnd) func(modelView) {
	return func(v modelView) {
		*v.seen() = end
		if v.m.obeys(ruleAnswersAfter) {
			*v.answer() = modelUnasked
		}
	}
}

func (v modelView) decides() bool { return v.isFree() && v.leader().read && !v.leader().stale }

func (v modelView) isNotPrimary() bool {
	return *v.answer() == modelSaysIdle || *v.answer() == modelSaysSecondary
}

func (v modelView) mayStart() bool {
	x, granted := v.member(), 0
	for i := range v.s.members {
		if v.s.members[i].granted != modelNone {
			granted++
		}
	}
	allowed := granted == 0 || !v.m.obeys(ruleOneGrant)
	return v.decidesRole() && allowed && x.started == modelNone && v.isNotPrimary() && *v.seen() != modelAwaited
}

// hasEnded reports whether a container on record has ended.
func (v modelView) hasEnded(c modelContainer) bool {
	if !v.m.obeys(ruleKubeletProves) {
		return true
	}
	return c == modelOld && v.member().reported != modelOutdated
}

func (v modelView) mayEndStart() bool {
	x := v.member()
	if !v.decides() || x.started == modelNone {
		return false
	}
	primary := *v.answer() == modelSaysPrimary
	switch {
	case *v.seen() == modelFailed:
		return true
	case *v.seen() == modelAwaited:
		return false
	case v.hasEnded(x.started):
		return !v.mayReachNext()
	case *v.seen() == modelSucceeded:
		return primary || !v.m.obeys(ruleZeroIsConfirmed)
	}
	return primary || !v.m.obeys(ruleUnknownStays)
}

// mayReachNext reports whether a start whose container has ended may have reached, or may yet reach, another one.
func (v modelView) mayReachNext() bool {
	x := v.member()
	reached := x.nextYoung && x.reported == modelRunning
	return x.young && v.m.obeys(ruleStrays) || reached && v.m.obeys(ruleStraysNext)
}

func (v modelView) mayEndGrant() bool {
	x := v.member()
	switch {
	case !v.decides(), x.granted == modelNone:
		return false
	case x.started != modelNone && v.m.obeys(ruleStartKeepsGrant):
		return false
	case !v.hasEnded(x.granted):
		return v.isNotPrimary()
	case !v.m.obeys(ruleGrantWaits), !v.m.obeys(ruleKubeletProves):
		return true
	case x.reported == modelEnded:
		return !x.young
	}
	return v.isNotPrimary()
}

func (v modelView) mayAdopt() bool {
	x := v.member()
	return v.decidesRole() && x.granted != modelCurrent && x.reported == modelRunning && *v.answer() == modelSaysPrimary
}

func modelDecides(at modelStep) func(modelView) {
	return func(v modelView) {
		l := v.leader()
		l.write = modelWrite{at: at, target: int8(v.at), old: v.member().reported == modelOutdated, newest: true, bound: l.sight.same, epoch: v.epochOfGrant(at)}
		l.forget()
	}
}

// container returns the container for which a write was decided.
func (w *modelWrite) container() modelContainer {
	if w.old {
		return modelOld
	}
	return modelCurrent
}

// execute executes a write of a process, which can have decided it long ago.
func (v modelView) execute(w *modelWrite, leads bool) {
	now := *w
	*w = modelWrite{}
	v.at = int(now.target)
	x := v.member()
	switch {
	case now.at == modelSends:
		v.send(now, leads)
		return
	case now.at == modelAssigns:
		v.assign(now, w, leads)
		return
	case now.at.writesLease():
		v.writeLease(now)
		return
	}
	if !now.newest && v.m.obeys(ruleBound) {
		return
	}
	switch now.at {
	case modelRecords:
		if v.m.obeys(ruleRecordFirst) {
			x.granted, x.started, x.grantEpoch = now.container(), now.container(), now.epoch
		}
		x.young, x.nextYoung = true, now.old
		if leads {
			*v.seen() = modelUnseen
		}
		v.s.touch()
		now.at = modelSends
		if v.m.isLeased(v.at) {
			now.at = modelAssigns
		}
		*w = now
		return
	case modelEndsStart:
		x.started = modelNone
	case modelEndsGrant:
		x.granted = modelNone
	case modelAdopts:
		x.granted, x.grantEpoch = now.container(), now.epoch
	case modelRevokes:
		x.granted, x.started = modelNone, modelNone
	}
	v.s.touch()
}

// assign names the pod in its Lease. If that succeeds, the process is about to send the start.
func (v modelView) assign(w modelWrite, pending *modelWrite, leads bool) {
	if v.writeLease(w) {
		w.at, w.epoch = modelSends, modelSameEpoch
		*pending = w
		return
	}
	if leads {
		*v.seen() = modelFailed // it was not sent
	}
}

func (v modelView) send(w modelWrite, leads bool) {
	x := v.member()
	x.requestEpoch = w.epoch
	if !v.m.obeys(ruleRecordFirst) {
		x.granted, x.started = w.container(), w.container()
		v.s.touch()
	}
	x.request = true
	if leads {
		*v.seen() = modelAwaited
		if v.m.obeys(ruleAnswersAfter) {
			*v.answer() = modelUnasked
		}
	}
}

// Leaders.

func (v modelView) canDepose() bool {
	pending := v.s.former.at == modelIdleStep || v.isFree()
	return v.m.has(faultDeposed) && v.first() && pending && *v.leader() != (modelProcess{})
}

// depose starts a process that knows nothing.
func (v modelView) depose() {
	if !v.isFree() {
		v.s.former = v.leader().write
	}
	v.s.leader = modelProcess{}
}
