package facts_test

import (
	"testing"
	"time"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/fixture"
)

func TestSlots(t *testing.T) {
	a, b, c := fixture.A, fixture.B, fixture.C
	for _, r := range []struct {
		name                          string
		w                             *facts.World
		occupied, wanted, unsucceeded int
	}{
		{"all members exist", fixture.Seen(fixture.Set("db"), a(), b(), c()), 3, 3, 0},
		{"a member is missing", fixture.Seen(fixture.Set("db"), a(), b()), 2, 3, 0},
		{"a lost member keeps its slot until it is replaced", fixture.Seen(fixture.Set("db"), a().NodeGone(), b(), c()), 3, 3, 0},
		{"a returning member keeps its slot", fixture.Seen(fixture.Set("db"), b(), c(), fixture.Updating("a", "uid-of-a", "now")), 3, 3, 0},
		{"a deleted member has no successor yet", fixture.Seen(fixture.Set("db"), a().Going(), b(), c()), 2, 3, 1},
		{"a deleted member has a successor", fixture.Seen(fixture.Set("db"), a().Going(), b().InPlaceOf("a", 1), c()), 2, 3, 0},
		{"a member that a scale-down deleted has no slot", fixture.Seen(fixture.Set("db"), fixture.Pod("a").On("n1").ClaimsRetained().Going(), b(), c()), 2, 3, 0},
		{"a surge update adds members", fixture.Seen(fixture.Set("db").Surge(2), fixture.OldA(), fixture.OldB(), fixture.OldC(), fixture.OldImage()), 3, 5, 0},
		{"a surge update adds no more members than are outdated", fixture.Seen(fixture.Set("db").Surge(2), fixture.OldA(), b(), c(), fixture.OldImage()), 3, 4, 0},
		{"a drain with ReplaceFirst adds a member", fixture.Seen(fixture.Replacing(), fixture.LeavingA(), b(), c()), 3, 4, 0},
		{"a drain with Replace adds none", fixture.Seen(fixture.Set("db"), fixture.LeavingA(), b(), c()), 3, 3, 0},
	} {
		f := facts.Derive(r.w)
		if f.Occupied() != r.occupied || f.Wanted() != r.wanted || len(f.WithoutSuccessor()) != r.unsucceeded {
			t.Errorf("%s: %d slots are occupied, %d are wanted, %d members have no successor", r.name, f.Occupied(), f.Wanted(), len(f.WithoutSuccessor()))
		}
	}
}

// TestOrderOfUpdates checks which members are updated, and in which order.
func TestOrderOfUpdates(t *testing.T) {
	old := func(id string) *fixture.PodFixture { return fixture.Pod(id).On("n1").Of("old") }
	w := fixture.Seen(fixture.Set("db").Replicas(5).Rolling(v1alpha1.RollingUpdate{Partition: 1}), fixture.OldImage(),
		old("ready").Aged(time.Hour).Ready(), old("kept").Aged(2*time.Hour).Ready(), old("unready").Aged(time.Hour).UnreadyFor(0), old("asked").Ready().DeleteFirst(), fixture.Pod("new").On("n2").Ready())
	got := ""
	for _, m := range facts.Derive(w).Outdated() {
		got += " " + m.Name()
	}
	if got != " db-asked db-unready db-ready" {
		t.Errorf("the order is%s", got)
	}
}

func TestAvailability(t *testing.T) {
	slow := func() *fixture.SetFixture {
		return fixture.Set("db").Change(func(s *v1alpha1.StatefulClusterSpec) { s.MinReadySeconds = 60 })
	}
	for _, r := range []struct {
		name string
		w    *facts.World
		want int
		next time.Duration // until one more is available
	}{
		{"Ready members are available", fixture.Seen(fixture.Set("db"), fixture.A(), fixture.B(), fixture.Pod("c").On("n3").UnreadyFor(0)), 2, 0},
		{"a member is available after minReadySeconds", fixture.Seen(slow(), fixture.Pod("a").On("n1").ReadyFor(time.Minute), fixture.Pod("b").On("n2").ReadyFor(50*time.Second)), 1, 10 * time.Second},
		{"a member on a deleted Node is not available", fixture.Seen(fixture.Set("db"), fixture.A(), fixture.B().NodeGone()), 1, 0},
		{"a member in an in-place update is not available", fixture.Seen(fixture.Set("db"), fixture.A(), fixture.B().Patching("{}")), 1, 0},
	} {
		n, changes := facts.Derive(r.w).CountAvailable()
		if n != r.want || (r.next > 0) != (len(changes) == 1) || r.next > 0 && !changes[0].Equal(fixture.Noon.Add(r.next)) {
			t.Errorf("%s: %d are available, and more at %v", r.name, n, changes)
		}
	}
}
