package leadership

import (
	"slices"
	"time"
)

// mostGaps bounds what is remembered. Of more, the oldest two become one, so that
// the time between them counts as one in which nobody looked.
const mostGaps = 64

// Watch is the time in which this process could look at the cluster: it led, it
// ran, and the API server answered. A deadline that blames a workload counts only
// that time, or a version would be given up because the operator was away. The zero
// value could always look.
type Watch struct {
	// Since is when this process began to lead; zero for ever.
	Since time.Time
	// Gaps are the times after Since in which it could not look, the oldest first.
	Gaps []Gap
}

// Gap is a time in which nobody looked.
type Gap struct{ From, To time.Time }

// Elapsed is how much of the time between from and now this process could look; 0
// if now is before from.
func (w Watch) Elapsed(from, now time.Time) time.Duration {
	if from.Before(w.Since) {
		from = w.Since
	}
	if !from.Before(now) {
		return 0
	}
	looked := now.Sub(from)
	for _, g := range w.Gaps {
		begin, end := later(g.From, from), earlier(g.To, now)
		if begin.Before(end) {
			looked -= end.Sub(begin)
		}
	}
	return max(looked, 0)
}

// Deadline is when Elapsed(from, ·) reaches d if there are no gaps but those that
// are known.
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

// with is the same Watch with one more Gap, which is the newest.
func (w Watch) with(g Gap) Watch {
	// Without the monotonic clock, which stands still while the machine is suspended.
	g = Gap{From: g.From.Round(0), To: g.To.Round(0)}
	gaps := append(slices.Clone(w.Gaps), g)
	if len(gaps) > mostGaps {
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
