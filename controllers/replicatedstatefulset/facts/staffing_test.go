package facts_test

import (
	"testing"
	"time"

	"k8s.io/utils/ptr"

	"github.com/stateful-operator/stateful-operator/controllers/internal/podexec"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/fixture"
)

func TestSizes(t *testing.T) {
	scaled := "patch statefulset rss-db: Scale, from 3 to "
	fixture.Check(t, []fixture.Row{
		{"RS-33 scale up at once", fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Primary(), fixture.Pod(1).Secondary(), fixture.Pod(2).Secondary(), fixture.Replicas(5)), []string{scaled + "5"}},
		{"RS-33 query the sequence of the member to remove", fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Primary(), fixture.Pod(1).Secondary(), fixture.Pod(2).Secondary(), fixture.Replicas(2)), []string{"2 asked sequence"}},
		{"RS-33 stop the member to remove", fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Primary(), fixture.Pod(1).Secondary(), fixture.Pod(2).Secondary().Sequence("9"), fixture.Replicas(2)), []string{"2: Stop, with 0"}},
		{"RS-33 stop the member to remove although its sequence query hangs", fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Primary(), fixture.Pod(1).Secondary(), fixture.Pod(2).Secondary().Hung(), fixture.Replicas(2)), []string{"2: Stop, with 0"}},
		{"RS-33 scale down when the member to remove is idle", fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Primary(), fixture.Pod(1).Secondary(), fixture.Pod(2).Idle(), fixture.Replicas(2)), []string{scaled + "2"}},
		{"stop a primary to remove when another member has all its data", fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Secondary().Sequence("9"), fixture.Pod(1).Secondary().Sequence("9"),
			fixture.Pod(2).Primary().Answered("sequence", podexec.Succeeded, 0, "9", 8*time.Second), fixture.Replicas(2)), []string{"2: Stop, with 2"}},
		{"query the other members while they lack data of the primary to remove", fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Secondary().Sequence("7"), fixture.Pod(1).Secondary().Sequence("8"),
			fixture.Pod(2).Primary().Answered("sequence", podexec.Succeeded, 0, "9", 8*time.Second), fixture.Replicas(2)), []string{"0 asked sequence", "1 asked sequence"}},
		{"RS-37 to 0: query the sequence of the primary, without a demotion", fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Primary(), fixture.Pod(1).Idle(), fixture.Pod(2).Pending(), fixture.Replicas(0)), []string{"0 asked sequence"}},
		{"RS-37 to 0: stop secondaries first", fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Primary(), fixture.Pod(1).Secondary(), fixture.Pod(2).Secondary(), fixture.Replicas(0)), []string{"2: Stop, with 0"}},
		{"RS-37 to 0: stop the primary with the highest sequence last", fixture.WorldOf(fixture.SetOf(3, 3), fixture.Pod(0).Primary().Sequence("3"), fixture.Pod(1).Primary().Sequence("2"), fixture.Pod(2).Idle(), fixture.Replicas(0)), []string{"1: Stop, with 0 1"}},
		{"RS-37 to 0: scale down when all members are idle", fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Idle(), fixture.Pod(1).Idle(), fixture.Pod(2).Pending(), fixture.Replicas(0)), []string{scaled + "0"}},
		{"RS-38 a stopped set does not start with fewer members than before", fixture.WorldOf(fixture.SetOf(3, 1), fixture.Replicas(2), fixture.With(func(w *facts.World) {
			w.Set.Status.RestoreReplicas, w.Stateful.Spec.Replicas = 3, ptr.To(int32(0))
		})), nil},
		{"RS-38 a stopped set starts with as many members as before", fixture.WorldOf(fixture.SetOf(3, 1), fixture.With(func(w *facts.World) {
			w.Set.Status.RestoreReplicas, w.Stateful.Spec.Replicas = 3, ptr.To(int32(0))
		})), []string{"patch statefulset rss-db: Scale, from 0 to 3"}},
		{"RS-47 restore the replicas of the StatefulSet", fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Primary(), fixture.Pod(1).Secondary(), fixture.With(func(w *facts.World) { w.Stateful.Spec.Replicas = ptr.To(int32(2)) })),
			[]string{"patch statefulset rss-db: Scale, from 2 to 3"}},
		{"RS-57 update a secondary first", fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Primary().Outdated(), fixture.Pod(1).Secondary().Outdated(), fixture.Pod(2).Secondary().Outdated()), []string{"2: Stop, with 0"}},
		{"RS-57 no update while a member reports that it is degraded", fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Primary().Outdated(), fixture.Pod(1).Status(190).Outdated(), fixture.Pod(2).Secondary().Outdated()), nil},
		{"RS-57 no update while an updated pod is pending", fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Primary().Outdated(), fixture.Pod(1).Secondary().Outdated(), fixture.Pod(2).Pending()), nil},
		{"RS-57 delete an outdated pod when its member is idle", fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Primary().Outdated(), fixture.Pod(1).Secondary().Outdated(), fixture.Pod(2).Idle().Outdated()),
			[]string{"delete pod 2: Renew, its template is outdated, and it has no running member"}},
		{"RS-57 update the primary last, when a successor has all its data", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).Primary().Answered("sequence", podexec.Succeeded, 0, "9", 8*time.Second).Outdated(), fixture.Pod(1).Secondary().Sequence("9")),
			[]string{"0: Stop, with 0"}},
	})
}
