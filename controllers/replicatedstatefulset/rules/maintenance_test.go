package rules_test

import (
	"testing"
	"time"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/rules"
)

// TestDecideMaintenance tests that a parked member gets queries only.
func TestDecideMaintenance(t *testing.T) {
	at := func(n int) *fixture.PodFixture { return fixture.Pod(n).Secondary().Later("9") }
	idle := func(n int) *fixture.PodFixture { return fixture.Pod(n).Idle().Sequence("9") }
	fixture.Check(t, []fixture.Row{
		{"RS-89 record that a listed member is parked, and remove its role label", fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Primary(), at(1), at(2), fixture.Listed(2)),
			[]string{"learned: 2 is parked, as spec.maintenance requires", "patch pod 2: Role, none"}},
		{"RS-89 remove the role label of a parked secondary", fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Primary(), at(1), at(2), fixture.ParkedNow(2)), []string{"patch pod 2: Role, none"}},
		{"RS-89 no start of a parked member", fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Primary(), at(1), idle(2), fixture.ParkedNow(2)), nil},
		{"RS-89 no stop of a failed, parked member", fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Primary(), at(1), fixture.Pod(2).Status(1), fixture.ParkedNow(2)), nil},
		{"RS-89 no recreation of a parked member after many failures", fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Primary(), at(1), fixture.Pod(2).Status(1).Failures(9, "stop", 1, true), fixture.ParkedNow(2)), nil},
		{"RS-89 no update of a parked member", fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Primary(), at(1), idle(2).Outdated(), fixture.ParkedNow(2)), nil},
		{"RS-89 no update of another member while one is parked", fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Primary(), at(1).Outdated(), idle(2), fixture.ParkedNow(2)), nil},
		{"RS-89 query the status of a parked member", fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Primary(), at(1), fixture.Pod(2), fixture.ParkedNow(2)), []string{"2 asked status"}},
		{"RS-89 no removal of a parked member", fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Primary(), at(1), at(2).Unlabelled(), fixture.ParkedNow(2), fixture.Replicas(2)), nil},
		{"RS-89 no removal of another member while a parked one should be removed", fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Primary(), at(1), at(2).Unlabelled(), fixture.ParkedNow(2), fixture.Replicas(0)), nil},
		{"RS-89 a listed member is not parked while a command is running in it", fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Primary(), at(1), fixture.Pod(2).Idle().WithRuns("secondary", time.Second), fixture.Listed(2)), []string{"patch status of replicatedstatefulset db: Learned"}},
		{"RS-89 record that a member that left the list is not parked", fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Primary(), at(1), idle(2), fixture.With(func(w *facts.World) {
			w.Set.Status.Maintenance = []v1alpha1.MemberMaintenance{{Pod: "rss-db-2", State: v1alpha1.MaintenanceParked}}
		})), []string{"learned: 2 is no longer parked"}},
		{"RS-89 a parked member is stopped when the object is deleted", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).Primary().Sequence("9"), at(1), fixture.ParkedNow(1), fixture.DeletedSince(time.Minute)), []string{"learned: 1 is no longer parked"}},

		{"RS-90 demote a listed primary before it is parked", fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Primary().Sequence("9"), at(1), at(2), fixture.ToBeParked(0)), []string{"0: Demote, with 0"}},
		{"RS-90 demote a listed primary when one of its successors is parked", fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Primary().Sequence("9"), at(1).Unlabelled(), at(2), fixture.ToBeParked(0), fixture.ParkedNow(1)), []string{"0: Demote, with 0"}},
		{"RS-90 keep a listed primary when all other members are parked", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).Primary().Sequence("9"), at(1).Unlabelled(), fixture.ToBeParked(0), fixture.ParkedNow(1)), nil},
		{"RS-90 keep a listed primary while the successor lags, and query it again", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).Primary().Sequence("9"), fixture.Pod(1).Secondary().Sequence("8"), fixture.ToBeParked(0)), []string{"1 asked sequence"}},
		{"RS-90 keep a listed primary while a member is missing", fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Primary().Sequence("9"), at(1), fixture.Pod(2).Pending(), fixture.ToBeParked(0)), nil},
		{"RS-90 keep a listed primary while paused", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).Primary().Sequence("9"), at(1), fixture.ToBeParked(0), fixture.With(func(w *facts.World) { w.Set.Spec.Paused = true })), nil},
		{"RS-90 demote a listed primary with evictionPolicy Allow", fixture.WorldOf(fixture.Allowing(fixture.SetOf(3, 1)), fixture.Pod(0).Primary().Sequence("9"), at(1), at(2), fixture.ToBeParked(0)), []string{"0: Demote, with 0"}},
		{"RS-90 stop a listed primary when all members are primary", fixture.WorldOf(fixture.SetOf(3, 3), fixture.Pod(0).Primary(), fixture.Pod(1).Primary(), fixture.Pod(2).Primary(), fixture.ToBeParked(2)), []string{"2: Stop, with 0 1 2"}},
		{"RS-90 keep the last running primary although it is listed", fixture.WorldOf(fixture.SetOf(2, 2), fixture.Pod(0).Primary(), fixture.Pod(1).Idle(), fixture.ToBeParked(0), fixture.ParkedNow(1)), nil},
		{"RS-90 among equal sequences, promote a member that is not listed", fixture.WorldOf(fixture.SetOf(3, 1), at(0), at(1), at(2), fixture.ToBeParked(0)), []string{"1: Promote, alone"}},
		{"RS-90 promote a listed member that has the newest copy", fixture.WorldOf(fixture.SetOf(3, 1), at(0), fixture.Pod(1).Secondary().Sequence("8"), fixture.Pod(2).Secondary().Sequence("8"), fixture.ToBeParked(0)), []string{"0: Promote, alone"}},
		{"RS-90 park a demoted member when another one runs as primary", fixture.WorldOf(fixture.SetOf(3, 1), at(0), fixture.Pod(1).Primary(), at(2), fixture.ToBeParked(0)),
			[]string{"learned: 0 is parked, as spec.maintenance requires", "patch pod 0: Role, none"}},
		{"RS-90 no parking of a demoted member while the promotion of another one is in progress", fixture.WorldOf(fixture.SetOf(3, 1), at(0), fixture.Pod(1).WithGranted().WithRuns("promote", time.Second), at(2), fixture.ToBeParked(0)), nil},
		{"RS-90 a parked member that a user started as primary is not parked", fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Status(8), at(1), at(2), fixture.ParkedNow(0)),
			[]string{"learned: 0 was found running as primary; 0 is no longer parked"}},
		{"RS-90 demote the listed one of two primaries", fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Primary().Sequence("9"), fixture.Pod(1).Primary().Sequence("9"), at(2), fixture.ToBeParked(0)), []string{"0: Demote, with 0 1"}},
		{"RS-90 no promotion of a listed member when another primary is wanted", fixture.WorldOf(fixture.SetOf(4, 2), fixture.Pod(0).Primary(), at(1), at(2), at(3), fixture.ToBeParked(1)), []string{"2: Promote, with 0"}},

		{"RS-91 hand over for a drain while a member is parked", fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Primary().Cordoned().Sequence("9"), at(1), idle(2), fixture.ParkedNow(2)), []string{"0: Demote, with 0"}},
		{"RS-91 promote the newest member that is not parked", fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Crashed(), at(1), at(2).Unlabelled(), fixture.ParkedNow(2)), []string{"1: Promote, alone"}},
		{"RS-91 no promotion while a parked secondary is newer", fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Crashed(), at(1), fixture.Pod(2).Secondary().Later("10").Unlabelled(), fixture.ParkedNow(2)), nil},
		{"RS-91 no promotion while a parked, idle member is newer", fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Crashed(), at(1), fixture.Pod(2).Idle().Sequence("10"), fixture.ParkedNow(2)), nil},
		{"RS-91 query the sequence of a parked member before a promotion", fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Crashed(), at(1), fixture.Pod(2).Idle(), fixture.ParkedNow(2)), []string{"2 asked sequence"}},
		{"RS-91 seed the former primary when the parked member is not newer", fixture.WorldOf(fixture.SetOf(2, 1), idle(0), at(1).Unlabelled(), fixture.ParkedNow(1)), []string{"0: Seed, alone"}},
		{"RS-91 no seed of the former primary when the parked member is newer", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).Idle().Sequence("8"), at(1).Unlabelled(), fixture.ParkedNow(1)), nil},
		{"RS-91 seed when the sequence of the parked member is known and lower", fixture.WorldOf(fixture.SetOf(3, 1), idle(0), idle(1), fixture.Pod(2).Idle().Sequence("3"), fixture.ParkedNow(2)), []string{"0: Seed, alone"}},
		{"RS-91 no seed when the parked member has the newest copy", fixture.WorldOf(fixture.SetOf(3, 1), idle(0), idle(1), fixture.Pod(2).Idle().Sequence("10"), fixture.ParkedNow(2)), nil},
		{"RS-91 refuse seed-from for a parked member", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).Idle().Sequence("8"), idle(1), fixture.ParkedNow(1), fixture.Annotated(v1alpha1.AnnotationSeedFrom, "rss-db-1")),
			[]string{"patch replicatedstatefulset db: Refused, 1 was not seeded: it is in spec.maintenance; remove it from that list first"}},
		{"RS-91 seed-from seeds a member that is not parked", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).Idle().Sequence("8"), idle(1), fixture.ParkedNow(1), fixture.Annotated(v1alpha1.AnnotationSeedFrom, "rss-db-0")), []string{"0: Seed, alone"}},
		{"RS-90 refuse switchover-to for a parked member", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).Primary().Sequence("9"), at(1).Unlabelled(), fixture.ParkedNow(1), fixture.Annotated(v1alpha1.AnnotationSwitchoverTo, "rss-db-1")),
			[]string{"patch replicatedstatefulset db: Refused, 1 was not promoted: it is in spec.maintenance; remove it from that list first"}},
		{"RS-91 carry out a switchover between members that are not parked", fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Primary().Sequence("9"), at(1), fixture.Pod(2).Status(1), fixture.ParkedNow(2), fixture.Annotated(v1alpha1.AnnotationSwitchoverTo, "rss-db-1")), []string{"0: Demote, with 0"}},
	})
}

// TestNothingIsSentToAParkedMember tests the safeguard in send.
func TestNothingIsSentToAParkedMember(t *testing.T) {
	f := facts.Derive(fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).Primary(), fixture.Pod(1).Secondary(), fixture.ParkedNow(1)))
	p := rules.Plan{On: f, Record: f.Record, Asked: map[string]bool{}}
	if p.Send(f, f.Members[1], "stop", "stop", "the caller forgot to ask"); p.Acts() > 0 {
		t.Errorf("the plan is %q", fixture.Gist(&p))
	}
}
