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
		{"without gaps it is the time of the wall clock", Watch{}, 5, 25, 20, 35},
		{"time before this process led", Watch{Since: at(20)}, 5, 25, 5, 50},
		{"a gap amid it", away, 5, 50, 9, 81},
		{"both gaps", away, 5, 75, 24, 81},
		{"a gap that it begins in", away, 20, 50, 4, 86},
		{"a gap that it ends in", away, 5, 30, 5, 81},
		{"a gap that is over before", away, 48, 55, 7, 88},
		{"a gap that ends as it begins", away, 46, 50, 4, 86},
		{"wholly within a gap", away, 12, 40, 0, 86},
		{"a time that has not begun", away, 80, 70, 0, 110},
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
		t.Errorf("%s of the oldest time count, want none", got)
	}
	if got := w.Elapsed(at(101), at(120)); got != 18*time.Second {
		t.Errorf("%s between newer gaps count, want 18s", got)
	}
}
