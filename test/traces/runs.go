package main

import (
	"slices"
	"time"
)

// programRun is a run of a program, or the time in which a member is armed.
type programRun struct {
	*container
	start mark
	// end is the line that reports the end. Its time is zero if there is none.
	end mark
	// version is the last version that names the pod with the epoch, and next the one after it. They are nil if there
	// is none.
	version, next *write
	// deadline is when the program must have ended. It is zero if the start was not correct.
	deadline time.Time
}

// checkRuns checks the programs that agents have started.
func (c *checker) checkRuns() {
	byLease := map[string][]*programRun{}
	for _, k := range c.trace.containers {
		for _, r := range k.runs() {
			c.runs = append(c.runs, r)
			if c.checkStart(r) {
				c.checkEnd(r)
				byLease[r.lease] = append(byLease[r.lease], r)
			}
		}
	}
	for _, runs := range byLease {
		c.checkOverlaps(runs)
	}
}

// runs returns the runs in a container. A member is armed again with a higher epoch.
func (k *container) runs() []*programRun {
	var all []*programRun
	for _, m := range k.marks {
		if n := len(all); n > 0 && all[n-1].end.at.IsZero() {
			all[n-1].end = m
		}
		if m.kind == started {
			all = append(all, &programRun{container: k, start: m})
		}
	}
	return all
}

func (c *checker) requireOf(ok bool, r rule, run *programRun, at mark, format string, args ...any) {
	c.requireAt(ok, r, violation{place: at.place, at: at.at, lease: run.lease}, format, args...)
}

// find sets the versions of a run.
func (c *checker) find(r *programRun) {
	h := c.histories[r.lease]
	if h == nil {
		return
	}
	for _, l := range h.lives {
		for i, w := range l {
			if !w.after.isHeldBy(r.pod, r.start.epoch) {
				continue
			}
			r.version, r.next = w, nil
			if i+1 < len(l) {
				r.next = l[i+1]
			}
		}
	}
}

// renewals returns the renewals by a pod with at least that epoch, by the time when they were received.
func (c *checker) renewals(lease, pod string, epoch int64) []*write {
	var found []*write
	for _, w := range c.histories[lease].writes() {
		if c.moves[w].move == renewal && w.by.pod == pod && w.after.holder == pod && w.after.epoch >= epoch {
			found = append(found, w)
		}
	}
	slices.SortStableFunc(found, func(a, b *write) int { return a.received.Compare(b.received) })
	return found
}

// checkStart reports whether a program was started as the model requires, and sets the deadline.
func (c *checker) checkStart(r *programRun) bool {
	c.find(r)
	c.requireOf(r.version != nil, heldAtStart, r, r.start, "%s was started with epoch %d, and the Lease never named it with this epoch", r.pod, r.start.epoch)
	if r.version == nil {
		return false
	}
	isHeld := r.next == nil || !r.next.completed.Add(c.delay).Before(r.start.at)
	c.requireOf(isHeld, heldAtStart, r, r.start, "%s was started with epoch %d after the Lease had changed (%s)", r.pod, r.start.epoch, placeOf(r.next))
	if !isHeld {
		return false
	}
	all := c.renewals(r.lease, r.pod, r.start.epoch)
	var first *write
	for _, w := range all {
		isEarlier := !w.received.After(r.start.at.Add(time.Millisecond + c.skew)) // the agent truncates its times
		isOwn := !w.received.Before(r.began.Add(-c.delay - c.skew))
		if isEarlier && isOwn && w.after.epoch == r.start.epoch {
			first = w
		}
	}
	c.requireOf(first != nil, renewsFirst, r, r.start, "%s was started with epoch %d, and its container had not renewed the Lease with this epoch", r.pod, r.start.epoch)
	if first == nil {
		return false
	}
	late := c.delay + c.skew
	limit := first.received.Add(first.after.endAfter())
	isFresh := !r.start.at.After(limit.Add(late))
	c.requireOf(isFresh, startsWithFresh, r, r.start, "%s was started %s after its last renewal (%s)", r.pod, r.start.at.Sub(first.received), first.place)
	if !isFresh {
		return false
	}
	for _, w := range all {
		if !w.received.Before(first.received) && !w.received.After(limit.Add(late)) {
			limit = w.received.Add(w.after.endAfter())
		}
	}
	r.deadline = limit
	return true
}

func placeOf(w *write) string {
	if w == nil {
		return ""
	}
	return w.String()
}

// checkEnd checks that a program has ended in time: neither its end nor a line of it was logged after the deadline. A
// member must be armed with the next epoch before the deadline, too, and a start grant must be received before.
func (c *checker) checkEnd(r *programRun) {
	late := c.delay + c.skew
	isArmed := isMember(r.lease)
	evidence := r.end
	if r.end.kind == output { // no end was logged
		evidence = r.last
	}
	if !c.isFrozen(r.lease) && !evidence.at.IsZero() {
		c.requireOf(!evidence.at.After(r.deadline.Add(late)), endsItself, r, evidence, "%s has run with epoch %d until now, and had to end at %s",
			r.pod, r.start.epoch, r.deadline.UTC().Format(time.RFC3339Nano))
	}
	hasEnded := r.end.kind == handed || r.end.kind == fenced
	if isArmed || !hasEnded || r.last.at.IsZero() {
		return
	}
	after := endsItself
	if r.end.kind == handed {
		after = handsOverAfter
	}
	c.requireOf(!r.last.at.After(r.end.at.Add(late)), after, r, r.last, "the program of %s has written a line %s after its end was logged (%s)", r.pod, r.last.at.Sub(r.end.at), r.end.place)
}

// until returns when a run has ended. If no end was logged, that is the deadline, or the next change of the holder.
func (c *checker) until(r *programRun) time.Time {
	if r.end.kind != output {
		if c.isFrozen(r.lease) && r.deadline.Before(r.end.at) {
			return r.deadline
		}
		if r.end.kind == handed && r.next != nil && r.next.by.pod == r.pod && r.next.received.Before(r.end.at) {
			if wrote := r.last.at; wrote.After(r.next.received) && wrote.Before(r.end.at) {
				return wrote
			}
			return r.next.received // the line of the agent is written after the response
		}
		return r.end.at
	}
	end := r.deadline
	if r.next != nil && r.next.received.Before(end) {
		end = r.next.received
	}
	if isSingleton(r.lease) && !c.isFrozen(r.lease) && r.last.at.After(end) {
		end = r.last.at
	}
	return end
}

// checkOverlaps checks that the runs of different pods with a Lease do not overlap, and that later ones have higher
// epochs.
func (c *checker) checkOverlaps(runs []*programRun) {
	slices.SortStableFunc(runs, func(a, b *programRun) int { return a.start.at.Compare(b.start.at) })
	for i, a := range runs {
		end := c.until(a)
		for _, b := range runs[i+1:] {
			if a.pod == b.pod {
				continue
			}
			c.requireOf(!b.start.at.Add(c.skew).Before(end), oneProgram, b, b.start, "%s was started with epoch %d, and %s has run with epoch %d until %s (%s)",
				b.pod, b.start.epoch, a.pod, a.start.epoch, end.UTC().Format(time.RFC3339Nano), a.start.place)
			if a.version.after.uid == b.version.after.uid {
				c.requireOf(a.start.epoch < b.start.epoch, epochsIncrease, b, b.start, "%s was started with epoch %d after %s with epoch %d (%s)",
					b.pod, b.start.epoch, a.pod, a.start.epoch, a.start.place)
			}
		}
	}
}
