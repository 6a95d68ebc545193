package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// seeded is a fault that changes a trace so that it breaks one rule.
type seeded struct {
	breaks rule
	seed   func(s *seeding) string // returns a description of the change, or "" if there is no place for it
}

// in returns a copy of a trace with the fault. It returns nil if the trace has no place for it.
func (f seeded) in(t *trace, o options, seed uint64) (*trace, string) {
	faulty := t.clone()
	for _, w := range faulty.writes { // so that a version has room for another one after it
		w.after.version *= 2
		w.bound *= 2
	}
	s := &seeding{Rand: rand.New(rand.NewPCG(seed, 0)), trace: faulty, checker: check(faulty, o)}
	what := f.seed(s)
	if what == "" {
		return nil, ""
	}
	return faulty, what
}

// seeding is a trace in which a fault is seeded, and the result of its check before.
type seeding struct {
	*rand.Rand
	trace   *trace
	checker *checker
}

// faults are the seeded faults: one for each rule.
var faults = []seeded{
	{createdFree, createWithHolder},
	{writtenByOperator, assignByAnother},
	{renewedByHolder, renewByAnother},
	{itsFields, renewMore},
	{renewalBound, unbind(renewal)},
	{handoverBound, unbind(handover)},
	{takeoverBound, unbind(takeover)},
	{assignmentBound, unbind(assignment)},
	{namingBound, unbind(naming)},
	{handoverNamed, nameAnother},
	{epochsIncrease, repeatEpoch},
	{watchesWholeTime, takeOverEarly},
	{everyVersionLogged, dropAssignment},
	{heldAtStart, startWithAnotherEpoch},
	{renewsFirst, dropRenewals},
	{startsWithFresh, startLate},
	{endsItself, endLate},
	{handsOverAfter, continueAfterHandover},
	{oneProgram, overlap},
}

const anotherPod = "another-pod_00000000-0000-0000-0000-000000000000"

// pick returns one of the steps with a move that a condition accepts, or a step without versions.
func (s *seeding) pick(m move, accepts func(step) bool) step {
	var found []step
	for _, w := range s.trace.writes {
		if x := s.checker.moves[w]; x.move == m && x.after == w && accepts(x) {
			found = append(found, x)
		}
	}
	if len(found) == 0 {
		return step{}
	}
	return found[s.IntN(len(found))]
}

func always(step) bool { return true }

// lifeOf returns the writes of the Lease of a write.
func (s *seeding) lifeOf(w *write) life {
	for _, l := range s.checker.histories[w.lease].lives {
		if slices.Contains(l, w) {
			return l
		}
	}
	return nil
}

// drop removes writes.
func (s *seeding) drop(drops func(*write) bool) {
	s.trace.writes = slices.DeleteFunc(s.trace.writes, drops)
}

// undo removes renewals as if they had never been sent: the versions after them have the times of those before.
func (s *seeding) undo(undoes func(*write) bool) {
	bound, renewed := map[uint64]uint64{}, map[string]string{}
	for _, w := range s.trace.writes {
		if undoes(w) {
			bound[w.after.version], renewed[w.lease+w.after.renewed] = w.bound, s.checker.moves[w].before.after.renewed
		}
	}
	s.drop(undoes)
	for _, w := range s.trace.writes {
		for bound[w.bound] > 0 {
			w.bound = bound[w.bound]
		}
		for former, ok := renewed[w.lease+w.after.renewed]; ok; former, ok = renewed[w.lease+w.after.renewed] {
			w.after.renewed = former
		}
	}
}

func describe(w *write, format string, args ...any) string {
	return fmt.Sprintf("%s: %s: ", w.place, w.lease) + fmt.Sprintf(format, args...)
}

func createWithHolder(s *seeding) string {
	var found []*write
	for _, w := range s.trace.writes {
		if l := s.lifeOf(w); w.created && len(l) > 1 && s.checker.moves[l[1]].move == assignment {
			found = append(found, w)
		}
	}
	if len(found) == 0 {
		return ""
	}
	w := found[s.IntN(len(found))]
	w.after.holder = s.lifeOf(w)[1].after.holder
	if w.after.holder == "" {
		return ""
	}
	return describe(w, "it is created with holder %s", w.after.holder)
}

func assignByAnother(s *seeding) string {
	x := s.pick(assignment, always)
	if x.after == nil {
		return ""
	}
	x.after.by = requester{account: "system:serviceaccount:default:default", pod: anotherPod}
	return describe(x.after, "a pod assigns it")
}

func renewByAnother(s *seeding) string {
	x := s.pick(renewal, always)
	if x.after == nil {
		return ""
	}
	w := *x.after
	w.by.pod = anotherPod
	w.bound, w.after.version = x.after.after.version, x.after.after.version+1
	w.received, w.completed = w.received.Add(time.Millisecond), w.completed.Add(time.Millisecond)
	w.after.renewed = "later"
	for _, other := range s.lifeOf(x.after) {
		if other.bound == w.bound {
			other.bound = w.after.version
		}
		if other != x.after && other.after.renewed == x.after.after.renewed {
			other.after.renewed = w.after.renewed
		}
	}
	s.trace.writes = append(s.trace.writes, &w)
	return describe(&w, "another pod renews it")
}

func renewMore(s *seeding) string {
	x := s.pick(renewal, always)
	if x.after == nil {
		return ""
	}
	for _, w := range s.lifeOf(x.after) {
		if w.after.version >= x.after.after.version {
			w.after.rest += "changed"
		}
	}
	return describe(x.after, "a renewal changes a label")
}

// unbind returns a fault by which a write is bound to no version, or to an older one.
func unbind(m move) func(*seeding) string {
	return func(s *seeding) string {
		x := s.pick(m, always)
		if x.after == nil {
			return ""
		}
		x.after.bound = 0
		if s.IntN(2) == 0 {
			x.after.bound = x.before.after.version - 1
		}
		return describe(x.after, "the %s is bound to version %d", m, x.after.bound)
	}
}

func nameAnother(s *seeding) string {
	x := s.pick(handover, always)
	if x.after == nil {
		return ""
	}
	l := s.lifeOf(x.after)
	for i := slices.Index(l, x.before); i >= 0 && l[i].after.next == x.after.after.holder; i-- {
		l[i].after.next = anotherPod
	}
	return describe(x.after, "the successor was %s", anotherPod)
}

// repeatEpoch lets a holder have the epoch of the former one, also in the log of its container.
func repeatEpoch(s *seeding) string {
	m := []move{assignment, handover}[s.IntN(2)]
	x := s.pick(m, func(x step) bool {
		return x.before.after.epoch > 0 && x.after.after.holder != "" && x.before.after.holder != x.after.after.holder
	})
	if x.after == nil {
		return ""
	}
	repeated, epoch, holder := x.before.after.epoch, x.after.after.epoch, x.after.after.holder
	for _, w := range s.lifeOf(x.after) {
		if w.after.epoch == epoch {
			w.after.epoch = repeated
		}
	}
	for _, k := range s.trace.containers {
		for i := range k.marks {
			if k.lease == x.after.lease && k.pod == holder && k.marks[i].epoch == epoch {
				k.marks[i].epoch = repeated
			}
		}
	}
	return describe(x.after, "%s has the epoch of the former holder, %d", holder, repeated)
}

// takeOverEarly removes half of the time without a change, and the proof that the pod has ended.
func takeOverEarly(s *seeding) string {
	x := s.pick(takeover, always)
	if x.after == nil {
		return ""
	}
	s.trace.endings = slices.DeleteFunc(s.trace.endings, func(e *ending) bool { return !e.at.After(x.after.received) })
	early := x.before.received.Add(x.before.after.duration / 2)
	if x.after.received.After(early) {
		x.after.received, x.after.completed = early, early
	}
	// Other holders whose pods have ended before were removed early then, too.
	for _, w := range s.trace.writes {
		other := s.checker.moves[w]
		isOther := other.move == takeover && w != x.after
		if isOther && w.received.Sub(other.before.received) < other.before.after.duration {
			s.trace.endings = append(s.trace.endings, &ending{place: w.place, at: w.received, pod: namespaceOf(w.lease) + "/" + other.before.after.holder})
		}
	}
	return describe(x.after, "%s is removed after %s", x.before.after.holder, x.after.received.Sub(x.before.received))
}

func dropAssignment(s *seeding) string {
	m := []move{assignment, handover}[s.IntN(2)]
	x := s.pick(m, func(x step) bool {
		l := s.lifeOf(x.after)
		return x.after != l.last() && x.before.after.holder != x.after.after.holder
	})
	if x.after == nil {
		return ""
	}
	s.drop(func(w *write) bool { return w == x.after })
	return describe(x.after, "the %s is not in the log", m)
}
