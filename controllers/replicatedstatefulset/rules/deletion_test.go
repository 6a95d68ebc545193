package rules_test

import (
	"testing"
	"time"

	"k8s.io/utils/ptr"

	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/fixture"
)

func TestDeletion(t *testing.T) {
	gone := func(age time.Duration) fixture.Thing {
		return fixture.With(func(w *facts.World) { w.Set.DeletionTimestamp = ptr.To(fixture.MetaTime(age)) })
	}
	empty := fixture.With(func(w *facts.World) { w.Stateful.Spec.Replicas = ptr.To(int32(0)) })
	scaled := []string{"patch statefulset rss-db: Scale, from 2 to 0"}
	freed := "patch replicatedstatefulset db: Release"
	fixture.Check(t, []fixture.Row{
		{"RS-46 stop secondaries first", fixture.WorldOf(fixture.SetOf(2, 1), gone(time.Second), fixture.Pod(0).Primary(), fixture.Pod(1).Secondary()), []string{"1: Stop, with 0"}},
		{"RS-46 stop the primary when the secondaries are idle", fixture.WorldOf(fixture.SetOf(2, 1), gone(time.Second), fixture.Pod(0).Primary().Sequence("1"), fixture.Pod(1).Idle()), []string{"0: Stop, with 0"}},
		{"RS-46 scale down when all members are idle", fixture.WorldOf(fixture.SetOf(2, 1), gone(time.Second), fixture.Pod(0).Idle(), fixture.Pod(1).Idle()), scaled},
		{"RS-46 remove the finalizer of the object when no pod exists", fixture.WorldOf(fixture.SetOf(2, 1), gone(time.Second), empty), []string{freed}},
		{"stop members of a deleted object although it is paused", fixture.WorldOf(fixture.SetOf(2, 1), gone(time.Second), fixture.With(func(w *facts.World) { w.Set.Spec.Paused = true }), fixture.Pod(0).Primary(), fixture.Pod(1).Secondary()), []string{"1: Stop, with 0"}},
		{"wait for an unreachable primary of a deleted object", fixture.WorldOf(fixture.SetOf(2, 1), gone(599*time.Second), fixture.Pod(0).WithGranted().OnNode(fixture.Off), fixture.Pod(1).Idle()), nil},
		{"scale down after waiting ten minutes for an unreachable primary", fixture.WorldOf(fixture.SetOf(2, 1), gone(10*time.Minute), fixture.Pod(0).WithGranted().OnNode(fixture.Off), fixture.Pod(1).Idle()), scaled},
		{"wait for a terminating pod on an unreachable node", fixture.WorldOf(fixture.SetOf(2, 1), gone(1199*time.Second), empty, fixture.Pod(0).WithGranted().OnNode(fixture.Off).Deleted()), nil},
		{"remove the finalizer of a terminating pod on an unreachable node after twenty minutes", fixture.WorldOf(fixture.SetOf(2, 1), gone(20*time.Minute), empty, fixture.Pod(0).WithGranted().OnNode(fixture.Off).Deleted()), []string{"patch pod 0: Release"}},
		{"remove the finalizer of the object when its pods have none", fixture.WorldOf(fixture.SetOf(2, 1), gone(20*time.Minute), empty, fixture.Pod(0).WithGranted().OnNode(fixture.Off).Deleted().But(func(w *facts.World) { w.Members[0].Pod.Finalizers = nil })), []string{freed}},
		{"remove the finalizers of pods at once when the namespace is deleted", fixture.WorldOf(fixture.SetOf(2, 1), gone(time.Second), fixture.With(func(w *facts.World) { w.NamespaceTerminating = true }), fixture.Pod(0).Primary(), fixture.Pod(1).Secondary()),
			[]string{"patch pod 0: Release", "patch pod 1: Release"}},
		{"remove the finalizers of pods at once when the spec is invalid", fixture.WorldOf(fixture.SetOf(2, 1), gone(time.Second), fixture.With(func(w *facts.World) { w.Invalid = "bad" }), fixture.Pod(0).Primary()), []string{"patch pod 0: Release"}},
		{"remove the finalizers of pods at once when they are orphaned", fixture.WorldOf(fixture.SetOf(2, 1), gone(time.Second), fixture.With(func(w *facts.World) { w.Set.Finalizers = append(w.Set.Finalizers, "orphan") }), fixture.Pod(0).Primary()),
			[]string{"patch pod 0: Release"}},
		{"remove the finalizer of the object at once when the namespace is deleted", fixture.WorldOf(fixture.SetOf(2, 1), gone(time.Second), fixture.With(func(w *facts.World) { w.NamespaceTerminating = true })), []string{freed}},
		{"scale down although a member does not answer", fixture.WorldOf(fixture.SetOf(2, 1), gone(time.Second), fixture.Pod(0).Idle(), fixture.Pod(1).WithSilent(5)), scaled},
		{"no pod of a deleted object is recreated", fixture.WorldOf(fixture.SetOf(2, 1), gone(time.Second), fixture.Pod(0).Primary().WithRuns("stop", time.Second).Outdated(), fixture.Pod(1).Idle().Outdated()), nil},
		{"no member of a deleted object is started", fixture.WorldOf(fixture.SetOf(2, 1), gone(time.Second), empty, fixture.Pod(0).Idle().Sequence("9").Deleted(), fixture.Pod(1).Idle().Sequence("9").Deleted()), nil},
	})
}
