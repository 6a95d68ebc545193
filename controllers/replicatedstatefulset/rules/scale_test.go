package rules_test

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/ptr"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podexec"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/rules"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/spec"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/status"
)

// notOurs makes the StatefulSet one of another object that had the name first.
var notOurs = fixture.With(func(w *facts.World) {
	w.Stateful.OwnerReferences, w.Stateful.Labels, w.Stateful.Spec.Replicas = nil, nil, ptr.To(int32(5))
})

func TestWhatIsNotOursIsNotScaled(t *testing.T) {
	fixture.Check(t, []fixture.Row{
		{"no scaling of a foreign StatefulSet", fixture.WorldOf(fixture.SetOf(3, 1), notOurs), nil},
		{"no scaling of a foreign StatefulSet when the object is deleted", fixture.WorldOf(fixture.SetOf(3, 1), notOurs, fixture.With(func(w *facts.World) {
			w.Set.DeletionTimestamp = ptr.To(fixture.MetaTime(time.Second))
		})), []string{"patch replicatedstatefulset db: Release"}},
	})
}

// TestTheDark tests scale-downs while no member is primary.
func TestTheDark(t *testing.T) {
	five, noClaims := fixture.SetOf(5, 1), fixture.SetOf(3, 1)
	five.Spec.Seeding = v1alpha1.SeedingQuorum
	noClaims.Spec.Pod.VolumeClaimTemplates = nil
	stale := func() []fixture.Thing {
		return []fixture.Thing{fixture.Pod(0).Idle().Sequence("3").Outdated(), fixture.Pod(1).Idle().Sequence("9").Outdated(), fixture.Pod(2).Idle().Sequence("9").Outdated()}
	}
	fixture.Check(t, []fixture.Row{
		{"no seed while a wanted member is pending and a member to remove is idle", fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Pending(), fixture.Pod(1).Idle().Sequence("3"), fixture.Pod(2).Idle().Sequence("4"), fixture.Replicas(2)), nil},
		{"no seed while the wanted members are pending and the members to remove are idle", fixture.WorldOf(five, fixture.Pod(0).Pending(), fixture.Pod(1).Pending(), fixture.Pod(2).Pending(), fixture.Pod(3).Idle().Sequence("4"), fixture.Pod(4).Idle().Sequence("4"), fixture.Replicas(3)), nil},
		{"no scale-down while members to remove crashed a moment ago", fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Idle().Sequence("3"), fixture.Pod(1).Crashed(), fixture.Pod(2).Crashed(), fixture.Replicas(1)), nil},
		{"no scale-down while the pod of a member to remove is terminating", fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Idle().Sequence("3"), fixture.Pod(1).Idle().Sequence("3"), fixture.Pod(2).Idle().Deleted(), fixture.Replicas(2)), nil},
		{"no scale-down while the recorded newest copy is missing", fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Idle().Sequence("3"), fixture.Pod(1).Idle().Sequence("3"), fixture.Pod(2).Pending(), fixture.RecordedSequence("rss-db-2", "9"), fixture.Replicas(2)), nil},
		{"scale down when a remaining member has the recorded newest copy", fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Idle().Sequence("9"), fixture.Pod(1).Idle().Sequence("3"), fixture.Pod(2).Pending(), fixture.RecordedSequence("rss-db-2", "9"), fixture.Replicas(2)),
			[]string{"patch statefulset rss-db: Scale, from 3 to 2"}},
		{"RS-34 no scale-down while the primary is being stopped", fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Idle().Sequence("9"), fixture.Pod(1).WithGranted().Status(9).Deleted().WithRuns("stop", time.Second), fixture.Pod(2).Secondary(), fixture.Replicas(2)), nil},
		{"RS-38 no scale-up with too few replicas while pods terminate", fixture.WorldOf(fixture.SetOf(3, 1), fixture.Replicas(2), fixture.With(func(w *facts.World) {
			w.Set.Status.RestoreReplicas, w.Stateful.Spec.Replicas = 3, ptr.To(int32(0))
		}), fixture.Pod(0).Idle().Deleted(), fixture.Pod(1).Idle().Deleted(), fixture.Pod(2).Idle().Deleted()), nil},
		{"seed an outdated member before its pod is recreated", fixture.WorldOf(fixture.SetOf(3, 1), stale()...), []string{"1: Seed, alone"}},
		{"seed an outdated member without a claim before its pod is recreated", fixture.WorldOf(noClaims, stale()...), []string{"1: Seed, alone"}},
		{"no seed while a pod of a former object is terminating on an unreachable node", fixture.WorldOf(quorum(), fixture.Pod(0).Deleted().OnNode(fixture.Off).Strange(), fixture.Pod(1).Idle().Sequence("3"), fixture.Pod(2).Idle().Sequence("3")), nil},
		{"seed-from is refused for a missing member", fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Idle().Sequence("x"), fixture.Pod(1).Idle().Sequence("9"), fixture.Pod(2).Idle().Sequence("9"),
			fixture.Annotated(v1alpha1.AnnotationSeedFrom, "rss-db-7")), []string{"patch replicatedstatefulset db: Refused, 7 was not seeded: no such member"}},
	})
}

// TestStrays tests commands that may still reach a container.
func TestStrays(t *testing.T) {
	fixture.Check(t, []fixture.Row{
		{"no promotion while this process still sends a command", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).WithGranted().WithRuns("promote", 16*time.Second).Crashed(), fixture.Pod(1).Secondary().Sequence("9")), nil},
		{"RS-22 query status when the clock of the node is ahead", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).WithGranted().Began("promote", 4*time.Second).Restarted(-12*time.Second), fixture.Pod(1).Secondary().Sequence("9")),
			[]string{"0 asked status"}},
	})
}

func TestAPrimaryThatDoesNotAnswerAnyMoreIsToldOf(t *testing.T) {
	w := fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).Primary().WithSilent(spec.UnresponsiveAfter), fixture.Pod(1).Secondary())
	m := w.Members[0]
	r := m.Said[v1alpha1.CommandStatus]
	r.Code, r.Outcome, r.Began, r.Ended = 8, podexec.Failed, fixture.Ago(time.Hour), fixture.Ago(time.Hour)
	r.Command = podexec.Command{Name: v1alpha1.CommandStatus, UID: m.Pod.UID, ContainerID: m.Running()}
	m.Said[v1alpha1.CommandStatus] = r
	p := rules.Decide(w)
	s := status.Summarize(&p)
	c := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionDegraded)
	if c == nil || c.Reason != v1alpha1.ReasonMembersDegraded {
		t.Errorf("the condition is %+v", c)
	}
}

// TestScaleDownInTheDark tests a scale-down while no member is primary: the members to remove may
// have data that no other member has.
func TestScaleDownInTheDark(t *testing.T) {
	scaled := []string{"patch statefulset rss-db: Scale, from 3 to 2"}
	fixture.Check(t, []fixture.Row{
		{"RS-33 seed the member to remove when only it has the newest copy", fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Idle().Sequence("3"), fixture.Pod(1).Idle().Sequence("3"), fixture.Pod(2).Idle().Sequence("4"), fixture.Replicas(2)), []string{"2: Seed, alone"}},
		{"RS-33 promote the member to remove when only it has the newest copy", fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Crashed(), fixture.Pod(1).Secondary().Sequence("8"), fixture.Pod(2).Secondary().Sequence("9"), fixture.Replicas(2)), []string{"2: Promote, alone"}},
		{"RS-33 remove a member when another one has an equal copy", fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Idle().Sequence("3"), fixture.Pod(1).Idle().Sequence("4"), fixture.Pod(2).Idle().Sequence("4"), fixture.Replicas(2)), scaled},
		{"RS-33 no removal of a member whose sequence is unknown", fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Idle().Sequence("3"), fixture.Pod(1).Idle().Sequence("3"), fixture.Pod(2).Idle(), fixture.Replicas(2)), []string{"2 asked sequence"}},
		{"RS-33 no removal while the sequence of a remaining member is unknown", fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Idle(), fixture.Pod(1).Pending(), fixture.Pod(2).Idle().Sequence("4"), fixture.Replicas(2)), []string{"0 asked sequence"}},
		{"RS-33 remove a pending member", fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Idle().Sequence("3"), fixture.Pod(1).Idle().Sequence("3"), fixture.Pod(2).Pending(), fixture.Replicas(2)), scaled},
		{"RS-33 query sequences again if they were read before the loss", fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Secondary().Sequence("9"), fixture.Pod(1).Secondary().Sequence("9"), fixture.Pod(2).Secondary().Sequence("9"), fixture.Replicas(2),
			fixture.With(func(w *facts.World) { w.LossAt = fixture.Ago(3 * time.Second) })), []string{"0 asked sequence", "1 asked sequence", "2 asked sequence"}},
		{"RS-33 no promotion while the member to remove is being queried", fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Secondary().Sequence("8"), fixture.Pod(1).Secondary().Sequence("8"),
			fixture.Pod(2).Idle().But(func(w *facts.World) { w.Members[2].Busy = &podexec.Command{Name: "sequence"} }), fixture.Replicas(2)), nil},
		{"RS-33 no promotion while the sequence of the member to remove is unknown", fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Secondary().Sequence("8"), fixture.Pod(1).Secondary().Sequence("8"),
			fixture.Pod(2).Idle().Answered("sequence", podexec.Failed, 1, "", 1500*time.Millisecond), fixture.Replicas(2)), nil},
		{"RS-33 seed the member to remove when it is newer than the secondary", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).Secondary().Sequence("8"), fixture.Pod(1).Idle().Sequence("9"), fixture.Replicas(1)), []string{"1: Seed, alone"}},
		{"RS-33 promote the secondary when it had all data before the stop of the member to remove", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).Secondary().Sequence("8"),
			fixture.Pod(1).Changed("stop", 20*time.Second).Idle().Sequence("9").But(func(w *facts.World) {
				m := w.Members[1]
				r := m.Results["stop"]
				r.Proven, w.LossOf = true, m.Pod.UID
				m.Results["stop"] = r
			}), fixture.Replicas(1)), []string{"0: Promote, alone"}},
		{"RS-33 query the primary again if it was read before the stop of another member", fixture.WorldOf(fixture.SetOf(4, 1), fixture.Pod(0).Secondary().Sequence("9"), fixture.Pod(1).Secondary().Sequence("9"),
			fixture.Pod(2).Primary().Answered("sequence", podexec.Succeeded, 0, "9", 8*time.Second),
			fixture.Pod(3).Changed("stop", 7*time.Second).Answered("status", podexec.Failed, 7, "", 6*time.Second), fixture.Replicas(2)), []string{"2 asked sequence"}},
		{"RS-33 start a remaining member as primary before the last primary is removed", fixture.WorldOf(fixture.SetOf(4, 2, "secondary", "promote", "demote"), fixture.Pod(0).Idle().Sequence("9"), fixture.Pod(1).Idle().Sequence("9"),
			fixture.Pod(2).Status(8).WithGranted().Answered("sequence", podexec.Succeeded, 0, "9", 8*time.Second), fixture.Pod(3).Idle(), fixture.Replicas(2)), []string{"0: Primary, with 2"}},
		{"RS-33 stop the primary to remove when the secondaries have all its data", fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Secondary().Sequence("9"), fixture.Pod(1).Secondary().Sequence("9"),
			fixture.Pod(2).Primary().Answered("sequence", podexec.Succeeded, 0, "9", 8*time.Second), fixture.Replicas(2)), []string{"2: Stop, with 2"}},
	})
}

// seenFor sets for how long the StatefulSet has had its current spec, which its controller has
// observed.
func seenFor(age time.Duration, replicas int32) fixture.Thing {
	return fixture.With(func(w *facts.World) {
		w.StatefulSince = fixture.Ago(age)
		w.Stateful.Spec.Replicas = ptr.To(replicas)
		w.Stateful.Generation, w.Stateful.Status.ObservedGeneration = 5, 5
	})
}

func TestW8MembersThatLeftAreRemoved(t *testing.T) {
	const gone = "delete pod 2: Surplus, it is scaled down, and the StatefulSet controller deletes no pod until it has created the 1 missing pods"
	fixture.Check(t, []fixture.Row{
		{"W8 delete a surplus pod while a missing pod cannot be created", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(1).Primary(), fixture.Pod(2).Idle(), seenFor(10*time.Second, 2)), []string{gone}},
		{"W8 delete the surplus pod with the highest ordinal first", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(1).Primary(), fixture.Pod(2).Idle(), fixture.Pod(3).Idle(), seenFor(time.Minute, 2)), []string{strings.Replace(gone, "pod 2", "pod 3", 1)}},
		{"W8 no deletion while another surplus pod is terminating", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(1).Primary(), fixture.Pod(2).Idle(), fixture.Pod(3).Idle().Deleted(), seenFor(time.Minute, 2)), nil},
		{"W8 no deletion while the StatefulSet's controller still has time", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(1).Primary(), fixture.Pod(2).Idle(), seenFor(9*time.Second, 2)), nil},
		{"W8 no deletion before the StatefulSet's controller has observed the replicas", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(1).Primary(), fixture.Pod(2).Idle(), seenFor(time.Minute, 2), fixture.With(func(w *facts.World) { w.Stateful.Generation++ })), nil},
		{"W8 no deletion while no pod is missing", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).Secondary(), fixture.Pod(1).Primary(), fixture.Pod(2).Idle(), seenFor(time.Minute, 2)), nil},
		{"W8 stop a surplus secondary before its pod is deleted", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(1).Primary(), fixture.Pod(2).Secondary().Sequence("9"), seenFor(time.Minute, 2)), []string{"2: Stop, with 1"}},
		{"W8 no deletion of a surplus pod whose data no other member has", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(1).Idle().Sequence("8"), fixture.Pod(2).Idle().Sequence("9"), seenFor(time.Minute, 2)), nil},
	})
	w := fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(1).Primary(), fixture.Pod(2).Idle(), seenFor(time.Second, 2))
	if c := fixture.ConditionOf(t, w, v1alpha1.ConditionProgressing); c.Message != "scaling down from 3 to 2 pods" {
		t.Errorf("W8 the message is %q", c.Message)
	}
}

// TestRS156AMemberThatReceivesAllDataIsNoReplacement tests that the last member with all data is not stopped
// while another primary still receives it.
func TestRS156AMemberThatReceivesAllDataIsNoReplacement(t *testing.T) {
	primaries := func() *v1alpha1.ReplicatedStatefulSet {
		set := fixture.SetOf(3, 3, v1alpha1.CommandPromote, v1alpha1.CommandDemote, v1alpha1.CommandSecondary)
		set.Spec.Primaries = nil
		return set
	}
	receiving := func() *fixture.PodFixture { return fixture.Pod(0).Status(191).WithGranted() }
	fixture.Check(t, []fixture.Row{
		{"stop one of two that have all data", fixture.WorldOf(primaries(), receiving().Sequence("0"), fixture.Pod(1).Primary(), fixture.Pod(2).Primary(), fixture.Replicas(2)), []string{"2: Stop, with 0 1 2"}},
		{"do not stop the last one", fixture.WorldOf(primaries(), receiving().Sequence("0"), fixture.Pod(1).Primary().Sequence("9"), fixture.Replicas(1)), nil},
		{"ask the degraded member", fixture.WorldOf(primaries(), receiving(), fixture.Pod(1).Primary(), fixture.Replicas(1)), []string{"0 asked sequence"}},
		{"stop it when the degraded member has data", fixture.WorldOf(primaries(), receiving().Sequence("9"), fixture.Pod(1).Primary(), fixture.Replicas(1)), []string{"1: Stop, with 0 1"}},
		{"do not park the last one", fixture.WorldOf(primaries(), receiving().Sequence("0"), fixture.Pod(1).Primary().Sequence("9"), fixture.Replicas(2), fixture.Listed(1)), []string{"patch status of replicatedstatefulset db: Learned"}},
	})
	p := rules.Decide(fixture.WorldOf(primaries(), receiving().Sequence("0"), fixture.Pod(1).Primary(), fixture.Replicas(1)))
	if want := "rss-db-1 is not stopped before others have all data: rss-db-0"; p.Waiting.Message != want {
		t.Errorf("the plan waits because %q, want %q", p.Waiting.Message, want)
	}
}
