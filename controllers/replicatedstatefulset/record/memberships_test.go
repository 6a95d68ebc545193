package record_test

import (
	"testing"
	"time"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podexec"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/fixture"
)

// TestRS149Memberships tests what is recorded about the members that the application knows.
func TestRS149Memberships(t *testing.T) {
	const joined, leaving, left = v1alpha1.MembershipJoined, v1alpha1.MembershipLeaving, v1alpha1.MembershipLeft
	leaves := func() *fixture.PodFixture { return fixture.Pod(1).Ends("leave", podexec.Succeeded, 0) }
	three := fixture.Memberships(joined, leaving)
	for _, r := range []struct {
		name     string
		world    *facts.World
		want     v1alpha1.MembershipState // of the second member
		commands int                      // on record afterwards
	}{
		{"a running member joins", fixture.WorldOf(fixture.LeavingSet(2, 1), fixture.Pod(0).Primary(), fixture.Pod(1).Secondary()), joined, 0},
		{"an idle member does not", fixture.WorldOf(fixture.LeavingSet(2, 1), fixture.Pod(0).Primary(), fixture.Pod(1).Idle()), "", 0},
		{"a running member that has left does not join by itself", fixture.WorldOf(fixture.LeavingSet(2, 1), fixture.Pod(0).Primary(), fixture.Pod(1).Secondary(), fixture.Memberships(joined, left)), left, 0},
		{"an idle member does, if the command is new", fixture.WorldOf(fixture.LeavingSet(2, 1), fixture.Pod(0).Idle(), fixture.Pod(1).Pending(), inEpoch(1)), joined, 0},
		{"without the command, a member that may have left stays on record", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).Primary(), fixture.Pod(1).Secondary(), fixture.Memberships(joined, left)), left, 0},
		{"without the command, until its pod is gone", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).Primary(), three), "", 0},
		{"nothing else is recorded without a command leave", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).Primary(), fixture.Pod(1).Secondary(), fixture.Memberships(joined, joined)), "", 0},
		{"nothing changes while the spec is invalid", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).Primary(), fixture.Pod(1).Secondary(), three, fixture.With(func(w *facts.World) { w.Invalid = "x" })), leaving, 0},
		{"leave succeeded, and the member still runs", fixture.WorldOf(fixture.LeavingSet(2, 1), fixture.Pod(0).Primary(), leaves().StatusSince(0, time.Second), three), left, 0},
		{"leave succeeded, and the program has ended", fixture.WorldOf(fixture.LeavingSet(2, 1), fixture.Pod(0).Primary(), leaves().StatusSince(7, time.Second), three), left, 0},
		{"leave succeeded, and status has not responded since", fixture.WorldOf(fixture.LeavingSet(2, 1), fixture.Pod(0).Primary(), leaves(), three), leaving, 1},
		{"leave succeeded, and the container has ended", fixture.WorldOf(fixture.LeavingSet(2, 1), fixture.Pod(0).Primary(), leaves().Crashed(), three), left, 0},
		{"leave failed", fixture.WorldOf(fixture.LeavingSet(2, 1), fixture.Pod(0).Primary(), fixture.Pod(1).Ends("leave", podexec.Failed, 1).StatusSince(0, time.Second), three), leaving, 0},
		{"the outcome of leave is unknown, whatever status reports", fixture.WorldOf(fixture.LeavingSet(2, 1), fixture.Pod(0).Primary(), fixture.Pod(1).Began("leave", 8*time.Second).StatusSince(7, time.Second), three), leaving, 1},
		{"leave may reach the next container", fixture.WorldOf(fixture.LeavingSet(2, 1), fixture.Pod(0).Primary(), fixture.Pod(1).Began("leave", 8*time.Second).Crashed(), three), leaving, 1},
		{"leave ended with its container", fixture.WorldOf(fixture.LeavingSet(2, 1), fixture.Pod(0).Primary(), fixture.Pod(1).Began("leave", time.Minute).Crashed(), three), leaving, 0},
		{"a member that has left is forgotten with its pod", fixture.WorldOf(fixture.LeavingSet(2, 1), fixture.Pod(0).Primary(), fixture.Memberships(joined, left)), "", 0},
		{"a member that has not left is not", fixture.WorldOf(fixture.LeavingSet(2, 1), fixture.Pod(0).Primary(), three), leaving, 0},
	} {
		t.Run(r.name, func(t *testing.T) {
			got := facts.Derive(r.world).Record
			if got.MembershipOf("rss-db-1").State != r.want || len(got.Commands) != r.commands {
				t.Errorf("the membership is %q, want %q; commands: %v", got.MembershipOf("rss-db-1").State, r.want, got.Commands)
			}
		})
	}
}

// inEpoch sets the epoch of a set that was started.
func inEpoch(epoch int64) fixture.Thing {
	return fixture.With(func(w *facts.World) { w.Set.Status.Epoch = epoch })
}

// TestRS149FailuresOfLeave tests that a failed leave is not a failure of a start or stop, whatever its
// exit code.
func TestRS149FailuresOfLeave(t *testing.T) {
	for _, code := range []int{1, 2, 5, 6} {
		f := facts.Derive(fixture.WorldOf(fixture.LeavingSet(2, 1), fixture.Pod(0).Primary(), fixture.Pod(1).Ends("leave", podexec.Failed, code).StatusSince(0, time.Second),
			fixture.Memberships(v1alpha1.MembershipJoined, v1alpha1.MembershipLeaving)))
		got := f.Record.MembershipOf("rss-db-1")
		if got.Failures != 1 || int(got.ExitCode) != code || got.LastFailure == nil || len(f.Record.Failures) > 0 || f.Fatal() != "" {
			t.Errorf("code %d: %+v, failures %v, %q", code, got, f.Record.Failures, f.Fatal())
		}
	}
}
