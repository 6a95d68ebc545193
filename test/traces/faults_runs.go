package main

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// The seeded faults in the logs of containers.

// pickRun returns one of the correct runs that a condition accepts, or nil.
func (s *seeding) pickRun(accepts func(*programRun) bool) *programRun {
	found := slices.DeleteFunc(slices.Clone(s.checker.runs), func(r *programRun) bool {
		return r.deadline.IsZero() || s.checker.isFrozen(r.lease) || !accepts(r) // frozen programs may end late
	})
	if len(found) == 0 {
		return nil
	}
	return found[s.IntN(len(found))]
}

func startWithAnotherEpoch(s *seeding) string {
	r := s.pickRun(func(*programRun) bool { return true })
	if r == nil {
		return ""
	}
	s.mark(r).epoch += 1000
	return fmt.Sprintf("%s: %s is started with epoch %d", r.start.place, r.pod, s.mark(r).epoch)
}

// mark returns the line of the start of a run, which can be changed.
func (s *seeding) mark(r *programRun) *mark {
	i := slices.IndexFunc(r.marks, func(m mark) bool { return m.place == r.start.place })
	return &r.marks[i]
}

// endMark returns the line of the end of a run, or the last line of its program.
func (s *seeding) endMark(r *programRun) *mark {
	i := slices.IndexFunc(r.marks, func(m mark) bool { return m.place == r.end.place })
	if i < 0 {
		return &r.last
	}
	return &r.marks[i]
}

// renewalsOf returns the renewals by the pod of a run with its epoch.
func (s *seeding) renewalsOf(r *programRun) []*write {
	return slices.DeleteFunc(s.checker.renewals(r.lease, r.pod, r.start.epoch), func(w *write) bool { return w.after.epoch != r.start.epoch })
}

func dropRenewals(s *seeding) string {
	r := s.pickRun(func(*programRun) bool { return true })
	if r == nil {
		return ""
	}
	renewals := s.renewalsOf(r)
	s.undo(func(w *write) bool {
		isEarlier := !w.received.After(r.start.at.Add(time.Millisecond + s.checker.skew))
		isOwn := !w.received.Before(r.began.Add(-s.checker.delay - s.checker.skew))
		return isEarlier && isOwn && slices.Contains(renewals, w)
	})
	return fmt.Sprintf("%s: %s has not renewed the Lease before", r.start.place, r.pod)
}

// startLate delays a start until the renewal before it is too old, and drops the renewals after it.
func startLate(s *seeding) string {
	late := func(r *programRun) (first *write, at time.Time) {
		for _, w := range s.renewalsOf(r) {
			if !w.received.After(r.start.at.Add(time.Millisecond)) {
				first = w
			}
		}
		return first, first.received.Add(first.after.endAfter() + s.checker.delay + s.checker.skew + 10*time.Millisecond)
	}
	r := s.pickRun(func(r *programRun) bool {
		first, at := late(r)
		isLast := r.version.received.After(first.received) || r.version == first
		isHeld := r.next == nil || r.next.completed.Add(s.checker.delay).After(at)
		return isLast && isHeld && s.isAlone(r, at)
	})
	if r == nil {
		return ""
	}
	first, at := late(r)
	renewals := s.renewalsOf(r)
	s.undo(func(w *write) bool {
		isBetween := w.received.After(first.received) && !w.received.After(at.Add(time.Millisecond))
		return isBetween && slices.Contains(renewals, w)
	})
	s.mark(r).at = at
	return fmt.Sprintf("%s: %s is started at %s", r.start.place, r.pod, at.UTC().Format(time.RFC3339Nano))
}

// isAlone reports whether no other program is started with the Lease of a run after its start, until a time.
func (s *seeding) isAlone(r *programRun, until time.Time) bool {
	return !slices.ContainsFunc(s.checker.runs, func(b *programRun) bool {
		isNext := b != r && b.lease == r.lease && b.start.at.After(r.start.at)
		return isNext && !b.start.at.After(until)
	})
}

// endLate delays the end of a run until after its deadline, but not until the next start.
func endLate(s *seeding) string {
	late := s.checker.delay + s.checker.skew + 10*time.Millisecond
	r := s.pickRun(func(r *programRun) bool {
		at := r.deadline.Add(late)
		isMeasured := r.end.kind != released && r.end.kind != started
		return isMeasured && s.isAlone(r, at) && at.After(s.endMark(r).at)
	})
	if r == nil {
		return ""
	}
	m := s.endMark(r)
	m.at = r.deadline.Add(late)
	m.place = cmp.Or(m.place, r.start.place)
	return fmt.Sprintf("%s: %s ends at %s", m.place, r.pod, m.at.UTC().Format(time.RFC3339Nano))
}

func continueAfterHandover(s *seeding) string {
	r := s.pickRun(func(r *programRun) bool { return r.end.kind == handed })
	if r == nil {
		return ""
	}
	r.last = mark{place: r.end.place, at: r.end.at.Add(s.checker.delay + s.checker.skew + 10*time.Millisecond)}
	return fmt.Sprintf("%s: the program of %s writes after the handover", r.last.place, r.pod)
}

// overlap delays the end of a run until after the next start, but not until its deadline.
func overlap(s *seeding) string {
	next := func(r *programRun) *programRun {
		i := slices.IndexFunc(s.checker.runs, func(b *programRun) bool {
			isOther := b.lease == r.lease && b.pod != r.pod && !b.deadline.IsZero()
			return isOther && b.start.at.After(r.start.at)
		})
		if i < 0 {
			return nil
		}
		return s.checker.runs[i]
	}
	shift := s.checker.skew + 10*time.Millisecond
	r := s.pickRun(func(r *programRun) bool {
		b := next(r)
		isClosed := !slices.Contains([]markKind{released, started, handed}, r.end.kind)
		return isClosed && b != nil && isSingleton(r.lease) && !b.start.at.Add(shift).After(r.deadline.Add(s.checker.delay))
	})
	if r == nil {
		return ""
	}
	m := s.endMark(r)
	m.at = next(r).start.at.Add(shift)
	m.place = cmp.Or(m.place, r.start.place)
	return fmt.Sprintf("%s: %s runs until %s has started", m.place, r.pod, next(r).pod)
}
