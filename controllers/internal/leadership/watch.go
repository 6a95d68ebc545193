package leadership

import (
	"slices"
	"time"
)

// maxGaps is the max number of recorded gaps. Beyond it, the oldest two are merged, so that the time
// between them counts as a gap too.
const maxGaps = 64

// Watch records the times during which this process was able to observe the cluster: it led, it was
// running, and the API server responded. Deadlines of workloads count only this time. Otherwise an
// outage of the operator could cause a rollback of a new version. The zero value has no gaps.
type Watch struct {
	// Since is when this process became the leader; zero means always.
	Since time.Time
	// Gaps are the times after Since during which it could not observe the cluster, oldest first.
	Gaps []Gap
}

// Gap is a time during which the cluster was not observed.
type Gap struct{ From, To time.Time }

// Elapsed returns the observed part of the time between from and now. It returns 0 if now is before
// from.
func (w Watch) Elapsed(from, now time.Time) time.Duration {
	if from.Before(w.Since) {
		from = w.Since
	}
	if !from.Before(now) {
		return 0
	}
	observed := now.Sub(from)
	for _, g := range w.Gaps {
		begin, end := later(g.From, from), earlier(g.To, now)
		if begin.Before(end) {
			observed -= end.Sub(begin)
		}
	}
	return max(observed, 0)
}

// Deadline returns when Elapsed(from, ·) reaches d, if no further gaps occur.
func (w Watch) Deadline(from time.Time, d time.Duration) time.Time {
	if from.Before(w.Since) {
		from = w.Since
	}
	due := from.Add(d)
	for _, g := range w.Gaps {
		begin := later(g.From, from)
		if begin.Before(g.To) && begin.Before(due) {
			due = due.Add(g.To.Sub(begin))
		}
	}
	return due
}

// with returns a copy of the Watch with another, newest Gap.
func (w Watch) with(g Gap) Watch {
	// Round(0) removes the monotonic clock reading, because that clock stops while the machine is
	// suspended.
	g = Gap{From: g.From.Round(0), To: g.To.Round(0)}
	gaps := append(slices.Clone(w.Gaps), g)
	if len(gaps) > maxGaps {
		gaps[1].From = gaps[0].From
		gaps = gaps[1:]
	}
	return Watch{Since: w.Since, Gaps: gaps}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
