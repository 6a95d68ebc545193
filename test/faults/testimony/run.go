package testimony

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// Run is one start of a program, until its end.
type Run struct {
	ID, Pod, UID, Node string
	PID                int
	Args               []string
	Start              int64
	// End is 0 while it runs. It is recorded by the observer, because a killed program cannot do it.
	End int64
	// Stopped is true if it wrote a Stop, and so was not killed.
	Stopped bool
	// Met are the runs that were alive when it started.
	Met []string
}

// Alive reports whether the run has not ended.
func (r Run) Alive() bool { return r.End == 0 }

// Runs returns the runs in a diary, in the order of their starts, with the ends that an observer
// recorded.
func Runs(lines []Line, ends map[string]int64) []Run {
	var runs []Run
	at := map[string]int{}
	for _, l := range lines {
		i, known := at[l.Run]
		switch {
		case l.What == Start && !known:
			at[l.Run] = len(runs)
			runs = append(runs, Run{ID: l.Run, Pod: l.Pod, UID: l.UID, Node: l.Node, PID: l.PID, Args: l.Args, Start: l.At, End: ends[l.Run]})
		case l.What == Stop && known:
			runs[i].Stopped = true
		case l.What == Meets && known:
			runs[i].Met = append(runs[i].Met, l.Text)
		}
	}
	slices.SortStableFunc(runs, func(a, b Run) int { return cmp.Compare(a.Start, b.Start) })
	return runs
}

// Overlap is a pair of runs at the same time.
type Overlap struct {
	First, Second Run
	// Length is 0 if only Met shows the overlap.
	Length time.Duration
}

// Overlaps returns all pairs of runs that overlap, by their times or by Met. Runs that are still alive
// have run until now.
func Overlaps(runs []Run, now int64) []Overlap {
	var found []Overlap
	for i, second := range runs {
		for _, first := range runs[:i] {
			length := min(endOf(first, now), endOf(second, now)) - second.Start
			if length > 0 || slices.Contains(second.Met, first.ID) || slices.Contains(first.Met, second.ID) {
				found = append(found, Overlap{first, second, time.Duration(max(length, 0))})
			}
		}
	}
	return found
}

func endOf(r Run, now int64) int64 {
	if r.Alive() {
		return now
	}
	return r.End
}

// Gap is the time before a run without any run.
type Gap struct {
	// Before is the run that ended last.
	Before, After Run
	Length        time.Duration
}

// Gaps returns a gap for every run except the first. The length of an overlap is negative.
func Gaps(runs []Run) []Gap {
	var gaps []Gap
	for i := 1; i < len(runs); i++ {
		after := runs[i]
		last := slices.MaxFunc(runs[:i], func(a, b Run) int {
			return cmp.Compare(endOf(a, math.MaxInt64), endOf(b, math.MaxInt64))
		})
		gaps = append(gaps, Gap{last, after, time.Duration(after.Start - endOf(last, after.Start))})
	}
	return gaps
}

// Percentile returns the smallest length that the given share of the lengths, 0 to 1, does not exceed.
func Percentile(lengths []time.Duration, share float64) time.Duration {
	if len(lengths) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(lengths))
	rank := int(math.Ceil(share*float64(len(sorted)))) - 1
	return sorted[min(max(rank, 0), len(sorted)-1)]
}
