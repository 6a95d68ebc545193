package replicatedstatefulset

import (
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
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/rules"
)

// TestGuards tests the guards of the promise: for each row, exactly one guard prevents the failure.
func TestGuards(t *testing.T) {
	check(t, []row{
		{"RS-10 no seed while the sequence of a member is unknown", worldOf(setOf(3, 1), pod(0).idle().sequence("3"), pod(1).idle().sequence("9"), pod(2).idle()),
			[]string{"2 asked sequence"}},
		{"RS-34 no promotion while the role of a running member is unknown", worldOf(setOf(3, 1), pod(0).crashed(), pod(1).secondary().sequence("4"), pod(2)), []string{"2 asked status"}},
		{"no start of another primary while the role of a running member is unknown", worldOf(setOf(3, 2), pod(0).primary(), pod(1), pod(2).secondary().sequence("9")), []string{"1 asked status"}},
		{"no promotion while another promotion is unresolved", worldOf(setOf(3, 1), pod(0).crashed(), pod(1).secondary().sequence("9"), pod(2).began("promote", 12*time.Second)), []string{"2 asked status"}},
		{"RS-15 no promotion while the sequence of a secondary is unreadable", worldOf(setOf(3, 1), pod(0).crashed(), pod(1).secondary().sequence("9"), pod(2).secondary().sequence("x")), []string{"2 asked sequence"}},
		{"demote the primary for a switchover", worldOf(setOf(3, 1), pod(0).primary().answered("sequence", podexec.Succeeded, 0, "9", 8*time.Second), pod(1).secondary().sequence("9"), pod(2).secondary(),
			annotated(v1alpha1.AnnotationSwitchoverTo, "rss-db-1")), []string{"0: Demote, with 0"}},
		{"no switchover while a member is missing", worldOf(setOf(3, 1), pod(0).primary().answered("sequence", podexec.Succeeded, 0, "9", 8*time.Second), pod(1).secondary().sequence("9"), pod(2).pending(),
			annotated(v1alpha1.AnnotationSwitchoverTo, "rss-db-1")), nil},
		{"no deletion of a pod that a command may still reach", worldOf(setOf(2, 1), pod(0).primary().outdated(), pod(1).began("promote", 12*time.Second).crashed().outdated()), nil},
		{"no handover to a foreign pod", worldOf(setOf(2, 1), pod(0).primary().answered("sequence", podexec.Succeeded, 0, "9", 8*time.Second).outdated(), pod(1).secondary().sequence("9").strange()), nil},
		{"no query while a command is running in the member", worldOf(setOf(2, 1), pod(0).granted().runs("promote", 12*time.Second).status(8), pod(1).secondary()), nil},
		{"a finished pod is left to its StatefulSet", worldOf(setOf(2, 1), pod(0).primary(), pod(1).ended()), nil},
		{"no start of a member that needs a stop while the stop cannot be sent", worldOf(setOf(2, 1), pod(0).primary(), pod(1).failures(1, "secondary", 1, true).unsent("stop", 4*time.Second, 3).
			answered("status", podexec.Failed, 7, "", 1500*time.Millisecond).answered("sequence", podexec.Succeeded, 0, "4", 1500*time.Millisecond)), nil},
		{"query the sequence again before a surplus primary is chosen", worldOf(setOf(3, 1), pod(0).primary().answered("sequence", podexec.Succeeded, 0, "3", 40*time.Second), pod(1).primary().sequence("9"), pod(2).secondary()),
			[]string{"0 asked sequence"}},
		{"RS-34 no promotion of an older copy although the newest cannot be promoted", worldOf(setOf(3, 1), pod(0).crashed(), pod(1).secondary().sequence("9").failures(1, "promote", 5, false), pod(2).secondary().sequence("8")), nil},
		{"RS-17 no start while the sequence of another idle member is unknown", worldOf(setOf(3, 1), pod(0).primary(), pod(1).idle(), pod(2).idle().sequence("9")), []string{"1 asked sequence"}},
		{"query the successor again if it was read before the primary", worldOf(setOf(2, 1), pod(0).primary().sequence("9").outdated(), pod(1).secondary().answered("sequence", podexec.Succeeded, 0, "9", 8*time.Second)), []string{"1 asked sequence"}},
		{"query the successor again at once although it answered recently", worldOf(setOf(2, 1), pod(0).primary().answered("sequence", podexec.Succeeded, 0, "9", 1300*time.Millisecond).outdated(), pod(1).secondary().answered("sequence", podexec.Succeeded, 0, "9", 1500*time.Millisecond)), []string{"1 asked sequence"}},
		{"query sequences again at once if they were read before a demotion", worldOf(setOf(2, 1), pod(0).answered("sequence", podexec.Succeeded, 0, "9", 1400*time.Millisecond).changed("demote", 350*time.Millisecond).statusSince(0, 100*time.Millisecond),
			pod(1).statusSince(0, 100*time.Millisecond).answered("sequence", podexec.Succeeded, 0, "9", 1400*time.Millisecond), lost(300*time.Millisecond)), []string{"0 asked sequence", "1 asked sequence"}},
		{"no query of a lagging successor within a second", worldOf(setOf(2, 1), pod(0).primary().answered("sequence", podexec.Succeeded, 0, "9", 21400*time.Millisecond).outdated(), pod(1).secondary().answered("sequence", podexec.Succeeded, 0, "8", 500*time.Millisecond)), nil},
		{"query status of a container that a stray command may have reached before its pod is deleted", worldOf(setOf(2, 1), pod(0).granted().began("promote", 14*time.Second).restarted(10*time.Second).idle(), pod(1).secondary().sequence("9")),
			[]string{"0 asked status"}},
		{"no seed while a member has a lower sequence than recorded", worldOf(setOf(2, 1), pod(0).idle().sequence("3"), pod(1).idle().sequence("4"), recordedSequence("rss-db-0", "9")), nil},
		{"RS-33 no promotion of a member to remove", worldOf(setOf(4, 2), pod(0).primary(), pod(1).secondary().sequence("8"), pod(2).secondary().sequence("9"), pod(3).runs("stop", time.Second), replicas(2)),
			[]string{"1: Promote, with 0"}},
		{"RS-20 no start as secondary while a primary is missing", worldOf(setOf(3, 2), pod(0).primary(), pod(1), pod(2).idle().sequence("9")), []string{"1 asked status"}},
		{"RS-18 no promotion while a start as secondary is in progress and a primary runs", worldOf(setOf(3, 2), pod(0).primary(), pod(1).runs("secondary", time.Second), pod(2).secondary().sequence("9")), nil},
		{"no second primary while the first is unreachable", worldOf(setOf(3, 2), pod(0).granted().onNode(off), pod(1).secondary().sequence("9"), pod(2).secondary().sequence("9")), nil},
		{"no query and no seed with a foreign pod", worldOf(setOf(2, 1), pod(0).idle().sequence("3"), pod(1).strange()), nil},
		{"no start in a foreign pod", worldOf(setOf(2, 1), pod(0).primary(), pod(1).idle().sequence("3").strange()), nil},
		{"no stop while status must be queried first", worldOf(setOf(2, 1), pod(0).primary(), pod(1).status(1).but(func(w *facts.World) { w.Members[1].Touched = noon })), []string{"1 asked status"}},
		{"one command at a time in a set", worldOf(setOf(3, 1), pod(0).primary(), pod(1).status(1), pod(2).status(1)), []string{"1: Stop, with 0"}},
		{"one command at a time in a pod", worldOf(setOf(2, 1), pod(0).primary().sequence("1"), pod(1).status(1).runs("secondary", time.Second)), nil},
		{"no retry of an unsent command within its backoff", worldOf(setOf(2, 1), pod(0).primary(), pod(1).unsent("secondary", 4*time.Second, 3).
			answered("status", podexec.Failed, 7, "", 1500*time.Millisecond).answered("sequence", podexec.Succeeded, 0, "3", 1500*time.Millisecond)), nil},
		{"retry an unsent command after its backoff", worldOf(setOf(2, 1), pod(0).primary(), pod(1).unsent("secondary", 4*time.Second, 2).
			answered("status", podexec.Failed, 7, "", 1500*time.Millisecond).answered("sequence", podexec.Succeeded, 0, "3", 1500*time.Millisecond)), []string{"1: Secondary, with 0"}},
	})
}

// TestGuardsOfTheRecord tests the guards of the record.
func TestGuardsOfTheRecord(t *testing.T) {
	check(t, []row{
		{"query status when another container runs in the pod of a grant", worldOf(setOf(2, 1), pod(0).granted().beside("agent"), pod(1).secondary().sequence("9")),
			[]string{"0 asked status"}},
		{"keep the grant although another container in the pod reports stopped", worldOf(setOf(2, 1), pod(0).granted().beside("agent").idle(), pod(1).secondary().sequence("9")), nil},
		{"keep the grant while the container has no reported state", worldOf(setOf(2, 1), pod(0).granted().waiting(), pod(1).secondary().sequence("9")), nil},
		{"no seed while another start is unresolved", worldOf(setOf(2, 1), pod(0).idle().sequence("3"), pod(1).began("seed", 12*time.Second).crashed()), nil},
		{"keep a recent grant of an ended container, because the start may reach the next one", worldOf(setOf(2, 1), pod(0).grantedFor(14*time.Second).crashed(), pod(1).secondary().sequence("9")), nil},
		{"remove an old grant of an ended container", worldOf(setOf(2, 1), pod(0).grantedFor(16*time.Second).crashed(), pod(1).secondary().sequence("9")), []string{"learned: 0 is not primary: its container has ended"}},
		{"record a primary that runs in the next container", worldOf(setOf(2, 1), pod(0).granted().restarted(time.Minute).status(8), pod(1).secondary()),
			[]string{"learned: 0 was found running as primary"}},
		{"stop a member that failed in the next container, because it may be primary", worldOf(setOf(2, 1), pod(0).granted().restarted(time.Minute).status(1), pod(1).secondary()), []string{"0: Stop, alone"}},
		{"query status again if it was read before the last command", worldOf(setOf(2, 1), pod(0).granted().idle().changed("promote", 5*time.Second), pod(1).secondary().sequence("9")), []string{"0 asked status"}},
	})
}

// debugged gives member 1 an ephemeral container.
func debugged(state corev1.ContainerState) func(*facts.World) {
	return func(w *facts.World) {
		w.Members[1].Pod.Status.EphemeralContainerStatuses = []corev1.ContainerStatus{{Name: "debug", ContainerID: "debug-1", State: state}}
	}
}

// TestGuardsOfWhatGoes tests that pods and copies stay until they are no longer needed.
func TestGuardsOfWhatGoes(t *testing.T) {
	check(t, []row{
		{"remove the finalizer of a terminating pod when its container has ended", worldOf(setOf(2, 1), pod(0).primary(), pod(1).ended().deleted()), []string{"patch pod 1: Release"}},
		{"keep the finalizer of a terminating pod while its container runs", worldOf(setOf(2, 1), pod(0).primary(), pod(1).idle().deleted()), nil},
		{"keep the finalizer of a terminating pod while an ephemeral container runs", worldOf(setOf(2, 1), pod(0).primary(), pod(1).ended().deleted().but(debugged(
			corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}))), nil},
		{"remove the finalizer of a terminating pod when its ephemeral container has ended", worldOf(setOf(2, 1), pod(0).primary(), pod(1).ended().deleted().but(debugged(
			corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}))), []string{"patch pod 1: Release"}},
		{"keep the finalizer of a terminating pod while it has a grant", worldOf(setOf(2, 1), pod(0).granted().ended().deleted(), pod(1).secondary()), []string{"learned: 0 is not primary: its container has ended"}},
		{"no finalizer is added to a terminating pod", worldOf(setOf(2, 1), pod(0).primary(), pod(1).idle().deleted().but(func(w *facts.World) { w.Members[1].Pod.Finalizers = nil })), nil},
		{"update the record before other decisions", worldOf(setOf(3, 1), pod(0).granted().crashed(), pod(1).secondary().sequence("9"), pod(2).status(1)),
			[]string{"learned: 0 is not primary: its container has ended"}},
		{"RS-41 no handover to a terminating or unreachable member", worldOf(setOf(3, 1), pod(0).secondary().sequence("9").deleted(), pod(1).secondary().sequence("9").onNode(off),
			pod(2).primary().answered("sequence", podexec.Succeeded, 0, "9", 8*time.Second), replicas(2)), nil},
		{"RS-14 no seed while a failed member is being stopped", worldOf(setOf(2, 1), pod(0).idle().sequence("9").failures(1, "seed", 1, true).runs("stop", time.Second), pod(1).idle().sequence("9")),
			nil},
		{"RS-20 no start as secondary while the start of a primary is in progress", worldOf(setOf(4, 2), pod(0).primary(), pod(1).idle(), pod(2).granted().runs("primary", time.Second), pod(3).idle().sequence("3")), nil},
		{"no promotion while a failed primary is being stopped", worldOf(setOf(2, 1), pod(0).granted().status(9).runs("stop", time.Second), pod(1).secondary().sequence("9")), nil},
		{"exit code 6 blocks starts in the next pod too", worldOf(setOf(2, 1), pod(0).primary(), pod(1).idle().sequence("5"), with(func(w *facts.World) {
			w.Set.Status.Failures = []v1alpha1.Failure{{Pod: "rss-db-1", UID: "former", Count: 1, Code: 6, Command: "secondary", Generation: 3}}
		})), nil},
		{"exit code 6 blocks no start after the spec was edited", worldOf(setOf(2, 1), pod(0).primary(), pod(1).idle().sequence("5"), with(func(w *facts.World) {
			w.Set.Status.Failures = []v1alpha1.Failure{{Pod: "rss-db-1", UID: "former", Count: 1, Code: 6, Command: "secondary", Generation: 2}}
		})), []string{"1: Secondary, with 0"}},
		{"RS-39 seed the last ordinal when it has the highest sequence", worldOf(setOf(5, 1), pod(0).idle().sequence("3"), pod(1).idle().sequence("3"), pod(2).idle().sequence("3"), pod(3).idle().sequence("3"), pod(4).idle().sequence("4")),
			[]string{"4: Seed, alone"}},
	})
}

// TestTheLastDoor tests the safeguard in send, for rules that miss their check.
func TestTheLastDoor(t *testing.T) {
	well := func() *podFixture { return pod(1).secondary().sequence("9") }
	for _, r := range []struct {
		name, command string
		first, second *podFixture
		sent          bool
	}{
		{"a stop is sent to a secondary", "stop", pod(0).primary(), well(), true},
		{"promote is sent when no primary runs", "promote", pod(0).crashed(), well(), true},
		{"seed is not sent when enough primaries run", "seed", pod(0).primary(), well(), false},
		{"primary is not sent when enough primaries run", "primary", pod(0).primary(), well(), false},
		{"promote is not sent when enough primaries run", "promote", pod(0).primary(), well(), false},
		{"promote is not sent while an unreachable member may be primary", "promote", pod(0).granted().onNode(off), well(), false},
		{"nothing is sent while a command is running in the member", "stop", pod(0).primary(), well().but(func(w *facts.World) { w.Members[1].Busy = &podexec.Command{Name: "status"} }), false},
		{"nothing is sent while a command in the member is unresolved", "stop", pod(0).primary(), well().began("secondary", time.Second), false},
		{"nothing is sent to an unreachable node", "stop", pod(0).primary(), well().onNode(off), false},
		{"nothing is sent to a foreign pod", "stop", pod(0).primary(), well().strange(), false},
	} {
		t.Run(r.name, func(t *testing.T) {
			f := facts.Derive(worldOf(setOf(2, 1), r.first, r.second))
			p := rules.Plan{On: f, Record: f.Record, Asked: map[string]bool{}}
			if p.Send(f, f.Members[1], r.command, r.command, "the caller forgot to ask"); p.Acts() > 0 != r.sent {
				t.Errorf("the plan is %q", gist(&p))
			}
		})
	}
}

// TestNothingStarves tests that nothing waits forever or is repeated endlessly.
func TestNothingStarves(t *testing.T) {
	stopped := func(replicas int32, there bool) thing {
		return with(func(w *facts.World) {
			w.Set.Spec.Replicas, w.Set.Status.RestoreReplicas = ptr.To(replicas), 3
			if w.Stateful.Spec.Replicas = ptr.To(int32(0)); !there {
				w.Stateful = nil
			}
		})
	}
	check(t, []row{
		{"RS-40 promote while a failed secondary is being stopped", worldOf(setOf(3, 1), pod(0).crashed(), pod(1).secondary().sequence("4"), pod(2).idle().failures(1, "secondary", 1, true).runs("stop", time.Second)),
			[]string{"1: Promote, alone"}},
		{"RS-40 promote although a secondary cannot run in its pod", worldOf(setOf(3, 1), pod(0).crashed(), pod(1).secondary().sequence("4"), pod(2).idle().failures(1, "secondary", 5, false)), []string{"1: Promote, alone"}},
		{"RS-40 promote although a member without a grant is unreachable", worldOf(setOf(3, 1), pod(0).crashed(), pod(1).secondary().sequence("4"), pod(2).onNode(off)), []string{"1: Promote, alone"}},
		{"query the sequence of a secondary before an idle member is started", worldOf(setOf(3, 2), pod(0).primary(), pod(1).secondary(), pod(2).idle().sequence("9")),
			[]string{"1 asked sequence"}},
		{"RS-57 recreate an outdated member that does not answer status", worldOf(setOf(2, 1), pod(0).primary().outdated(), pod(1).silent(5).outdated()),
			[]string{"delete pod 1: Renew, its template is outdated, and it has no running member"}},
		{"keep an outdated member below the limit of unanswered queries", worldOf(setOf(2, 1), pod(0).primary().outdated(), pod(1).silent(4).outdated()), nil},
		{"keep an outdated member while status could not be sent", worldOf(setOf(2, 1), pod(0).primary().outdated(), pod(1).unsent("status", 5*time.Second, 5).outdated()), nil},
		{"keep an outdated member that does not answer and may be primary", worldOf(setOf(2, 1), pod(0).granted().silent(5).outdated(), pod(1).secondary().outdated()), nil},
		{"RS-57 no further update while an updated member has not answered", worldOf(setOf(3, 1), pod(0).primary().outdated(), pod(1).silent(4), pod(2).idle().outdated()), []string{"2 asked sequence"}},
		{"RS-33 scale down a member that does not answer", worldOf(setOf(3, 1), pod(0).primary(), pod(1).secondary(), pod(2).silent(5), replicas(2)), []string{"patch statefulset rss-db: Scale, from 3 to 2"}},
		{"RS-33 no scale-down of a member below the limit of unanswered queries", worldOf(setOf(3, 1), pod(0).primary(), pod(1).secondary(), pod(2).silent(4), replicas(2)), nil},
		{"RS-57 stop a primary without followers when its sequence is recorded", worldOf(setOf(3, 1, "secondary"), pod(0).primary().sequence("9").outdated(), pod(1).idle(), pod(2).idle()),
			[]string{"0: Stop, with 0"}},
		{"RS-57 query the sequence of a primary without followers before it is stopped", worldOf(setOf(3, 1, "secondary"), pod(0).primary().outdated(), pod(1).idle(), pod(2).idle()), []string{"0 asked sequence"}},
		{"RS-57 stop one of two primaries without followers", worldOf(setOf(3, 2, "secondary"), pod(0).primary().outdated(), pod(1).primary().outdated(), pod(2).idle()), []string{"1: Stop, with 0 1"}},
		{"no removal of a primary without followers before another member has its data", worldOf(setOf(3, 1, "secondary"), pod(0).idle().sequence("3"), pod(1).idle().sequence("3"),
			pod(2).primary().answered("sequence", podexec.Succeeded, 0, "9", 8*time.Second), replicas(2)), []string{"0 asked sequence", "1 asked sequence"}},
		{"RS-38 recreate a deleted StatefulSet with 0 pods while replicas is too low", worldOf(setOf(3, 1), stopped(2, false)), []string{"create statefulset rss-db: Child, 0 pods"}},
		{"RS-38 recreate a deleted StatefulSet with as many pods as before", worldOf(setOf(3, 1), stopped(3, false)), []string{"create statefulset rss-db: Child, 3 pods"}},
		{"RS-45 no pod is deleted while paused", worldOf(setOf(2, 1), with(func(w *facts.World) { w.Set.Spec.Paused = true }), pod(0).granted().began("promote", 21*time.Second).secondary(), pod(1).secondary()), nil},
		{"RS-45 create the StatefulSet with 0 pods when the set is created paused", worldOf(setOf(2, 1), with(func(w *facts.World) { w.Set.Spec.Paused, w.Stateful = true, nil })), []string{"create statefulset rss-db: Child, 0 pods"}},
		{"RS-45 RS-47 recreate a deleted StatefulSet with the running pods while paused", worldOf(setOf(2, 1), pod(0).primary(), pod(1).secondary(), replicas(0), with(func(w *facts.World) { w.Set.Spec.Paused, w.Stateful = true, nil })),
			[]string{"create statefulset rss-db: Child, 2 pods"}},
		{"RS-45 RS-47 recreate a deleted StatefulSet with the recorded replicas while paused", worldOf(setOf(3, 1), with(func(w *facts.World) {
			w.Set.Spec.Paused, w.Stateful = true, nil
			w.Set.Status.RestoreReplicas = 2
		})), []string{"create statefulset rss-db: Child, 2 pods"}},
		{"RS-33 RS-47 recreate a deleted StatefulSet with the running pods during a scale-down", worldOf(setOf(3, 1), pod(0).primary(), pod(1).secondary(), pod(2).secondary(), replicas(1), with(func(w *facts.World) { w.Stateful = nil })),
			[]string{"create statefulset rss-db: Child, 3 pods"}},
		{"RS-33 refuse a switchover after its demotion failed", worldOf(setOf(2, 1), pod(0).primary().failures(1, "demote", 1, false), pod(1).secondary(), annotated(v1alpha1.AnnotationSwitchoverTo, "rss-db-1"),
			with(func(w *facts.World) { w.RequestedAt = ago(time.Minute + 300*time.Millisecond) })), []string{"patch replicatedstatefulset db: Refused, 1 was not promoted: demote of 0 failed with exit code 1"}},
		{"RS-33 stop the primary when the switchover is requested again", worldOf(setOf(2, 1), pod(0).primary().sequence("4").failures(1, "demote", 1, false), pod(1).secondary().answered("sequence", podexec.Succeeded, 0, "4", 0), annotated(v1alpha1.AnnotationSwitchoverTo, "rss-db-1"),
			with(func(w *facts.World) { w.RequestedAt = ago(time.Second) })), []string{"0: Stop, with 0"}},
		{"RS-47 restore an edited template", worldOf(setOf(1, 1), pod(0).primary(), edited("another")), []string{"patch statefulset rss-db: Template"}},
		{"RS-47 no retry of a restore that was reverted", worldOf(setOf(1, 1), pod(0).primary(), edited("another"), inVainFor("another")), nil},
		{"RS-47 restore the template after another edit", worldOf(setOf(1, 1), pod(0).primary(), edited("a third"), inVainFor("another")), []string{"patch statefulset rss-db: Template"}},
		{"RS-47 no restore of a frequently edited template within its backoff", worldOf(setOf(1, 1), pod(0).primary(), edited("another"), mendedAt(4900*time.Millisecond)), nil},
		{"RS-47 restore a frequently edited template after its backoff", worldOf(setOf(1, 1), pod(0).primary(), edited("another"), mendedAt(5*time.Second)), []string{"patch statefulset rss-db: Template"}},
		{"RS-57 apply a changed spec without backoff", worldOf(setOf(1, 1), pod(0).primary(), mendedAt(time.Second), with(func(w *facts.World) { w.Set.Spec.Pod.Containers[0].Image = "two" })), []string{"patch statefulset rss-db: Template"}},
		{"RS-47 keep fields of the template that the API server added", worldOf(setOf(1, 1), pod(0).primary(), edited("one")), nil},
		{"no retry of a failed start within its backoff", worldOf(setOf(2, 1), pod(0).primary(), pod(1).idle().sequence("4").failures(2, "secondary", 1, false).lately(1900*time.Millisecond)), nil},
		{"retry a failed start after its backoff", worldOf(setOf(2, 1), pod(0).primary(), pod(1).idle().sequence("4").failures(2, "secondary", 1, false).lately(2*time.Second)), []string{"1: Secondary, with 0"}},
		{"RS-27 no recreation of a new pod after failed starts", worldOf(setOf(2, 1), pod(0).primary(), pod(1).idle().failures(2, "secondary", 1, true).born(59*time.Second)), []string{"1: Stop, with 0"}},
		{"RS-27 recreate a pod that is a minute old after failed starts", worldOf(setOf(2, 1), pod(0).primary(), pod(1).idle().failures(2, "secondary", 1, true).born(time.Minute)), []string{"delete pod 1: Failed, 2 starts or stops failed"}},
		{"RS-27 recreate a new pod that may be primary after failed starts", worldOf(setOf(2, 1), pod(0).granted().status(9).failures(2, "promote", 1, true).born(time.Second), pod(1).secondary()),
			[]string{"delete pod 0: Failed, 2 starts or stops failed"}},
	})
}

// TestScaleDownInTheDark tests a scale-down while no member is primary: the members to remove may
// have data that no other member has.
func TestScaleDownInTheDark(t *testing.T) {
	scaled := []string{"patch statefulset rss-db: Scale, from 3 to 2"}
	check(t, []row{
		{"RS-33 seed the member to remove when only it has the newest copy", worldOf(setOf(3, 1), pod(0).idle().sequence("3"), pod(1).idle().sequence("3"), pod(2).idle().sequence("4"), replicas(2)), []string{"2: Seed, alone"}},
		{"RS-33 promote the member to remove when only it has the newest copy", worldOf(setOf(3, 1), pod(0).crashed(), pod(1).secondary().sequence("8"), pod(2).secondary().sequence("9"), replicas(2)), []string{"2: Promote, alone"}},
		{"RS-33 remove a member when another one has an equal copy", worldOf(setOf(3, 1), pod(0).idle().sequence("3"), pod(1).idle().sequence("4"), pod(2).idle().sequence("4"), replicas(2)), scaled},
		{"RS-33 no removal of a member whose sequence is unknown", worldOf(setOf(3, 1), pod(0).idle().sequence("3"), pod(1).idle().sequence("3"), pod(2).idle(), replicas(2)), []string{"2 asked sequence"}},
		{"RS-33 no removal while the sequence of a remaining member is unknown", worldOf(setOf(3, 1), pod(0).idle(), pod(1).pending(), pod(2).idle().sequence("4"), replicas(2)), []string{"0 asked sequence"}},
		{"RS-33 remove a pending member", worldOf(setOf(3, 1), pod(0).idle().sequence("3"), pod(1).idle().sequence("3"), pod(2).pending(), replicas(2)), scaled},
		{"RS-33 query sequences again if they were read before the loss", worldOf(setOf(3, 1), pod(0).secondary().sequence("9"), pod(1).secondary().sequence("9"), pod(2).secondary().sequence("9"), replicas(2),
			with(func(w *facts.World) { w.LossAt = ago(3 * time.Second) })), []string{"0 asked sequence", "1 asked sequence", "2 asked sequence"}},
		{"RS-33 no promotion while the member to remove is being queried", worldOf(setOf(3, 1), pod(0).secondary().sequence("8"), pod(1).secondary().sequence("8"),
			pod(2).idle().but(func(w *facts.World) { w.Members[2].Busy = &podexec.Command{Name: "sequence"} }), replicas(2)), nil},
		{"RS-33 no promotion while the sequence of the member to remove is unknown", worldOf(setOf(3, 1), pod(0).secondary().sequence("8"), pod(1).secondary().sequence("8"),
			pod(2).idle().answered("sequence", podexec.Failed, 1, "", 1500*time.Millisecond), replicas(2)), nil},
		{"RS-33 seed the member to remove when it is newer than the secondary", worldOf(setOf(2, 1), pod(0).secondary().sequence("8"), pod(1).idle().sequence("9"), replicas(1)), []string{"1: Seed, alone"}},
		{"RS-33 promote the secondary when it had all data before the stop of the member to remove", worldOf(setOf(2, 1), pod(0).secondary().sequence("8"),
			pod(1).changed("stop", 20*time.Second).idle().sequence("9").but(func(w *facts.World) {
				m := w.Members[1]
				r := m.Results["stop"]
				r.Proven, w.LossOf = true, m.Pod.UID
				m.Results["stop"] = r
			}), replicas(1)), []string{"0: Promote, alone"}},
		{"RS-33 query the primary again if it was read before the stop of another member", worldOf(setOf(4, 1), pod(0).secondary().sequence("9"), pod(1).secondary().sequence("9"),
			pod(2).primary().answered("sequence", podexec.Succeeded, 0, "9", 8*time.Second),
			pod(3).changed("stop", 7*time.Second).answered("status", podexec.Failed, 7, "", 6*time.Second), replicas(2)), []string{"2 asked sequence"}},
		{"RS-33 start a remaining member as primary before the last primary is removed", worldOf(setOf(4, 2, "secondary", "promote", "demote"), pod(0).idle().sequence("9"), pod(1).idle().sequence("9"),
			pod(2).status(8).granted().answered("sequence", podexec.Succeeded, 0, "9", 8*time.Second), pod(3).idle(), replicas(2)), []string{"0: Primary, with 2"}},
		{"RS-33 stop the primary to remove when the secondaries have all its data", worldOf(setOf(3, 1), pod(0).secondary().sequence("9"), pod(1).secondary().sequence("9"),
			pod(2).primary().answered("sequence", podexec.Succeeded, 0, "9", 8*time.Second), replicas(2)), []string{"2: Stop, with 2"}},
	})
}

func TestAsking(t *testing.T) {
	interval := func(d v1alpha1.Duration) thing {
		return with(func(w *facts.World) { w.Set.Spec.ReconcileInterval = d })
	}
	asked := func(age time.Duration) *podFixture {
		return pod(0).primary().answered("status", podexec.Failed, 8, "", age+time.Second) // it took a second
	}
	check(t, []row{
		{"RS-48 no status query of a healthy member within a minute", worldOf(setOf(1, 1), asked(59*time.Second)), nil},
		{"RS-48 query the status of a healthy member after a minute", worldOf(setOf(1, 1), asked(time.Minute)), []string{"0 asked status"}},
		{"RS-48 query status after the configured interval", worldOf(setOf(1, 1), interval("10s"), asked(10*time.Second)), []string{"0 asked status"}},
		{"RS-48 no status query within the configured interval", worldOf(setOf(1, 1), interval("10s"), asked(9*time.Second)), nil},
		{"RS-48 query status at once after a change of the pod", worldOf(setOf(1, 1), asked(9*time.Second).but(func(w *facts.World) { w.Members[0].Touched = ago(time.Second) })), []string{"0 asked status"}},
		{"RS-16 no sequence query of healthy members", worldOf(setOf(3, 2), pod(0).primary(), pod(1).primary(), pod(2).secondary()), nil},
		{"RS-30 query status again after three lost responses", worldOf(setOf(1, 1), pod(0).granted().silent(3)), []string{"0 asked status"}},
		{"RS-30 wait longer after four lost responses", worldOf(setOf(1, 1), pod(0).granted().silent(4)), nil},
	})
}

func TestDeletion(t *testing.T) {
	gone := func(age time.Duration) thing {
		return with(func(w *facts.World) { w.Set.DeletionTimestamp = ptr.To(metaTime(age)) })
	}
	empty := with(func(w *facts.World) { w.Stateful.Spec.Replicas = ptr.To(int32(0)) })
	scaled := []string{"patch statefulset rss-db: Scale, from 2 to 0"}
	freed := "patch replicatedstatefulset db: Release"
	check(t, []row{
		{"RS-46 stop secondaries first", worldOf(setOf(2, 1), gone(time.Second), pod(0).primary(), pod(1).secondary()), []string{"1: Stop, with 0"}},
		{"RS-46 stop the primary when the secondaries are idle", worldOf(setOf(2, 1), gone(time.Second), pod(0).primary().sequence("1"), pod(1).idle()), []string{"0: Stop, with 0"}},
		{"RS-46 scale down when all members are idle", worldOf(setOf(2, 1), gone(time.Second), pod(0).idle(), pod(1).idle()), scaled},
		{"RS-46 remove the finalizer of the object when no pod exists", worldOf(setOf(2, 1), gone(time.Second), empty), []string{freed}},
		{"stop members of a deleted object although it is paused", worldOf(setOf(2, 1), gone(time.Second), with(func(w *facts.World) { w.Set.Spec.Paused = true }), pod(0).primary(), pod(1).secondary()), []string{"1: Stop, with 0"}},
		{"wait for an unreachable primary of a deleted object", worldOf(setOf(2, 1), gone(599*time.Second), pod(0).granted().onNode(off), pod(1).idle()), nil},
		{"scale down after waiting ten minutes for an unreachable primary", worldOf(setOf(2, 1), gone(10*time.Minute), pod(0).granted().onNode(off), pod(1).idle()), scaled},
		{"wait for a terminating pod on an unreachable node", worldOf(setOf(2, 1), gone(1199*time.Second), empty, pod(0).granted().onNode(off).deleted()), nil},
		{"remove the finalizer of a terminating pod on an unreachable node after twenty minutes", worldOf(setOf(2, 1), gone(20*time.Minute), empty, pod(0).granted().onNode(off).deleted()), []string{"patch pod 0: Release"}},
		{"remove the finalizer of the object when its pods have none", worldOf(setOf(2, 1), gone(20*time.Minute), empty, pod(0).granted().onNode(off).deleted().but(func(w *facts.World) { w.Members[0].Pod.Finalizers = nil })), []string{freed}},
		{"remove the finalizers of pods at once when the namespace is deleted", worldOf(setOf(2, 1), gone(time.Second), with(func(w *facts.World) { w.NamespaceGoes = true }), pod(0).primary(), pod(1).secondary()),
			[]string{"patch pod 0: Release", "patch pod 1: Release"}},
		{"remove the finalizers of pods at once when the spec is invalid", worldOf(setOf(2, 1), gone(time.Second), with(func(w *facts.World) { w.Invalid = "bad" }), pod(0).primary()), []string{"patch pod 0: Release"}},
		{"remove the finalizers of pods at once when they are orphaned", worldOf(setOf(2, 1), gone(time.Second), with(func(w *facts.World) { w.Set.Finalizers = append(w.Set.Finalizers, "orphan") }), pod(0).primary()),
			[]string{"patch pod 0: Release"}},
		{"remove the finalizer of the object at once when the namespace is deleted", worldOf(setOf(2, 1), gone(time.Second), with(func(w *facts.World) { w.NamespaceGoes = true })), []string{freed}},
		{"scale down although a member does not answer", worldOf(setOf(2, 1), gone(time.Second), pod(0).idle(), pod(1).silent(5)), scaled},
		{"no pod of a deleted object is recreated", worldOf(setOf(2, 1), gone(time.Second), pod(0).primary().runs("stop", time.Second).outdated(), pod(1).idle().outdated()), nil},
		{"no member of a deleted object is started", worldOf(setOf(2, 1), gone(time.Second), empty, pod(0).idle().sequence("9").deleted(), pod(1).idle().sequence("9").deleted()), nil},
	})
}

// edited gives the template of the StatefulSet that image, and the defaults of an API server.
func edited(image string) thing {
	return with(func(w *facts.World) {
		w.Stateful = editedSet(w, image)
		w.Stateful.Kind = "StatefulSet" // as from a cache
	})
}

// inVainFor makes the operator remember that its repair of that image was reverted.
func inVainFor(image string) thing {
	return with(func(w *facts.World) {
		before := w.Stateful
		w.Stateful = editedSet(w, image)
		w.Stateful.ResourceVersion, w.Stateful.Kind = "previous", "" // not from a cache
		var p rules.Plan
		rules.KeepStatefulSet(facts.Derive(w), &p)
		a := p.Steps[0][0][0]
		answer := a.From.DeepCopyObject().(client.Object)
		var known undone.Memory
		known.Held(w.Set.Generation, w.Now)
		known.Learn([]action.Outcome{{Action: a, Answer: answer}}, ago(9*time.Second))
		w.Undone = known.Held(w.Set.Generation, w.Now)
		w.Stateful = before
	})
}

func mendedAt(before time.Duration) thing {
	return with(func(w *facts.World) { w.Mended = map[string]time.Time{facts.ChildKey(w.Stateful): ago(before)} })
}

func editedSet(w *facts.World, image string) *appsv1.StatefulSet {
	set := children.BuildStatefulSet(w.Set, *w.Set.Spec.Replicas, children.Hashes{})
	c := &set.Spec.Template.Spec.Containers[0]
	c.Image, c.TerminationMessagePath, c.Env = image, "/dev/termination-log", append(c.Env, corev1.EnvVar{Name: "ADDED"})
	set.Spec.Template.Spec.Containers = append(set.Spec.Template.Spec.Containers, corev1.Container{Name: "added"})
	return set
}
