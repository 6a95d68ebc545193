package rules_test

import (
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podexec"
	"github.com/stateful-operator/stateful-operator/controllers/internal/undone"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/children"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/rules"
)

// TestGuards tests the guards of the promise: for each row, exactly one guard prevents the failure.
func TestGuards(t *testing.T) {
	fixture.Check(t, []fixture.Row{
		{"RS-10 no seed while the sequence of a member is unknown", fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Idle().Sequence("3"), fixture.Pod(1).Idle().Sequence("9"), fixture.Pod(2).Idle()),
			[]string{"2 asked sequence"}},
		{"RS-34 no promotion while the role of a running member is unknown", fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Crashed(), fixture.Pod(1).Secondary().Sequence("4"), fixture.Pod(2)), []string{"2 asked status"}},
		{"no start of another primary while the role of a running member is unknown", fixture.WorldOf(fixture.SetOf(3, 2), fixture.Pod(0).Primary(), fixture.Pod(1), fixture.Pod(2).Secondary().Sequence("9")), []string{"1 asked status"}},
		{"no promotion while another promotion is unresolved", fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Crashed(), fixture.Pod(1).Secondary().Sequence("9"), fixture.Pod(2).Began("promote", 12*time.Second)), []string{"2 asked status"}},
		{"RS-15 no promotion while the sequence of a secondary is unreadable", fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Crashed(), fixture.Pod(1).Secondary().Sequence("9"), fixture.Pod(2).Secondary().Sequence("x")), []string{"2 asked sequence"}},
		{"demote the primary for a switchover", fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Primary().Answered("sequence", podexec.Succeeded, 0, "9", 8*time.Second), fixture.Pod(1).Secondary().Sequence("9"), fixture.Pod(2).Secondary(),
			fixture.Annotated(v1alpha1.AnnotationSwitchoverTo, "rss-db-1")), []string{"0: Demote, with 0"}},
		{"no switchover while a member is missing", fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Primary().Answered("sequence", podexec.Succeeded, 0, "9", 8*time.Second), fixture.Pod(1).Secondary().Sequence("9"), fixture.Pod(2).Pending(),
			fixture.Annotated(v1alpha1.AnnotationSwitchoverTo, "rss-db-1")), nil},
		{"no deletion of a pod that a command may still reach", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).Primary().Outdated(), fixture.Pod(1).Began("promote", 12*time.Second).Crashed().Outdated()), nil},
		{"no handover to a foreign pod", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).Primary().Answered("sequence", podexec.Succeeded, 0, "9", 8*time.Second).Outdated(), fixture.Pod(1).Secondary().Sequence("9").Strange()), nil},
		{"no query while a command is running in the member", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).WithGranted().WithRuns("promote", 12*time.Second).Status(8), fixture.Pod(1).Secondary()), nil},
		{"a finished pod is left to its StatefulSet", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).Primary(), fixture.Pod(1).Ended()), nil},
		{"no start of a member that needs a stop while the stop cannot be sent", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).Primary(), fixture.Pod(1).Failures(1, "secondary", 1, true).Unsent("stop", 4*time.Second, 3).
			Answered("status", podexec.Failed, 7, "", 1500*time.Millisecond).Answered("sequence", podexec.Succeeded, 0, "4", 1500*time.Millisecond)), nil},
		{"query the sequence again before a surplus primary is chosen", fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Primary().Answered("sequence", podexec.Succeeded, 0, "3", 40*time.Second), fixture.Pod(1).Primary().Sequence("9"), fixture.Pod(2).Secondary()),
			[]string{"0 asked sequence"}},
		{"RS-34 no promotion of an older copy although the newest cannot be promoted", fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Crashed(), fixture.Pod(1).Secondary().Sequence("9").Failures(1, "promote", 5, false), fixture.Pod(2).Secondary().Sequence("8")), nil},
		{"RS-17 no start while the sequence of another idle member is unknown", fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Primary(), fixture.Pod(1).Idle(), fixture.Pod(2).Idle().Sequence("9")), []string{"1 asked sequence"}},
		{"query the successor again if it was read before the primary", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).Primary().Sequence("9").Outdated(), fixture.Pod(1).Secondary().Answered("sequence", podexec.Succeeded, 0, "9", 8*time.Second)), []string{"1 asked sequence"}},
		{"query the successor again at once although it answered recently", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).Primary().Answered("sequence", podexec.Succeeded, 0, "9", 1300*time.Millisecond).Outdated(), fixture.Pod(1).Secondary().Answered("sequence", podexec.Succeeded, 0, "9", 1500*time.Millisecond)), []string{"1 asked sequence"}},
		{"query sequences again at once if they were read before a demotion", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).Answered("sequence", podexec.Succeeded, 0, "9", 1400*time.Millisecond).Changed("demote", 350*time.Millisecond).StatusSince(0, 100*time.Millisecond),
			fixture.Pod(1).StatusSince(0, 100*time.Millisecond).Answered("sequence", podexec.Succeeded, 0, "9", 1400*time.Millisecond), fixture.Lost(300*time.Millisecond)), []string{"0 asked sequence", "1 asked sequence"}},
		{"query no status before the sequences if the former primary is one of the secondaries", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).Answered("sequence", podexec.Succeeded, 0, "9", 1400*time.Millisecond).Changed("demote", 350*time.Millisecond).StatusSince(0, 100*time.Millisecond),
			fixture.Pod(1).StatusSince(0, 5*time.Second).Answered("sequence", podexec.Succeeded, 0, "9", 1400*time.Millisecond), fixture.Lost(300*time.Millisecond), fixture.LastStopped), []string{"0 asked sequence", "1 asked sequence"}},
		{"query status before the sequences if the former primary is not known", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).Answered("sequence", podexec.Succeeded, 0, "9", 1400*time.Millisecond).Changed("demote", 350*time.Millisecond).StatusSince(0, 100*time.Millisecond),
			fixture.Pod(1).StatusSince(0, 5*time.Second).Answered("sequence", podexec.Succeeded, 0, "9", 1400*time.Millisecond), fixture.Lost(300*time.Millisecond)), []string{"1 asked status"}},
		{"no query of a lagging successor within a second", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).Primary().Answered("sequence", podexec.Succeeded, 0, "9", 21400*time.Millisecond).Outdated(), fixture.Pod(1).Secondary().Answered("sequence", podexec.Succeeded, 0, "8", 500*time.Millisecond)), nil},
		{"query status of a container that a stray command may have reached before its pod is deleted", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).WithGranted().Began("promote", 14*time.Second).Restarted(10*time.Second).Idle(), fixture.Pod(1).Secondary().Sequence("9")),
			[]string{"0 asked status"}},
		{"no seed while a member has a lower sequence than recorded", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).Idle().Sequence("3"), fixture.Pod(1).Idle().Sequence("4"), fixture.RecordedSequence("rss-db-0", "9")), nil},
		{"RS-33 no promotion of a member to remove", fixture.WorldOf(fixture.SetOf(4, 2), fixture.Pod(0).Primary(), fixture.Pod(1).Secondary().Sequence("8"), fixture.Pod(2).Secondary().Sequence("9"), fixture.Pod(3).WithRuns("stop", time.Second), fixture.Replicas(2)),
			[]string{"1: Promote, with 0"}},
		{"RS-20 no start as secondary while a primary is missing", fixture.WorldOf(fixture.SetOf(3, 2), fixture.Pod(0).Primary(), fixture.Pod(1), fixture.Pod(2).Idle().Sequence("9")), []string{"1 asked status"}},
		{"RS-18 no promotion while a start as secondary is in progress and a primary runs", fixture.WorldOf(fixture.SetOf(3, 2), fixture.Pod(0).Primary(), fixture.Pod(1).WithRuns("secondary", time.Second), fixture.Pod(2).Secondary().Sequence("9")), nil},
		{"no second primary while the first is unreachable", fixture.WorldOf(fixture.SetOf(3, 2), fixture.Pod(0).WithGranted().OnNode(fixture.Off), fixture.Pod(1).Secondary().Sequence("9"), fixture.Pod(2).Secondary().Sequence("9")), nil},
		{"no query and no seed with a foreign pod", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).Idle().Sequence("3"), fixture.Pod(1).Strange()), nil},
		{"no start in a foreign pod", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).Primary(), fixture.Pod(1).Idle().Sequence("3").Strange()), nil},
		{"no stop while status must be queried first", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).Primary(), fixture.Pod(1).Status(1).But(func(w *facts.World) { w.Members[1].Touched = fixture.Noon })), []string{"1 asked status"}},
		{"one command at a time in a set", fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Primary(), fixture.Pod(1).Status(1), fixture.Pod(2).Status(1)), []string{"1: Stop, with 0"}},
		{"one command at a time in a pod", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).Primary().Sequence("1"), fixture.Pod(1).Status(1).WithRuns("secondary", time.Second)), nil},
		{"no retry of an unsent command within its backoff", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).Primary(), fixture.Pod(1).Unsent("secondary", 4*time.Second, 3).
			Answered("status", podexec.Failed, 7, "", 1500*time.Millisecond).Answered("sequence", podexec.Succeeded, 0, "3", 1500*time.Millisecond)), nil},
		{"retry an unsent command after its backoff", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).Primary(), fixture.Pod(1).Unsent("secondary", 4*time.Second, 2).
			Answered("status", podexec.Failed, 7, "", 1500*time.Millisecond).Answered("sequence", podexec.Succeeded, 0, "3", 1500*time.Millisecond)), []string{"1: Secondary, with 0"}},
	})
}

// debugged gives member 1 an ephemeral container.
func debugged(state corev1.ContainerState) func(*facts.World) {
	return func(w *facts.World) {
		w.Members[1].Pod.Status.EphemeralContainerStatuses = []corev1.ContainerStatus{{Name: "debug", ContainerID: "debug-1", State: state}}
	}
}

// TestTheLastDoor tests the safeguard in send, for rules that miss their check.
func TestTheLastDoor(t *testing.T) {
	well := func() *fixture.PodFixture { return fixture.Pod(1).Secondary().Sequence("9") }
	for _, r := range []struct {
		name, command string
		first, second *fixture.PodFixture
		sent          bool
	}{
		{"a stop is sent to a secondary", "stop", fixture.Pod(0).Primary(), well(), true},
		{"promote is sent when no primary runs", "promote", fixture.Pod(0).Crashed(), well(), true},
		{"seed is not sent when enough primaries run", "seed", fixture.Pod(0).Primary(), well(), false},
		{"primary is not sent when enough primaries run", "primary", fixture.Pod(0).Primary(), well(), false},
		{"promote is not sent when enough primaries run", "promote", fixture.Pod(0).Primary(), well(), false},
		{"promote is not sent while an unreachable member may be primary", "promote", fixture.Pod(0).WithGranted().OnNode(fixture.Off), well(), false},
		{"nothing is sent while a command is running in the member", "stop", fixture.Pod(0).Primary(), well().But(func(w *facts.World) { w.Members[1].Busy = &podexec.Command{Name: "status"} }), false},
		{"nothing is sent while a command in the member is unresolved", "stop", fixture.Pod(0).Primary(), well().Began("secondary", time.Second), false},
		{"nothing is sent to an unreachable node", "stop", fixture.Pod(0).Primary(), well().OnNode(fixture.Off), false},
		{"nothing is sent to a foreign pod", "stop", fixture.Pod(0).Primary(), well().Strange(), false},
	} {
		t.Run(r.name, func(t *testing.T) {
			f := facts.Derive(fixture.WorldOf(fixture.SetOf(2, 1), r.first, r.second))
			p := rules.Plan{On: f, Record: f.Record, Asked: map[string]bool{}}
			if p.Send(f, f.Members[1], r.command, r.command, "the caller forgot to ask"); p.Acts() > 0 != r.sent {
				t.Errorf("the plan is %q", fixture.Gist(&p))
			}
		})
	}
}

// TestNothingStarves tests that nothing waits forever or is repeated endlessly.
func TestNothingStarves(t *testing.T) {
	stopped := func(replicas int32, there bool) fixture.Thing {
		return fixture.With(func(w *facts.World) {
			w.Set.Spec.Replicas, w.Set.Status.RestoreReplicas = ptr.To(replicas), 3
			if w.Stateful.Spec.Replicas = ptr.To(int32(0)); !there {
				w.Stateful = nil
			}
		})
	}
	fixture.Check(t, []fixture.Row{
		{"RS-40 promote while a failed secondary is being stopped", fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Crashed(), fixture.Pod(1).Secondary().Sequence("4"), fixture.Pod(2).Idle().Failures(1, "secondary", 1, true).WithRuns("stop", time.Second)),
			[]string{"1: Promote, alone"}},
		{"RS-40 promote although a secondary cannot run in its pod", fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Crashed(), fixture.Pod(1).Secondary().Sequence("4"), fixture.Pod(2).Idle().Failures(1, "secondary", 5, false)), []string{"1: Promote, alone"}},
		{"RS-40 promote although a member without a grant is unreachable", fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Crashed(), fixture.Pod(1).Secondary().Sequence("4"), fixture.Pod(2).OnNode(fixture.Off)), []string{"1: Promote, alone"}},
		{"query the sequence of a secondary before an idle member is started", fixture.WorldOf(fixture.SetOf(3, 2), fixture.Pod(0).Primary(), fixture.Pod(1).Secondary(), fixture.Pod(2).Idle().Sequence("9")),
			[]string{"1 asked sequence"}},
		{"RS-57 recreate an outdated member that does not answer status", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).Primary().Outdated(), fixture.Pod(1).WithSilent(5).Outdated()),
			[]string{"delete pod 1: Renew, its template is outdated, and it has no running member"}},
		{"keep an outdated member below the limit of unanswered queries", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).Primary().Outdated(), fixture.Pod(1).WithSilent(4).Outdated()), nil},
		{"keep an outdated member while status could not be sent", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).Primary().Outdated(), fixture.Pod(1).Unsent("status", 5*time.Second, 5).Outdated()), nil},
		{"keep an outdated member that does not answer and may be primary", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).WithGranted().WithSilent(5).Outdated(), fixture.Pod(1).Secondary().Outdated()), nil},
		{"RS-57 no further update while an updated member has not answered", fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Primary().Outdated(), fixture.Pod(1).WithSilent(4), fixture.Pod(2).Idle().Outdated()), []string{"2 asked sequence"}},
		{"RS-33 scale down a member that does not answer", fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Primary(), fixture.Pod(1).Secondary(), fixture.Pod(2).WithSilent(5), fixture.Replicas(2)), []string{"patch statefulset rss-db: Scale, from 3 to 2"}},
		{"RS-33 no scale-down of a member below the limit of unanswered queries", fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Primary(), fixture.Pod(1).Secondary(), fixture.Pod(2).WithSilent(4), fixture.Replicas(2)), nil},
		{"RS-57 stop a primary without followers when its sequence is recorded", fixture.WorldOf(fixture.SetOf(3, 1, "secondary"), fixture.Pod(0).Primary().Sequence("9").Outdated(), fixture.Pod(1).Idle(), fixture.Pod(2).Idle()),
			[]string{"0: Stop, with 0"}},
		{"RS-57 query the sequence of a primary without followers before it is stopped", fixture.WorldOf(fixture.SetOf(3, 1, "secondary"), fixture.Pod(0).Primary().Outdated(), fixture.Pod(1).Idle(), fixture.Pod(2).Idle()), []string{"0 asked sequence"}},
		{"RS-57 stop one of two primaries without followers", fixture.WorldOf(fixture.SetOf(3, 2, "secondary"), fixture.Pod(0).Primary().Outdated(), fixture.Pod(1).Primary().Outdated(), fixture.Pod(2).Idle()), []string{"1: Stop, with 0 1"}},
		{"no removal of a primary without followers before another member has its data", fixture.WorldOf(fixture.SetOf(3, 1, "secondary"), fixture.Pod(0).Idle().Sequence("3"), fixture.Pod(1).Idle().Sequence("3"),
			fixture.Pod(2).Primary().Answered("sequence", podexec.Succeeded, 0, "9", 8*time.Second), fixture.Replicas(2)), []string{"0 asked sequence", "1 asked sequence"}},
		{"RS-38 recreate a deleted StatefulSet with 0 pods while replicas is too low", fixture.WorldOf(fixture.SetOf(3, 1), stopped(2, false)), []string{"create statefulset rss-db: Child, 0 pods"}},
		{"RS-38 recreate a deleted StatefulSet with as many pods as before", fixture.WorldOf(fixture.SetOf(3, 1), stopped(3, false)), []string{"create statefulset rss-db: Child, 3 pods"}},
		{"RS-45 no pod is deleted while paused", fixture.WorldOf(fixture.SetOf(2, 1), fixture.With(func(w *facts.World) { w.Set.Spec.Paused = true }), fixture.Pod(0).WithGranted().Began("promote", 21*time.Second).Secondary(), fixture.Pod(1).Secondary()), nil},
		{"RS-45 create the StatefulSet with 0 pods when the set is created paused", fixture.WorldOf(fixture.SetOf(2, 1), fixture.With(func(w *facts.World) { w.Set.Spec.Paused, w.Stateful = true, nil })), []string{"create statefulset rss-db: Child, 0 pods"}},
		{"RS-45 RS-47 recreate a deleted StatefulSet with the running pods while paused", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).Primary(), fixture.Pod(1).Secondary(), fixture.Replicas(0), fixture.With(func(w *facts.World) { w.Set.Spec.Paused, w.Stateful = true, nil })),
			[]string{"create statefulset rss-db: Child, 2 pods"}},
		{"RS-45 RS-47 recreate a deleted StatefulSet with the recorded replicas while paused", fixture.WorldOf(fixture.SetOf(3, 1), fixture.With(func(w *facts.World) {
			w.Set.Spec.Paused, w.Stateful = true, nil
			w.Set.Status.RestoreReplicas = 2
		})), []string{"create statefulset rss-db: Child, 2 pods"}},
		{"RS-33 RS-47 recreate a deleted StatefulSet with the running pods during a scale-down", fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Primary(), fixture.Pod(1).Secondary(), fixture.Pod(2).Secondary(), fixture.Replicas(1), fixture.With(func(w *facts.World) { w.Stateful = nil })),
			[]string{"create statefulset rss-db: Child, 3 pods"}},
		{"RS-33 refuse a switchover after its demotion failed", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).Primary().Failures(1, "demote", 1, false), fixture.Pod(1).Secondary(), fixture.Annotated(v1alpha1.AnnotationSwitchoverTo, "rss-db-1"),
			fixture.With(func(w *facts.World) { w.RequestedAt = fixture.Ago(time.Minute + 300*time.Millisecond) })), []string{"patch replicatedstatefulset db: Refused, 1 was not promoted: demote of 0 failed with exit code 1"}},
		{"RS-33 stop the primary when the switchover is requested again", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).Primary().Sequence("4").Failures(1, "demote", 1, false), fixture.Pod(1).Secondary().Answered("sequence", podexec.Succeeded, 0, "4", 0), fixture.Annotated(v1alpha1.AnnotationSwitchoverTo, "rss-db-1"),
			fixture.With(func(w *facts.World) { w.RequestedAt = fixture.Ago(time.Second) })), []string{"0: Stop, with 0"}},
		{"RS-47 restore an edited template", fixture.WorldOf(fixture.SetOf(1, 1), fixture.Pod(0).Primary(), edited("another")), []string{"patch statefulset rss-db: Template"}},
		{"RS-47 no retry of a restore that was reverted", fixture.WorldOf(fixture.SetOf(1, 1), fixture.Pod(0).Primary(), edited("another"), inVainFor("another")), nil},
		{"RS-47 restore the template after another edit", fixture.WorldOf(fixture.SetOf(1, 1), fixture.Pod(0).Primary(), edited("a third"), inVainFor("another")), []string{"patch statefulset rss-db: Template"}},
		{"RS-47 no restore of a frequently edited template within its backoff", fixture.WorldOf(fixture.SetOf(1, 1), fixture.Pod(0).Primary(), edited("another"), mendedAt(4900*time.Millisecond)), nil},
		{"RS-47 restore a frequently edited template after its backoff", fixture.WorldOf(fixture.SetOf(1, 1), fixture.Pod(0).Primary(), edited("another"), mendedAt(5*time.Second)), []string{"patch statefulset rss-db: Template"}},
		{"RS-57 apply a changed spec without backoff", fixture.WorldOf(fixture.SetOf(1, 1), fixture.Pod(0).Primary(), mendedAt(time.Second), fixture.With(func(w *facts.World) { w.Set.Spec.Pod.Containers[0].Image = "two" })), []string{"patch statefulset rss-db: Template"}},
		{"RS-47 keep fields of the template that the API server added", fixture.WorldOf(fixture.SetOf(1, 1), fixture.Pod(0).Primary(), edited("one")), nil},
		{"no retry of a failed start within its backoff", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).Primary(), fixture.Pod(1).Idle().Sequence("4").Failures(2, "secondary", 1, false).Lately(1900*time.Millisecond)), nil},
		{"retry a failed start after its backoff", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).Primary(), fixture.Pod(1).Idle().Sequence("4").Failures(2, "secondary", 1, false).Lately(2*time.Second)), []string{"1: Secondary, with 0"}},
		{"RS-27 no recreation of a new pod after failed starts", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).Primary(), fixture.Pod(1).Idle().Failures(2, "secondary", 1, true).Born(59*time.Second)), []string{"1: Stop, with 0"}},
		{"RS-27 recreate a pod that is a minute old after failed starts", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).Primary(), fixture.Pod(1).Idle().Failures(2, "secondary", 1, true).Born(time.Minute)), []string{"delete pod 1: Failed, 2 starts or stops failed"}},
		{"RS-27 recreate a new pod that may be primary after failed starts", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).WithGranted().Status(9).Failures(2, "promote", 1, true).Born(time.Second), fixture.Pod(1).Secondary()),
			[]string{"delete pod 0: Failed, 2 starts or stops failed"}},
	})
}

func TestAsking(t *testing.T) {
	interval := func(d v1alpha1.Duration) fixture.Thing {
		return fixture.With(func(w *facts.World) { w.Set.Spec.ReconcileInterval = d })
	}
	asked := func(age time.Duration) *fixture.PodFixture {
		return fixture.Pod(0).Primary().Answered("status", podexec.Failed, 8, "", age+time.Second) // it took a second
	}
	fixture.Check(t, []fixture.Row{
		{"RS-48 no status query of a healthy member within a minute", fixture.WorldOf(fixture.SetOf(1, 1), asked(59*time.Second)), nil},
		{"RS-48 query the status of a healthy member after a minute", fixture.WorldOf(fixture.SetOf(1, 1), asked(time.Minute)), []string{"0 asked status"}},
		{"RS-48 query status after the configured interval", fixture.WorldOf(fixture.SetOf(1, 1), interval("10s"), asked(10*time.Second)), []string{"0 asked status"}},
		{"RS-48 no status query within the configured interval", fixture.WorldOf(fixture.SetOf(1, 1), interval("10s"), asked(9*time.Second)), nil},
		{"RS-48 query status at once after a change of the pod", fixture.WorldOf(fixture.SetOf(1, 1), asked(9*time.Second).But(func(w *facts.World) { w.Members[0].Touched = fixture.Ago(time.Second) })), []string{"0 asked status"}},
		{"RS-16 no sequence query of healthy members", fixture.WorldOf(fixture.SetOf(3, 2), fixture.Pod(0).Primary(), fixture.Pod(1).Primary(), fixture.Pod(2).Secondary()), nil},
		{"RS-30 query status again after three lost responses", fixture.WorldOf(fixture.SetOf(1, 1), fixture.Pod(0).WithGranted().WithSilent(3)), []string{"0 asked status"}},
		{"RS-30 wait longer after four lost responses", fixture.WorldOf(fixture.SetOf(1, 1), fixture.Pod(0).WithGranted().WithSilent(4)), nil},
	})
}

// edited gives the template of the StatefulSet that image, and the defaults of an API server.
func edited(image string) fixture.Thing {
	return fixture.With(func(w *facts.World) {
		w.Stateful = editedSet(w, image)
		w.Stateful.Kind = "StatefulSet" // as from a cache
	})
}

// inVainFor makes the operator remember that its repair of that image was reverted.
func inVainFor(image string) fixture.Thing {
	return fixture.With(func(w *facts.World) {
		before := w.Stateful
		w.Stateful = editedSet(w, image)
		w.Stateful.ResourceVersion, w.Stateful.Kind = "previous", "" // not from a cache
		var p rules.Plan
		rules.KeepStatefulSet(facts.Derive(w), &p)
		a := p.Steps[0][0][0]
		answer := a.From.DeepCopyObject().(client.Object)
		var known undone.Memory
		known.Held(w.Set.Generation, w.Now)
		known.Learn([]action.Outcome{{Action: a, Answer: answer}}, fixture.Ago(9*time.Second))
		w.Undone = known.Held(w.Set.Generation, w.Now)
		w.Stateful = before
	})
}

func mendedAt(before time.Duration) fixture.Thing {
	return fixture.With(func(w *facts.World) { w.Mended = map[string]time.Time{facts.ChildKey(w.Stateful): fixture.Ago(before)} })
}

func editedSet(w *facts.World, image string) *appsv1.StatefulSet {
	set := children.BuildStatefulSet(w.Set, *w.Set.Spec.Replicas, children.Hashes{})
	c := &set.Spec.Template.Spec.Containers[0]
	c.Image, c.TerminationMessagePath, c.Env = image, "/dev/termination-log", append(c.Env, corev1.EnvVar{Name: "ADDED"})
	set.Spec.Template.Spec.Containers = append(set.Spec.Template.Spec.Containers, corev1.Container{Name: "added"})
	return set
}

func TestCommands(t *testing.T) {
	t.Run("RS-58 an edited command is used, and no pod is recreated", func(t *testing.T) {
		w := fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).Primary(), fixture.Pod(1).Idle().Sequence("4"), fixture.With(func(w *facts.World) {
			w.Set.Spec.Pod.Commands["secondary"] = v1alpha1.Command{Command: []string{"/new", "argument"}, Timeout: "1m"}
		}))
		p := rules.Decide(w)
		c := sentBy(&p)
		if c == nil || !slices.Equal(c.Argv, []string{"/new", "argument", "rss-db-0.db-svc"}) || c.Timeout != time.Minute {
			t.Errorf("sent %+v in %q, want the new argv, the name of the primary, and the new timeout", c, fixture.Gist(&p))
		}
		for _, m := range p.On.Members {
			if !m.UpToDate {
				t.Errorf("%s is out of date", m.Name())
			}
		}
	})
	t.Run("RS-12 without the command seed, the argv of primary is run without names of members", func(t *testing.T) {
		p := rules.Decide(fixture.WorldOf(fixture.SetOf(1, 1, "seed"), fixture.Pod(0).Idle().Sequence("3")))
		if c := sentBy(&p); c == nil || !slices.Equal(c.Argv, []string{"/primary"}) {
			t.Errorf("sent %+v, want /primary", c)
		}
	})
	t.Run("RS-29 the default timeout is ten minutes, the minimum ten seconds", func(t *testing.T) {
		for said, want := range map[v1alpha1.Duration]time.Duration{"": 10 * time.Minute, "1s": 10 * time.Second, "2m": 2 * time.Minute} {
			set := fixture.SetOf(1, 1)
			set.Spec.Pod.Commands["seed"] = v1alpha1.Command{Command: []string{"/seed"}, Timeout: said}
			p := rules.Decide(fixture.WorldOf(set, fixture.Pod(0).Idle().Sequence("3")))
			if c := sentBy(&p); c == nil || c.Timeout != want {
				t.Errorf("timeout %q: sent %+v, want %s", said, c, want)
			}
		}
	})
}
