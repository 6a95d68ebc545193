package record_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stateful-operator/stateful-operator/controllers/internal/podexec"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/fixture"
)

func TestGrantsAndTheirLeases(t *testing.T) {
	second := func() *fixture.PodFixture { return fixture.Pod(1).Leased(0).Secondary().Sequence("9") }
	for _, r := range []struct {
		name string
		pod  *fixture.PodFixture
		want bool // the grant stays
	}{
		{"the Lease names the pod", fixture.Pod(0).Leased(4).Holds(time.Second).Status(8).WithGranted().InEpoch(4), true},
		{"it names no pod", fixture.Pod(0).Leased(4).Status(1).WithGranted().InEpoch(4), false},
		{"it has a higher epoch", fixture.Pod(0).Leased(5).Holds(time.Second).Status(1).WithGranted().InEpoch(4), false},
		{"it has not been written for the grant", fixture.Pod(0).Leased(3).Status(1).WithGranted().InEpoch(4), true},
		{"there is none", fixture.Pod(0).Unleased().Status(1).WithGranted().InEpoch(4), true},
		{"the grant has none", fixture.Pod(0).Leased(4).Status(1).WithGranted(), true},
	} {
		f := facts.Derive(fixture.WorldOf(fixture.SetOf(2, 1), r.pod, second()))
		if got := f.Record.GrantsName("rss-db-0"); got != r.want {
			t.Errorf("%s: the grants are %+v", r.name, f.Record.Granted)
		}
	}
}

func TestStartsEndWithTheirLease(t *testing.T) {
	taken := func() *fixture.PodFixture { return fixture.Pod(0).Leased(4).WithGranted().InEpoch(4) }
	for _, r := range []struct {
		name    string
		pod     *fixture.PodFixture
		pending []string
	}{
		{"a start with an unknown outcome", taken().Began("promote", 9*time.Second), nil},
		{"a start that ended with 0 and that status does not confirm", taken().Ends("promote", podexec.Succeeded, 0).StatusSince(7, time.Second), nil},
		{"a stop", taken().Began("stop", 9*time.Second), []string{"stop"}},
		{"a start whose Lease names the pod", fixture.Pod(0).Leased(4).Holds(time.Second).WithGranted().InEpoch(4).Began("promote", 9*time.Second), []string{"promote"}},
	} {
		f := facts.Derive(fixture.WorldOf(fixture.SetOf(2, 1), r.pod))
		var pending []string
		for _, c := range f.Record.Commands {
			pending = append(pending, c.Name)
		}
		if !slices.Equal(pending, r.pending) {
			t.Errorf("%s: pending are %q, want %q", r.name, pending, r.pending)
		}
	}
	f := facts.Derive(fixture.WorldOf(fixture.SetOf(2, 1), taken().Ends("promote", podexec.Failed, 1)))
	if f.Record.FailureOf(f.Members[0].Identity()) == nil {
		t.Error("a start that was seen to fail does not count as failed")
	}
}

func TestTheEpochOfAPrimaryThatIsFound(t *testing.T) {
	for _, r := range []struct {
		name string
		pod  *fixture.PodFixture
		want int64
	}{
		{"without a Lease", fixture.Pod(0).Status(8), 0},
		{"with a missing one", fixture.Pod(0).Unleased().Status(8), 1},
		{"with one that cannot be read", fixture.Pod(0).Leased(4).Status(8).But(func(w *facts.World) { w.Fencing.Leases = nil }), 0},
		{"with one that could not be read before", fixture.Pod(0).Leased(4).Status(8).WithGranted(), 5},
		{"with one that names no pod", fixture.Pod(0).Leased(4).Status(8), 5},
		{"with one that names it", fixture.Pod(0).Leased(4).Holds(time.Second).Status(8), 5},
	} {
		f := facts.Derive(fixture.WorldOf(fixture.SetOf(2, 1), r.pod))
		if len(f.Record.Granted) != 1 || f.Record.Granted[0].LeaseEpoch != r.want {
			t.Errorf("%s: the grants are %+v, want epoch %d", r.name, f.Record.Granted, r.want)
		}
	}
}
