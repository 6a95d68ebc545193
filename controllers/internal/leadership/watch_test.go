package leadership

import (
	"testing"
	"time"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func at(seconds int) time.Time { return noon.Add(time.Duration(seconds) * time.Second) }

func TestTimeInWhichNobodyLookedDoesNotCount(t *testing.T) {
	away := Watch{Since: at(0), Gaps: []Gap{{at(10), at(46)}, {at(60), at(70)}}}
	for _, r := range []struct {
		name      string
		watch     Watch
		from, now int
		elapsed   int
		// due is when 30 s have elapsed.
		due int
	}{
		{"without gaps the elapsed time is the wall clock time", Watch{}, 5, 25, 20, 35},
		{"the time before this process became leader", Watch{Since: at(20)}, 5, 25, 5, 50},
		{"a gap within the period", away, 5, 50, 9, 81},
		{"two gaps within the period", away, 5, 75, 24, 81},
		{"a gap at the start of the period", away, 20, 50, 4, 86},
		{"a gap at the end of the period", away, 5, 30, 5, 81},
		{"a gap before the period", away, 48, 55, 7, 88},
		{"a gap that ends when the period starts", away, 46, 50, 4, 86},
		{"a period within a gap", away, 12, 40, 0, 86},
		{"a period in the future", away, 80, 70, 0, 110},
	} {
		if got, want := r.watch.Elapsed(at(r.from), at(r.now)), time.Duration(r.elapsed)*time.Second; got != want {
			t.Errorf("%s: %s elapsed, want %s", r.name, got, want)
		}
		due := r.watch.Deadline(at(r.from), 30*time.Second)
		if want := at(r.due); !due.Equal(want) {
			t.Errorf("%s: due at %s, want %s", r.name, due.Format(time.TimeOnly), want.Format(time.TimeOnly))
		}
		if got := r.watch.Elapsed(at(r.from), due); got != 30*time.Second {
			t.Errorf("%s: %s elapsed when it is due, want 30s", r.name, got)
		}
	}
}

func TestOfManyGapsTheOldestBecomeOne(t *testing.T) {
	var w Watch
	for i := range maxGaps + 10 {
		w = w.with(Gap{at(10 * i), at(10*i + 1)})
	}
	if len(w.Gaps) != maxGaps {
		t.Errorf("%d gaps, want %d", len(w.Gaps), maxGaps)
	}
	if got := w.Elapsed(at(0), at(101)); got != 0 {
		t.Errorf("counted %s of the oldest time, want none", got)
	}
	if got := w.Elapsed(at(101), at(120)); got != 18*time.Second {
		t.Errorf("counted %s between newer gaps, want 18s", got)
	}
}
