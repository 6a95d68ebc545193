package status_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/nodestate"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podexec"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/rules"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/status"
)

func TestConditionsInTheDark(t *testing.T) {
	for _, row := range []struct {
		name                  string
		world                 *facts.World
		kind, reason, message string
	}{
		{"a scale-down waits for a container that restarts repeatedly", fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Idle().Sequence("3"), fixture.Pod(1).Idle().Sequence("3"), fixture.Pod(2).Looping(time.Hour), fixture.Replicas(2), fixture.Lost(time.Hour)),
			v1alpha1.ConditionDataLossRisk, v1alpha1.ReasonNewestMissing, "rss-db-2 may have data that no other member has: its container has ended"},
		{"a scale-down waits for the recorded newest copy", fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Idle().Sequence("3"), fixture.Pod(1).Idle().Sequence("3"), fixture.Pod(2).Born(time.Hour).Pending(), fixture.Replicas(2), fixture.RecordedSequence("rss-db-2", "9"), fixture.Lost(time.Hour)),
			v1alpha1.ConditionDataLossRisk, v1alpha1.ReasonNewestMissing, "no remaining member is known to have all data of rss-db-2, which had sequence 9"},
		{"a newer copy cannot be started", fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Idle().Sequence("10").Deleted(), fixture.Pod(1).Secondary().Sequence("9"), fixture.Pod(2).Born(time.Hour).Pending(), fixture.RecordedSequence("rss-db-0", "10"), fixture.Lost(9*time.Minute)),
			v1alpha1.ConditionDataLossRisk, v1alpha1.ReasonNewestMissing, "the newest available copy has sequence 9, but rss-db-0 had 10"},
		{"the sequence query of a secondary hangs", fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Looping(time.Hour), fixture.Pod(1).Secondary().Sequence("9"), fixture.Pod(2).Secondary().Hung(), fixture.Lost(time.Hour)),
			v1alpha1.ConditionDataLossRisk, v1alpha1.ReasonSequenceUnknown, "rss-db-2"},
		{"a scale-down waits for a terminating member that may be primary", fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Secondary(), fixture.Pod(1).Secondary(), fixture.Pod(2).Primary().Failures(1, "demote", 1, false).Deleted(), fixture.Replicas(2)),
			v1alpha1.ConditionProgressing, v1alpha1.ReasonScaling, "waiting for members that may still be primary to stop: rss-db-2; scale-down is blocked until then"},
	} {
		t.Run(row.name, func(t *testing.T) {
			p := rules.Decide(row.world)
			c := meta.FindStatusCondition(status.Summarize(&p).Conditions, row.kind)
			if c.Status != "True" || c.Reason != row.reason || !strings.Contains(c.Message, row.message) {
				t.Errorf("the condition is %+v", c)
			}
		})
	}
}

// TestMessages tests that each message states the situation and its reason.
func TestMessages(t *testing.T) {
	sequence := func(outcome podexec.Outcome, code int, out string) *fixture.PodFixture {
		return fixture.Pod(0).Idle().Answered("sequence", outcome, code, out, 5*time.Second)
	}
	seen := fixture.With(func(w *facts.World) { w.Set.Status.Epoch = 2 })
	requested := fixture.Annotated(v1alpha1.AnnotationSwitchoverTo, "rss-db-1")
	for _, r := range []struct {
		name, condition string
		world           *facts.World
		want            string
	}{
		{"V16 Seeded during a failover", v1alpha1.ConditionSeeded, fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Crashed(), fixture.Pod(1).Secondary().Sequence("9"), fixture.Pod(2).Secondary().Sequence("9"), seen, fixture.Lost(15*time.Second)),
			"NotSeeded: the primary of epoch 2 has stopped, and the next primary is being chosen"},
		{"V16 Seeded during a failover that waits for sequences", v1alpha1.ConditionSeeded, fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Crashed(), fixture.Pod(1).Secondary(), fixture.Pod(2).Secondary().Sequence("9"), seen, fixture.Lost(15*time.Second)),
			"NotSeeded: waiting for a response from sequence in rss-db-1, rss-db-2"},
		{"V16 Seeded before the first start", v1alpha1.ConditionSeeded, fixture.WorldOf(fixture.SetOf(1, 1), fixture.Pod(0).Idle().Sequence("9")), "NotSeeded: no member has been started yet"},
		{"V19 sequence failed", v1alpha1.ConditionSeeded, fixture.WorldOf(fixture.SetOf(1, 1), sequence(podexec.Failed, 3, "")), "SequenceUnknown: data version unknown for rss-db-0 (sequence failed with exit code 3)"},
		{"V19 sequence printed no number", v1alpha1.ConditionDataLossRisk, fixture.WorldOf(fixture.SetOf(1, 1), sequence(podexec.Succeeded, 0, "GTID 7-9\n")), `SequenceUnknown: data version unknown for rss-db-0 (sequence must print one unsigned integer, but printed something else (8 bytes))`},
		{"V19 sequence printed nothing", v1alpha1.ConditionDataLossRisk, fixture.WorldOf(fixture.SetOf(1, 1), sequence(podexec.Succeeded, 0, " \n")), "rss-db-0 (sequence must print one unsigned integer, but printed nothing)"},
		{"V19 sequence printed too many bytes", v1alpha1.ConditionDataLossRisk, fixture.WorldOf(fixture.SetOf(1, 1), sequence(podexec.Succeeded, 0, "7").Cut()), "rss-db-0 (sequence must print one unsigned integer, but printed something else (more than 64 bytes))"},
		{"V19 the outcome of sequence is unknown", v1alpha1.ConditionSeeded, fixture.WorldOf(fixture.SetOf(1, 1), fixture.Pod(0).Idle().Hung()), "SequenceUnknown: data version unknown for rss-db-0 (sequence: the stream broke)"},
		{"V23 a switchover waits for a pending pod", v1alpha1.ConditionProgressing, fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Primary().Sequence("9"), fixture.Pod(1).Secondary().Sequence("9"), fixture.Pod(2).Pending(), requested),
			"HandingOver: the switchover to rss-db-1 (annotation clusterlabs.org/switchover-to) waits until no member is missing; missing: rss-db-2 (pending)"},
		{"V23 a switchover waits for a missing pod", v1alpha1.ConditionProgressing, fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Primary().Sequence("9"), fixture.Pod(1).Secondary().Sequence("9"), requested), "missing: 1 of 3 pods"},
		{"V23 a switchover waits for a running command", v1alpha1.ConditionProgressing, fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Primary().Sequence("9"), fixture.Pod(1).Secondary().Sequence("9"), fixture.Pod(2).WithRuns("stop", time.Second), requested), "missing: rss-db-2 (command stop is in progress)"},
		{"V23 a switchover waits for a lagging successor", v1alpha1.ConditionProgressing, fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).Primary().Answered("sequence", podexec.Succeeded, 0, "9", 8*time.Second), fixture.Pod(1).Secondary().Sequence("8"), requested), "HandingOver: waiting for rss-db-1 to catch up with rss-db-0"},
	} {
		t.Run(r.name, func(t *testing.T) {
			p := rules.Decide(r.world)
			c := meta.FindStatusCondition(status.Summarize(&p).Conditions, r.condition)
			if got := c.Reason + ": " + c.Message; !strings.Contains(got, r.want) {
				t.Errorf("%s is %q, want %q", r.condition, got, r.want)
			}
		})
	}
	p := rules.Decide(fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Idle(), fixture.Pod(1).Secondary().Sequence("8"), fixture.Pod(2).Secondary().Sequence("9"), fixture.Lost(15*time.Second), requested))
	if got, want := fixture.Gist(&p), []string{"patch replicatedstatefulset db: Refused, 1 was not promoted: 2 has newer data. The former primary was already stopped or demoted for it; promoting 2"}; !slices.Equal(got, want) {
		t.Errorf("V17 the plan is %q, want %q", got, want)
	}
}

func TestW9ConditionsTellHowToGoOn(t *testing.T) {
	blocked := func(set *v1alpha1.ReplicatedStatefulSet) *facts.World {
		return fixture.WorldOf(set, fixture.Pod(0).Idle().Sequence("9"), fixture.Pod(1).Quiet(40*time.Second), fixture.Pod(2).Secondary().Sequence("9"), fixture.Lost(45*time.Second))
	}
	const command = "To continue without it, delete its pod: kubectl -n ns delete pod rss-db-1; "
	for _, r := range []struct {
		name  string
		world *facts.World
		want  string
	}{
		{"by default", blocked(fixture.SetOf(3, 1)), command + "its claims are kept. The operator deletes the pod automatically if spec.failover.recreateUnresponsiveAfter is set"},
		{"with a timeout", blocked(fixture.Recreating(fixture.SetOf(3, 1), "2m")), command + "its claims are kept. The operator deletes the pod after 12:01:20 (spec.failover.recreateUnresponsiveAfter), when the sequences of 2 members are known"},
		{"W10 with a refused trial of the new pod", fixture.WorldOf(fixture.Recreating(fixture.SetOf(3, 1), "2m"), fixture.Pod(0).Idle().Sequence("9"), fixture.Pod(1).Quiet(4*time.Minute), fixture.Pod(2).Secondary().Sequence("9"), fixture.Lost(5*time.Minute),
			fixture.With(func(w *facts.World) {
				w.RefusedDryRun = facts.RefusedDryRun{Text: "pods are forbidden: policy", At: fixture.Ago(9 * time.Second)}
			})),
			command + "its claims are kept; the operator does not delete it, because the API server would not create its new pod; correct the policy or quota that refuses it: pods are forbidden: policy"},
		{"without claims", blocked(fixture.Unclaimed(fixture.SetOf(3, 1))), command + "the operator does not delete it, because it has no claim, and its data would be lost"},
	} {
		for _, kind := range []string{v1alpha1.ConditionProgressing, v1alpha1.ConditionDegraded} {
			if c := fixture.ConditionOf(t, r.world, kind); c.Status != metav1.ConditionTrue || !strings.Contains(c.Message, r.want) {
				t.Errorf("%s: %s is %s, %q, want it to contain %q", r.name, kind, c.Status, c.Message, r.want)
			}
		}
	}
	slow := fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Idle().Sequence("9"), fixture.Pod(1).Quiet(20*time.Second), fixture.Pod(2).Secondary().Sequence("9"), fixture.Lost(25*time.Second))
	if c := fixture.ConditionOf(t, slow, v1alpha1.ConditionProgressing); strings.Contains(c.Message, "kubectl") {
		t.Errorf("the message for a slow member is %q", c.Message)
	}
}

func TestW11SecondariesThatAreNotReady(t *testing.T) {
	running := func(others ...fixture.Thing) *facts.World {
		return fixture.WorldOf(fixture.SetOf(3, 1), append([]fixture.Thing{fixture.Pod(0).Primary()}, others...)...)
	}
	two := running(fixture.Pod(1).Secondary().Unready(time.Minute), fixture.Pod(2).Secondary().Unready(time.Hour))
	const want = "2 of 3 members run as secondaries, but their pods are not Ready: rss-db-1, rss-db-2. For details: kubectl -n ns describe pod rss-db-1"
	if c := fixture.ConditionOf(t, two, v1alpha1.ConditionDegraded); c.Reason != v1alpha1.ReasonMembersNotReady || c.Message != want {
		t.Errorf("W11 Degraded is %s, %q", c.Reason, c.Message)
	}
	for kind, status := range map[string]metav1.ConditionStatus{v1alpha1.ConditionReady: "False", v1alpha1.ConditionReconciling: "True", v1alpha1.ConditionAvailable: "True"} {
		if c := fixture.ConditionOf(t, two, kind); c.Status != status {
			t.Errorf("W11 %s is %s, want %s", kind, c.Status, status)
		}
	}
	for name, w := range map[string]*facts.World{
		"a pod has not been Ready for less than a minute": running(fixture.Pod(1).Secondary().Unready(59*time.Second), fixture.Pod(2).Secondary()),
		"a pod has not been Ready since a recent start":   running(fixture.Pod(1).Changed("secondary", 12*time.Second).Secondary().Unready(time.Hour), fixture.Pod(2).Secondary()),
		"an unready pod is terminating":                   running(fixture.Pod(1).Secondary().Unready(time.Hour).Deleted(), fixture.Pod(2).Secondary()),
		"a command is running in an unready pod":          running(fixture.Pod(1).WithRuns("secondary", time.Hour).Unready(time.Hour), fixture.Pod(2).Secondary()),
		"no member runs as secondary":                     fixture.WorldOf(fixture.SetOf(3, 1, "secondary", "promote", "demote"), fixture.Pod(0).Primary(), fixture.Pod(1).Idle().Unready(time.Hour), fixture.Pod(2).Idle()),
		"all secondaries are Ready":                       running(fixture.Pod(1).Secondary(), fixture.Pod(2).Secondary()),
	} {
		if c := fixture.ConditionOf(t, w, v1alpha1.ConditionDegraded); c.Reason == v1alpha1.ReasonMembersNotReady {
			t.Errorf("W11 %s: Degraded is %q", name, c.Message)
		}
	}
}

// toldOf returns the status of a world as a user reads it: the phase, the members by role, and the
// conditions that are True.
func toldOf(w *facts.World) (line, reason string) {
	p := rules.Decide(w)
	s := status.Summarize(&p)
	var parts []string
	for _, list := range []struct {
		name  string
		names []string
	}{{"ready", s.Members.Ready}, {"unready", s.Members.Unready}, {"primary", s.Members.Primary}, {"secondary", s.Members.Secondary}, {"failed", s.Members.Failed}} {
		if len(list.names) > 0 {
			parts = append(parts, list.name+" "+strings.ReplaceAll(strings.Join(list.names, " "), "rss-db-", ""))
		}
	}
	var conditions []string
	for _, c := range s.Conditions {
		switch c.Type {
		case v1alpha1.ConditionReady, v1alpha1.ConditionReconciling, v1alpha1.ConditionStalled:
			continue // they follow from the others: see test/readiness
		}
		if c.Status == metav1.ConditionTrue {
			conditions = append(conditions, c.Type+"="+c.Reason)
		}
	}
	slices.Sort(conditions)
	return fmt.Sprintf("%s: %s; %s", s.Phase, strings.Join(parts, ", "), strings.Join(conditions, " ")), s.Reason
}

func TestStatus(t *testing.T) {
	for _, r := range []struct {
		name         string
		world        *facts.World
		want, reason string
	}{
		{"RS-13 a seed waits for a member", fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Idle().Sequence("3"), fixture.Pod(1).Idle().Sequence("9"), fixture.Pod(2).Pending()),
			"Creating: ready 0 1, unready 2; Progressing=WaitingForPods", "waiting for the data version (command sequence) of 1 of 3 members"},
		{"RS-14 the newest member failed, and no other has its data", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).Idle().Sequence("9").Failures(1, "seed", 3, false), fixture.Pod(1).Idle().Sequence("8")),
			"Creating: ready 0 1, failed 0; Degraded=MembersFailed Progressing=Recovering", "cannot start rss-db-0, which has the newest data: seed reported with exit code 3 that the member cannot run in this pod"},
		{"RS-15 the sequence of a member is unreadable", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).Idle().Sequence("x"), fixture.Pod(1).Idle().Sequence("8")),
			"Creating: ready 0 1; DataLossRisk=SequenceUnknown Progressing=Seeding", "data version unknown for rss-db-0 (sequence must print one unsigned integer, but printed something else (1 bytes))"},
		{"RS-15 the sequence of a member is being queried", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).Idle(), fixture.Pod(1).Idle().Sequence("8")),
			"Creating: ready 0 1; Progressing=Seeding", "data version unknown for rss-db-0: waiting for a response from sequence"},
		{"a primary reports that it is degraded", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).Status(191).WithGranted(), fixture.Pod(1).Secondary()),
			"Running: ready 0 1, primary 0, secondary 1; Available=OnTarget Degraded=MembersDegraded Seeded=Seeded", "status reports degraded members (exit code 190 or 191): rss-db-0"},
		{"a member of an application copies the data", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).Primary(), fixture.Pod(1).Status(190), fixture.With(func(w *facts.World) {
			w.Set.Spec.Application = &v1alpha1.ApplicationPolicy{Type: v1alpha1.ApplicationPostgreSQL}
		})),
			"Running: ready 0 1, primary 0, secondary 1; Available=OnTarget Degraded=MembersDegraded Seeded=Seeded", "members copy all data of the primary, which takes some time (see their logs): rss-db-1"},
		{"RS-19 the start of a primary failed", fixture.WorldOf(fixture.SetOf(3, 3, "secondary"), fixture.Pod(0).Primary(), fixture.Pod(1).Primary(), fixture.Pod(2).Idle().Failures(1, "primary", 1, true)),
			"Running: ready 0 1 2, primary 0 1, failed 2; Degraded=MembersFailed Progressing=Recovering Seeded=Seeded", "failed: rss-db-2"},
		{"RS-35 the majority is lost, and the primary keeps running", fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Primary(), fixture.Pod(1).Secondary().OnNode(fixture.Off), fixture.Pod(2).Secondary().OnNode(fixture.Off)),
			"Running: ready 0, unready 1 2, primary 0; Available=OnTarget Progressing=Recovering Seeded=Seeded", "not running, or not responding: rss-db-1, rss-db-2"},
		{"RS-38 too few replicas for a set that was stopped", fixture.WorldOf(fixture.SetOf(3, 1), fixture.Replicas(2), fixture.With(func(w *facts.World) {
			w.Set.Status.RestoreReplicas, w.Stateful.Spec.Replicas = 3, ptr.To(int32(0))
		})), "Paused: ; Paused=ReplicasTooLow", "Replica count (2) for rss-db is too low (should be 3 or higher)"},
		{"RS-41 a primary on a lost node", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).WithGranted().OnNode(fixture.Off), fixture.Pod(1).Secondary(), shown("rss-db-0")),
			"Running: ready 1, unready 0, secondary 1; Degraded=NodeUnreachable Progressing=WaitingForStop", "rss-db-0 may be primary on Node n1, which is unreachable, and no other member takes over until it has stopped. " +
				"If the machine is off, mark the Node as out of service: kubectl taint nodes n1 node.kubernetes.io/out-of-service=nodeshutdown:NoExecute"},
		{"W13 a primary on a Node that does not exist any more", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).WithGranted().OnNode(nodestate.Facts{Missing: true, MissingSince: fixture.Noon}), fixture.Pod(1).Secondary(), shown("rss-db-0")),
			"Running: ready 1, unready 0, secondary 1; Degraded=NodeUnreachable Progressing=WaitingForStop", "rss-db-0 may be primary on Node n1, which no longer exists. " +
				"Another member takes over when the Node has been missing for 1m0s; if its machine is still running, power it off"},
		{"RS-43 a new operator shows the previous status before its first queries", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).WithGranted(), fixture.Pod(1), shown("rss-db-0", "rss-db-1")),
			"Running: ready 0 1, primary 0, secondary 1; Available=OnTarget", "primary: rss-db-0"},
		{"RS-45 paused by a user", fixture.WorldOf(fixture.SetOf(2, 1), fixture.With(func(w *facts.World) { w.Set.Spec.Paused = true }), fixture.Pod(0).Primary(), fixture.Pod(1).Secondary()),
			"Paused: ready 0 1, primary 0, secondary 1; Available=OnTarget Paused=PausedByUser Seeded=Seeded", "spec.paused is true: no command is run, and the number of pods does not change"},
		{"RS-51 the set is healthy", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).Primary(), fixture.Pod(1).Secondary()),
			"Running: ready 0 1, primary 0, secondary 1; Available=OnTarget Seeded=Seeded", "primary: rss-db-0"},
		{"an update before the StatefulSet has the template", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).Primary(), fixture.Pod(1).Secondary(), fixture.With(func(w *facts.World) { w.Set.Spec.Pod.Containers[0].Image = "next" })),
			"Running: ready 0 1, primary 0, secondary 1; Available=OnTarget Progressing=Updating Seeded=Seeded", rules.UpdatingMessage},
		{"an update before the StatefulSet's controller has observed it", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).Primary().Outdated(), fixture.Pod(1).Secondary().Outdated(), fixture.With(func(w *facts.World) { w.Stateful.Generation = 2 })),
			"Running: ready 0 1, primary 0, secondary 1; Available=OnTarget Progressing=Updating Seeded=Seeded", rules.UpdatingMessage},
		{"a newer copy is missing", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).Idle().Sequence("3"), fixture.Pod(1).Idle().Sequence("9"), fixture.RecordedSequence("rss-db-2", "10"), shown("")),
			"Running: ready 0 1; DataLossRisk=NewestCopyMissing Progressing=Recovering",
			"the newest available copy has sequence 9, but rss-db-2 had 10; no member is started until that copy is available, or annotation clusterlabs.org/seed-from names another member"},
	} {
		t.Run(r.name, func(t *testing.T) {
			line, reason := toldOf(r.world)
			if line != r.want {
				t.Errorf("the status is\n  %s\nwant\n  %s", line, r.want)
			}
			if reason != r.reason {
				t.Errorf("the reason is\n  %s\nwant\n  %s", reason, r.reason)
			}
		})
	}
}

// shown sets the status that a previous operator left: a primary, and secondaries.
func shown(primary string, secondaries ...string) fixture.Thing {
	return fixture.With(func(w *facts.World) {
		w.Set.Status.Epoch = 1
		w.Set.Status.Members.Primary, w.Set.Status.Members.Secondary = []string{primary}, secondaries
	})
}

func TestRS50AStatusIsOfThisWorldOnly(t *testing.T) {
	well := func(things ...fixture.Thing) *facts.World {
		return fixture.WorldOf(fixture.SetOf(2, 1), append(things, fixture.Pod(0).Primary(), fixture.Pod(1).Secondary())...)
	}
	statusOf := func(w *facts.World) v1alpha1.ReplicatedStatefulSetStatus {
		p := rules.Decide(w)
		return status.Summarize(&p)
	}
	clean := statusOf(well())
	junk := statusOf(well(fixture.With(func(w *facts.World) {
		s := &w.Set.Status
		s.Members = v1alpha1.Members{Ready: []string{"x"}, Unready: []string{"rss-db-0"}, Primary: []string{"rss-db-1"}, Secondary: []string{"rss-db-0"}, Failed: []string{"rss-db-1"}}
		s.Replicas, s.Primaries, s.PrimariesWanted, s.ControlPaused, s.Phase, s.Reason = 9, 9, 9, true, v1alpha1.PhaseFailed, "junk"
		for _, kind := range []string{v1alpha1.ConditionDegraded, v1alpha1.ConditionProgressing, v1alpha1.ConditionDataLossRisk, v1alpha1.ConditionPaused} {
			s.Conditions = append(s.Conditions, metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: "Junk"})
		}
	})))
	slices.SortFunc(junk.Conditions, func(a, b metav1.Condition) int { return strings.Compare(a.Type, b.Type) })
	slices.SortFunc(clean.Conditions, func(a, b metav1.Condition) int { return strings.Compare(a.Type, b.Type) })
	if !apiequality.Semantic.DeepEqual(clean, junk) {
		t.Errorf("RS-50, RS-51: invalid fields and old conditions stay:\n%+v\nwant\n%+v", junk, clean)
	}
	w := well()
	w.Set.Status = clean
	w.Now = w.Now.Add(time.Second)
	if again := statusOf(w); !apiequality.Semantic.DeepEqual(clean, again) {
		t.Errorf("RS-50: the status of an unchanged world changed:\n%+v\nwant\n%+v", again, clean)
	}
}

// TestRS149MembersThatDoNotLeave tests that a failing leave is reported with the remedy, and needs
// manual intervention only after failureThreshold failures.
func TestRS149MembersThatDoNotLeave(t *testing.T) {
	for failures, reported := range map[int32]bool{1: false, 2: true, 9: true} {
		p := rules.Decide(fixture.WorldOf(fixture.LeavingSet(3, 1), fixture.Pod(0).Primary(), fixture.Pod(1).Secondary(), fixture.Pod(2).Secondary().Sequence("9"), fixture.Replicas(2),
			fixture.Memberships(v1alpha1.MembershipJoined, v1alpha1.MembershipJoined, v1alpha1.MembershipLeaving), fixture.With(func(w *facts.World) {
				m := &w.Set.Status.Memberships[2]
				m.Failures, m.ExitCode, m.LastFailure = failures, 6, new(fixture.MetaTime(time.Second))
			})))
		conditions := status.Summarize(&p).Conditions
		degraded := meta.FindStatusCondition(conditions, v1alpha1.ConditionDegraded)
		if (degraded.Reason == v1alpha1.ReasonMembersFailed) != reported || meta.IsStatusConditionTrue(conditions, v1alpha1.ConditionStalled) != reported {
			t.Errorf("%d failures: %+v", failures, conditions)
		}
		if reported && !strings.Contains(degraded.Message, "rss-db-2 is not removed, because leave failed with exit code 6. To run it, and see its output: kubectl -n ns exec rss-db-2 -c main -- /leave rss-db-0.db-svc; echo $?. To remove the member") {
			t.Errorf("the message is %q", degraded.Message)
		}
		if progress := meta.FindStatusCondition(conditions, v1alpha1.ConditionProgressing); !strings.Contains(progress.Message, "leave of rss-db-2 failed with exit code 6; it will be retried") {
			t.Errorf("the message is %q", progress.Message)
		}
	}
}

// TestRS150MembersThatMustRejoin tests that a set is not settled while a member may be forgotten, also if the
// member cannot be restarted now.
func TestRS150MembersThatMustRejoin(t *testing.T) {
	for _, state := range []v1alpha1.MembershipState{v1alpha1.MembershipLeaving, v1alpha1.MembershipLeft} {
		p := rules.Decide(fixture.WorldOf(fixture.LeavingSet(3, 1), fixture.Pod(0).Primary(), fixture.Pod(1).Secondary(), fixture.Pod(2).Secondary(),
			fixture.Memberships(state, v1alpha1.MembershipJoined, v1alpha1.MembershipJoined)))
		progress := meta.FindStatusCondition(status.Summarize(&p).Conditions, v1alpha1.ConditionProgressing)
		if progress.Status != metav1.ConditionTrue || !strings.HasSuffix(progress.Message, "until they are restarted: rss-db-0") {
			t.Errorf("%s: %+v", state, progress)
		}
	}
}

// TestW7AFailingStartIsReported tests that a start that fails repeatedly is reported with the place of its
// cause, and that the operator still retries without an intervention.
func TestW7AFailingStartIsReported(t *testing.T) {
	for failures, reported := range map[int32]bool{1: false, 2: true, 9: true} {
		p := rules.Decide(fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).Idle().Sequence("0").Failures(failures, v1alpha1.CommandSeed, 1, false), fixture.Pod(1).Idle().Sequence("0")))
		conditions := status.Summarize(&p).Conditions
		degraded := meta.FindStatusCondition(conditions, v1alpha1.ConditionDegraded)
		if (degraded.Reason == v1alpha1.ReasonMembersFailed) != reported || meta.IsStatusConditionTrue(conditions, v1alpha1.ConditionStalled) {
			t.Errorf("%d failures: %+v", failures, conditions)
		}
		want := fmt.Sprintf("seed of rss-db-0 failed with exit code 1, %d times, and is retried. For the cause: kubectl -n ns logs rss-db-0 -c main", failures)
		if reported && degraded.Message != want {
			t.Errorf("the message is %q, want %q", degraded.Message, want)
		}
	}
}
