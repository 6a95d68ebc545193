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
		{"nothing is recorded without a command leave", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).Primary(), fixture.Pod(1).Secondary(), three), "", 0},
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
			if got.MembershipOf("rss-db-1") != r.want || len(got.Commands) != r.commands {
				t.Errorf("the membership is %q, want %q; commands: %v", got.MembershipOf("rss-db-1"), r.want, got.Commands)
			}
		})
	}
}
