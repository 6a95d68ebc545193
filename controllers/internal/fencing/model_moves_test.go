package fencing

import (
	"strconv"
	"strings"
)

// move is something that can happen to one of count members or operators.
type move struct {
	words string
	count int
	can   func(m *model, s *state, by int) bool
	do    func(m *model, s *state, by int)
}

func (v move) say(by int) string { return strings.ReplaceAll(v.words, "%d", strconv.Itoa(by+1)) }

var moves = []move{
	{"the agent of member %d reads the Lease", members, canRead, read},
	{"the agent of member %d sends a renewal", members, canRenew, renew},
	{"the agent of member %d sends a handover", members, canHandOver, handOver},
	{"the write of member %d arrives", members, isSent, arrive},
	{"the response reaches member %d", members, canRespond, respond},
	{"the response to member %d is lost", members, canLose, lose},
	{"the agent of member %d ends its program, because no renewal has succeeded in time", members, mustEnd, restart},
	{"the container of member %d restarts", members, canCrash, restart},
	{"the restarted agent of member %d starts its program without a renewal", members, canStartAtOnce, startAtOnce},
	{"the program of member %d ends", members, canEnd, end},
	{"member %d is cut off", members, canCut, cut},
	{"member %d is connected again", members, isCut, connect},
	{"member %d is frozen", members, canFreeze, freeze},
	{"the agent of member %d is not scheduled, while its program runs", members, canStarve, starve},
	{"member %d is scheduled again", members, isFrozen, thaw},

	{"operator %d reads the Lease", operators, canObserve, observe},
	{"operator %d decides to take the Lease over", operators, canTakeOver, decide(takingOver, noMember)},
	{"operator %d decides that member 1 is the next holder", operators, canAssign(1), decide(assigning, 1)},
	{"operator %d decides that member 2 is the next holder", operators, canAssign(2), decide(assigning, 2)},
	{"operator %d decides to name member 1 as the successor", operators, canName(1), decide(naming, 1)},
	{"operator %d decides to name member 2 as the successor", operators, canName(2), decide(naming, 2)},
	{"operator %d writes", operators, isDecided, write},

	{"time passes", 1, canPass, func(_ *model, s *state, _ int) { s.pass(-1) }},
	{"time passes, but not by the clock of member %d", members, canPassSlowly, func(_ *model, s *state, i int) { s.pass(i) }},
}

// Moves of agents.

func (a *agent) isConnected() bool { return a.frozen == nothing && !a.cut }

func canRead(_ *model, s *state, i int) bool {
	return s.agents[i].isConnected() && !s.agents[i].current
}

// read ends the program if the agent is not the holder any more.
func read(_ *model, s *state, i int) {
	a := &s.agents[i]
	a.holds, a.current = s.lease.holder == slot(i+1), true
	if !a.holds && a.program == working {
		a.program = off
	}
}

// canWrite reports whether the agent can send a write. One that knows that its resourceVersion is outdated reads
// first, because the write would be refused.
func canWrite(s *state, i int, bound bool) bool {
	a := &s.agents[i]
	usable := a.current || !bound
	return a.isConnected() && a.holds && usable && a.request.at == none
}

func canRenew(m *model, s *state, i int) bool {
	return canWrite(s, i, m.obeys(renewalBound)) && s.agents[i].program != ended
}

func renew(_ *model, s *state, i int) {
	s.agents[i].request = request{at: sent, bound: s.agents[i].current, to: slot(i + 1)}
}

func canHandOver(m *model, s *state, i int) bool {
	p := s.agents[i].program
	due := p == ended || p == working && !m.obeys(handsOverAfter)
	return due && canWrite(s, i, true) && s.lease.next != noMember && s.lease.epoch < lastEpoch
}

func handOver(_ *model, s *state, i int) {
	s.agents[i].request = request{at: sent, bound: s.agents[i].current, to: s.lease.next}
}

func isSent(_ *model, s *state, i int) bool { return s.agents[i].request.at == sent }

// arrive executes a write, which can have been sent long ago.
func arrive(m *model, s *state, i int) {
	r := s.agents[i].request
	handsOver, bound := r.to != slot(i+1), renewalBound
	if handsOver {
		bound = handoverBound
	}
	s.agents[i].request = request{}
	if !r.bound && m.obeys(bound) {
		return
	}
	l := s.lease
	l.holder = r.to
	if handsOver {
		l.next, l.epoch = noMember, min(l.epoch+1, lastEpoch)
	}
	s.change(l)
	if !r.orphan {
		s.agents[i].request = request{at: succeeded, age: r.age, bound: true, to: r.to, epoch: l.epoch}
	}
}

func canRespond(_ *model, s *state, i int) bool {
	return s.agents[i].isConnected() && s.agents[i].request.at == succeeded
}

func respond(m *model, s *state, i int) {
	a := &s.agents[i]
	r := a.request
	a.request = request{}
	a.holds, a.current = r.to == slot(i+1), r.bound
	if !a.holds {
		return
	}
	if !m.obeys(agesFromSend) {
		r.age = 0
	}
	fresh := r.age < m.endAfter() || !m.obeys(startsWithFresh)
	switch {
	case a.program == working:
		a.age, a.late = r.age, false
	case a.program == off && fresh:
		a.program, a.age, a.epoch = working, r.age, r.epoch
	}
}

func canLose(m *model, s *state, i int) bool {
	return m.has(losses) && s.agents[i].request.at == succeeded
}

func lose(_ *model, s *state, i int) { s.agents[i].request = request{} }

func mustEnd(m *model, s *state, i int) bool {
	a := &s.agents[i]
	return a.frozen == nothing && a.program == working && a.age >= m.endAfter() && m.obeys(endsItself)
}

// restart restarts a container. A write of its agent can still arrive.
func restart(_ *model, s *state, i int) {
	a := s.agents[i]
	s.agents[i] = agent{cut: a.cut, frozen: a.frozen}
	if a.request.at == sent {
		a.request.orphan = true
		s.agents[i].request = a.request
	}
}

func canCrash(m *model, s *state, i int) bool {
	return m.has(crashes) && s.agents[i].program == working
}

// Without rule renewsFirst: a read of the Lease is enough.
func canStartAtOnce(m *model, s *state, i int) bool {
	a := &s.agents[i]
	return !m.obeys(renewsFirst) && a.frozen == nothing && a.program == off && a.holds
}

func startAtOnce(_ *model, s *state, i int) { s.agents[i].program = working }

func canEnd(m *model, s *state, i int) bool { return m.has(ends) && s.runs(i) }

func end(_ *model, s *state, i int) { s.agents[i].program = ended }

func canCut(m *model, s *state, _ int) bool {
	return m.has(cuts) && !s.agents[0].cut && !s.agents[1].cut
}

func cut(_ *model, s *state, i int)        { s.agents[i].cut = true }
func isCut(_ *model, s *state, i int) bool { return s.agents[i].cut }
func connect(_ *model, s *state, i int)    { s.agents[i].cut = false }

func canFreeze(m *model, s *state, i int) bool { return m.has(freezes) && s.runs(i) && s.noneFrozen() }
func canStarve(m *model, s *state, i int) bool { return m.has(starves) && s.runs(i) && s.noneFrozen() }

func (s *state) noneFrozen() bool {
	return s.agents[0].frozen == nothing && s.agents[1].frozen == nothing
}

func freeze(_ *model, s *state, i int)        { s.agents[i].frozen = everything }
func starve(_ *model, s *state, i int)        { s.agents[i].frozen = agentOnly }
func isFrozen(_ *model, s *state, i int) bool { return s.agents[i].frozen != nothing }
func thaw(_ *model, s *state, i int)          { s.agents[i].frozen = nothing }

// Moves of operators. One that is frozen between a decision and its write makes no move meanwhile.

func canObserve(_ *model, s *state, k int) bool { return s.operators[k].at == idle }

func observe(_ *model, s *state, k int) { s.operators[k] = operator{at: watching, current: true} }

func decide(at step, to slot) func(*model, *state, int) {
	return func(_ *model, s *state, k int) { s.operators[k].at, s.operators[k].to = at, to }
}

func (o *operator) decides() bool { return o.at == watching && o.current }

func canTakeOver(m *model, s *state, k int) bool {
	o := &s.operators[k]
	due := o.watched >= leaseDuration || o.watched > 0 && !m.obeys(watchesWholeTime)
	return o.decides() && due && s.lease.holder != noMember && s.lease.epoch < lastEpoch
}

func canAssign(to slot) func(*model, *state, int) bool {
	return func(_ *model, s *state, k int) bool {
		return s.operators[k].decides() && s.lease.holder == noMember && s.agents[to-1].program != ended
	}
}

func canName(to slot) func(*model, *state, int) bool {
	return func(m *model, s *state, k int) bool {
		open := s.lease.holder != noMember && s.lease.holder != to && s.lease.next != to
		return m.has(successors) && s.operators[k].decides() && open
	}
}

func isDecided(_ *model, s *state, k int) bool { return s.operators[k].at > watching }

// write executes the write that an operator has decided.
func write(m *model, s *state, k int) {
	o, l := s.operators[k], s.lease
	s.operators[k] = operator{}
	bound := map[step]rule{takingOver: takeoverBound, assigning: assignmentBound}[o.at]
	if !o.current && (bound == 0 || m.obeys(bound)) {
		return
	}
	switch o.at {
	case takingOver:
		l = lease{epoch: min(l.epoch+1, lastEpoch)}
	case assigning:
		l.holder = o.to
	default:
		l.next = o.to
	}
	s.change(l)
}

// Time.

// canPass reports whether time can pass. An agent that is scheduled ends its program before.
func canPass(m *model, s *state, _ int) bool { return !mustEnd(m, s, 0) && !mustEnd(m, s, 1) }

func canPassSlowly(m *model, s *state, i int) bool {
	a := &s.agents[i]
	return m.has(slowClocks) && a.program == working && !a.late && canPass(m, s, 0)
}

// pass lets a tick pass, but not by the clock of one agent.
func (s *state) pass(slow int) {
	for i := range s.agents {
		a := &s.agents[i]
		if i == slow {
			a.late = true
			continue
		}
		a.age++
		a.request.age++
	}
	for k := range s.operators {
		if o := &s.operators[k]; o.at == watching {
			o.watched = min(o.watched+1, leaseDuration)
		}
	}
}
