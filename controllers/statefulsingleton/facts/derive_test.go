package facts_test

import (
	"testing"
	"time"

	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/fixture"
)

// TestDerivedFacts checks who is active, who waits, and whether a handover is in progress.
func TestDerivedFacts(t *testing.T) {
	for _, r := range []struct {
		name              string
		w                 *facts.World
		active            string
		blockers, waiting int
		handover, several bool
	}{
		{"a pod runs alone", fixture.WorldOf(fixture.Held(), fixture.Granted("a", 1)), "a", 1, 0, false, false},
		{"a standby is not a handover", fixture.WorldOf(fixture.Held(), fixture.Granted("a", 1), fixture.Waiting("b")), "a", 1, 1, false, false},
		{"the first pod waits for its grant", fixture.WorldOf(fixture.Singleton("db"), fixture.Waiting("a")), "", 0, 1, true, false},
		{"the old pod is stopping", fixture.WorldOf(fixture.Held(), fixture.Granted("a", 1).Deleted(), fixture.Waiting("b")), "a", 1, 1, true, false},
		{"a pod without the gate runs", fixture.WorldOf(fixture.Singleton("db"), fixture.Ungated("a"), fixture.Waiting("b")), "a", 1, 1, true, false},
		{"a granted pod cannot start its program while another pod could", fixture.WorldOf(fixture.Held(), fixture.Granted("a", 1).Coming(), fixture.Waiting("b")), "a", 1, 1, true, false},
		{"a newer revision waits", fixture.WorldOf(fixture.Held(), fixture.Granted("a", 1).Of("d").Old(), fixture.Waiting("b").Of("d")), "a", 1, 1, true, false},
		{"a user released two pods", fixture.WorldOf(fixture.Held(), fixture.Granted("a", 1), fixture.Granted("b", 2)), "a", 2, 0, false, true},
		{"a pod that has ended blocks no other", fixture.WorldOf(fixture.Held(), fixture.Granted("a", 1).Ended()), "", 0, 0, false, false},
	} {
		f := facts.Derive(r.w)
		active := ""
		if f.Active != nil {
			active = f.Active.Name()
		}
		if active != r.active || len(f.Blockers) != r.blockers || len(f.Waiting) != r.waiting {
			t.Errorf("%s: %q is active, %d pods may run, %d wait", r.name, active, len(f.Blockers), len(f.Waiting))
		}
		if f.Handover != r.handover || f.Several() != r.several {
			t.Errorf("%s: handover %t, several %t", r.name, f.Handover, f.Several())
		}
	}
}

// TestALateHandover checks that only a handover is late, after maxTransitionTime.
func TestALateHandover(t *testing.T) {
	began := func(ago time.Duration) *fixture.SingletonFixture {
		return fixture.Held().With(fixture.HandingOver(ago, ""))
	}
	for _, r := range []struct {
		name string
		w    *facts.World
		want bool
	}{
		{"in time", fixture.WorldOf(began(299*time.Second), fixture.Granted("a", 1).Deleted(), fixture.Waiting("b")), false},
		{"too late", fixture.WorldOf(began(301*time.Second), fixture.Granted("a", 1).Deleted(), fixture.Waiting("b")), true},
		{"no handover", fixture.WorldOf(began(301*time.Second), fixture.Granted("a", 1), fixture.Waiting("b")), false},
	} {
		if f := facts.Derive(r.w); f.Late != r.want {
			t.Errorf("%s: late is %t", r.name, f.Late)
		}
	}
}
