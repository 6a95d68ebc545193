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
)

// TestGuards tests the guards of the promise: for each row, exactly one guard prevents the failure.
func TestGuards(t *testing.T) {
	check(t, []row{
		{"RS-10 no member is seeded before all have said how new their copies are", worldOf(setOf(3, 1), pod(0).idle().sequence("3"), pod(1).idle().sequence("9"), pod(2).idle()),
			[]string{"2 asked sequence"}},
		{"RS-34 no member takes over while one that runs has not said what it is", worldOf(setOf(3, 1), pod(0).crashed(), pod(1).secondary().sequence("4"), pod(2)), []string{"2 asked status"}},
		{"no other is started while one that runs has not said what it is", worldOf(setOf(3, 2), pod(0).primary(), pod(1), pod(2).secondary().sequence("9")), []string{"1 asked status"}},
		{"nor while one may be on its way to primary", worldOf(setOf(3, 1), pod(0).crashed(), pod(1).secondary().sequence("9"), pod(2).began("promote", 12*time.Second)), []string{"2 asked status"}},
		{"RS-15 nor while a secondary does not know how new its copy is", worldOf(setOf(3, 1), pod(0).crashed(), pod(1).secondary().sequence("9"), pod(2).secondary().sequence("x")), []string{"2 asked sequence"}},
		{"a role is handed over", worldOf(setOf(3, 1), pod(0).primary().answered("sequence", podexec.Succeeded, 0, "9", 8*time.Second), pod(1).secondary().sequence("9"), pod(2).secondary(),
			annotated(v1alpha1.AnnotationSwitchoverTo, "rss-db-1")), []string{"0: Demote, with 0"}},
		{"not while a member is missing", worldOf(setOf(3, 1), pod(0).primary().answered("sequence", podexec.Succeeded, 0, "9", 8*time.Second), pod(1).secondary().sequence("9"), pod(2).pending(),
			annotated(v1alpha1.AnnotationSwitchoverTo, "rss-db-1")), nil},
		{"nothing is recreated while a command may reach it", worldOf(setOf(2, 1), pod(0).primary().outdated(), pod(1).began("promote", 12*time.Second).crashed().outdated()), nil},
		{"no member hands over to a pod of another object", worldOf(setOf(2, 1), pod(0).primary().answered("sequence", podexec.Succeeded, 0, "9", 8*time.Second).outdated(), pod(1).secondary().sequence("9").strange()), nil},
		{"what runs is not asked about meanwhile", worldOf(setOf(2, 1), pod(0).granted().runs("promote", 12*time.Second).status(8), pod(1).secondary()), nil},
		{"one that has ended by itself is its StatefulSet's to delete", worldOf(setOf(2, 1), pod(0).primary(), pod(1).ended()), nil},
		{"one that has to be stopped is not started while the stop cannot be sent", worldOf(setOf(2, 1), pod(0).primary(), pod(1).failures(1, "secondary", 1, true).unsent("stop", 4*time.Second, 3).
			answered("status", podexec.Failed, 7, "", 1500*time.Millisecond).answered("sequence", podexec.Succeeded, 0, "4", 1500*time.Millisecond)), nil},
		{"who is too many is chosen by what they say now", worldOf(setOf(3, 1), pod(0).primary().answered("sequence", podexec.Succeeded, 0, "3", 40*time.Second), pod(1).primary().sequence("9"), pod(2).secondary()),
			[]string{"0 asked sequence"}},
		{"RS-34 never an older one, though the newest cannot be promoted", worldOf(setOf(3, 1), pod(0).crashed(), pod(1).secondary().sequence("9").failures(1, "promote", 5, false), pod(2).secondary().sequence("8")), nil},
		{"RS-17 no member is started before all that could be have said how new they are", worldOf(setOf(3, 1), pod(0).primary(), pod(1).idle(), pod(2).idle().sequence("9")), []string{"1 asked sequence"}},
		{"a successor is asked after the primary was", worldOf(setOf(2, 1), pod(0).primary().sequence("9").outdated(), pod(1).secondary().answered("sequence", podexec.Succeeded, 0, "9", 8*time.Second)), []string{"1 asked sequence"}},
		{"at once, though it has said something a moment before", worldOf(setOf(2, 1), pod(0).primary().answered("sequence", podexec.Succeeded, 0, "9", 1300*time.Millisecond).outdated(), pod(1).secondary().answered("sequence", podexec.Succeeded, 0, "9", 1500*time.Millisecond)), []string{"1 asked sequence"}},
		{"what was said before a demotion is asked again at once", worldOf(setOf(2, 1), pod(0).answered("sequence", podexec.Succeeded, 0, "9", 1400*time.Millisecond).changed("demote", 350*time.Millisecond).statusSince(0, 100*time.Millisecond),
			pod(1).statusSince(0, 100*time.Millisecond).answered("sequence", podexec.Succeeded, 0, "9", 1400*time.Millisecond), lost(300*time.Millisecond)), []string{"0 asked sequence", "1 asked sequence"}},
		{"and one that lacks something a second later", worldOf(setOf(2, 1), pod(0).primary().answered("sequence", podexec.Succeeded, 0, "9", 21400*time.Millisecond).outdated(), pod(1).secondary().answered("sequence", podexec.Succeeded, 0, "8", 500*time.Millisecond)), nil},
		{"a container that a command may have reached is deleted when the next one cannot be reached too", worldOf(setOf(2, 1), pod(0).granted().began("promote", 14*time.Second).restarted(10*time.Second).idle(), pod(1).secondary().sequence("9")),
			[]string{"0 asked status"}},
		{"a copy that had more before has lost something", worldOf(setOf(2, 1), pod(0).idle().sequence("3"), pod(1).idle().sequence("4"), recordedSequence("rss-db-0", "9")), nil},
		{"RS-33 who goes is not promoted", worldOf(setOf(4, 2), pod(0).primary(), pod(1).secondary().sequence("8"), pod(2).secondary().sequence("9"), pod(3).runs("stop", time.Second), replicas(2)),
			[]string{"1: Promote, with 0"}},
		{"RS-20 no secondary while a primary is missing", worldOf(setOf(3, 2), pod(0).primary(), pod(1), pod(2).idle().sequence("9")), []string{"1 asked status"}},
		{"RS-18 a start as secondary too has to end first, where a primary runs", worldOf(setOf(3, 2), pod(0).primary(), pod(1).runs("secondary", time.Second), pod(2).secondary().sequence("9")), nil},
		{"a second primary waits for the first to be well", worldOf(setOf(3, 2), pod(0).granted().onNode(off), pod(1).secondary().sequence("9"), pod(2).secondary().sequence("9")), nil},
		{"nothing is run in a pod of another object", worldOf(setOf(2, 1), pod(0).idle().sequence("3"), pod(1).strange()), nil},
		{"and it is not started", worldOf(setOf(2, 1), pod(0).primary(), pod(1).idle().sequence("3").strange()), nil},
		{"who is asked now is told nothing", worldOf(setOf(2, 1), pod(0).primary(), pod(1).status(1).but(func(w *world) { w.members[1].touched = noon })), []string{"1 asked status"}},
		{"one command at a time is begun in a set", worldOf(setOf(3, 1), pod(0).primary(), pod(1).status(1), pod(2).status(1)), []string{"1: Stop, with 0"}},
		{"one at a time in a pod", worldOf(setOf(2, 1), pod(0).primary().sequence("1"), pod(1).status(1).runs("secondary", time.Second)), nil},
		{"what could not be sent is tried again later", worldOf(setOf(2, 1), pod(0).primary(), pod(1).unsent("secondary", 4*time.Second, 3).
			answered("status", podexec.Failed, 7, "", 1500*time.Millisecond).answered("sequence", podexec.Succeeded, 0, "3", 1500*time.Millisecond)), nil},
		{"and no later", worldOf(setOf(2, 1), pod(0).primary(), pod(1).unsent("secondary", 4*time.Second, 2).
			answered("status", podexec.Failed, 7, "", 1500*time.Millisecond).answered("sequence", podexec.Succeeded, 0, "3", 1500*time.Millisecond)), []string{"1: Secondary, with 0"}},
	})
}

// TestGuardsOfTheRecord tests the guards of the record.
func TestGuardsOfTheRecord(t *testing.T) {
	check(t, []row{
		{"another program in the pod does not speak for the container that was granted", worldOf(setOf(2, 1), pod(0).granted().beside("agent"), pod(1).secondary().sequence("9")),
			[]string{"0 asked status"}},
		{"whatever it answers", worldOf(setOf(2, 1), pod(0).granted().beside("agent").idle(), pod(1).secondary().sequence("9")), nil},
		{"a container of which the kubelet says nothing has not ended", worldOf(setOf(2, 1), pod(0).granted().waiting(), pod(1).secondary().sequence("9")), nil},
		{"a seed is held up by a start whose end was not seen", worldOf(setOf(2, 1), pod(0).idle().sequence("3"), pod(1).began("seed", 12*time.Second).crashed()), nil},
		{"a grant that is young outlives its container: the start may reach the next one", worldOf(setOf(2, 1), pod(0).grantedFor(14*time.Second).crashed(), pod(1).secondary().sequence("9")), nil},
		{"not for ever", worldOf(setOf(2, 1), pod(0).grantedFor(16*time.Second).crashed(), pod(1).secondary().sequence("9")), []string{"learned: 0 is not primary: its container has ended"}},
		{"a primary in the next container counts there", worldOf(setOf(2, 1), pod(0).granted().restarted(time.Minute).status(8), pod(1).secondary()),
			[]string{"learned: 0 was found running as primary"}},
		{"one that failed in the next container may be primary", worldOf(setOf(2, 1), pod(0).granted().restarted(time.Minute).status(1), pod(1).secondary()), []string{"0: Stop, alone"}},
		{"an answer from before the last command is none", worldOf(setOf(2, 1), pod(0).granted().idle().changed("promote", 5*time.Second), pod(1).secondary().sequence("9")), []string{"0 asked status"}},
	})
}

// debugged gives member 1 an ephemeral container.
func debugged(state corev1.ContainerState) func(*world) {
	return func(w *world) {
		w.members[1].pod.Status.EphemeralContainerStatuses = []corev1.ContainerStatus{{Name: "debug", ContainerID: "debug-1", State: state}}
	}
}

// TestGuardsOfWhatGoes tests that pods and copies stay until they are no longer needed.
func TestGuardsOfWhatGoes(t *testing.T) {
	check(t, []row{
		{"one that goes is released when its kubelet has seen it stop", worldOf(setOf(2, 1), pod(0).primary(), pod(1).ended().deleted()), []string{"patch pod 1: Release"}},
		{"and not while it runs", worldOf(setOf(2, 1), pod(0).primary(), pod(1).idle().deleted()), nil},
		{"nor while a container for debugging runs in it, which may have started the program", worldOf(setOf(2, 1), pod(0).primary(), pod(1).ended().deleted().but(debugged(
			corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}))), nil},
		{"and when that has ended too it is released", worldOf(setOf(2, 1), pod(0).primary(), pod(1).ended().deleted().but(debugged(
			corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}))), []string{"patch pod 1: Release"}},
		{"nor while it is on record", worldOf(setOf(2, 1), pod(0).granted().ended().deleted(), pod(1).secondary()), []string{"learned: 0 is not primary: its container has ended"}},
		{"no pod is protected that goes", worldOf(setOf(2, 1), pod(0).primary(), pod(1).idle().deleted().but(func(w *world) { w.members[1].pod.Finalizers = nil })), nil},
		{"the record is kept before anything is decided on them", worldOf(setOf(3, 1), pod(0).granted().crashed(), pod(1).secondary().sequence("9"), pod(2).status(1)),
			[]string{"learned: 0 is not primary: its container has ended"}},
		{"RS-41 one that goes, and one on a lost node, is no successor", worldOf(setOf(3, 1), pod(0).secondary().sequence("9").deleted(), pod(1).secondary().sequence("9").onNode(off),
			pod(2).primary().answered("sequence", podexec.Succeeded, 0, "9", 8*time.Second), replicas(2)), nil},
		{"RS-14 while one that failed is being stopped, no other is seeded", worldOf(setOf(2, 1), pod(0).idle().sequence("9").failures(1, "seed", 1, true).runs("stop", time.Second), pod(1).idle().sequence("9")),
			nil},
		{"RS-20 no secondary before the primaries are there", worldOf(setOf(4, 2), pod(0).primary(), pod(1).idle(), pod(2).granted().runs("primary", time.Second), pod(3).idle().sequence("3")), nil},
		{"of a failed primary the stop comes before a new one", worldOf(setOf(2, 1), pod(0).granted().status(9).runs("stop", time.Second), pod(1).secondary().sequence("9")), nil},
		{"exit code 6 holds for the spec, not for the pod", worldOf(setOf(2, 1), pod(0).primary(), pod(1).idle().sequence("5"), with(func(w *world) {
			w.set.Status.Failures = []v1alpha1.Failure{{Pod: "rss-db-1", UID: "former", Count: 1, Code: 6, Command: "secondary", Generation: 3}}
		})), nil},
		{"until it is edited", worldOf(setOf(2, 1), pod(0).primary(), pod(1).idle().sequence("5"), with(func(w *world) {
			w.set.Status.Failures = []v1alpha1.Failure{{Pod: "rss-db-1", UID: "former", Count: 1, Code: 6, Command: "secondary", Generation: 2}}
		})), []string{"1: Secondary, with 0"}},
		{"RS-39 the newest copy is on the last ordinal", worldOf(setOf(5, 1), pod(0).idle().sequence("3"), pod(1).idle().sequence("3"), pod(2).idle().sequence("3"), pod(3).idle().sequence("3"), pod(4).idle().sequence("4")),
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
		{"a stop is sent", "stop", pod(0).primary(), well(), true},
		{"a first primary is", "promote", pod(0).crashed(), well(), true},
		{"no seed beside as many primaries as are wanted", "seed", pod(0).primary(), well(), false},
		{"no primary", "primary", pod(0).primary(), well(), false},
		{"no promote", "promote", pod(0).primary(), well(), false},
		{"nor beside one that may be", "promote", pod(0).granted().onNode(off), well(), false},
		{"nothing while a command runs there", "stop", pod(0).primary(), well().but(func(w *world) { w.members[1].busy = &podexec.Command{Name: "status"} }), false},
		{"nor while one may, whose end was not seen", "stop", pod(0).primary(), well().began("secondary", time.Second), false},
		{"nor where no member is reached", "stop", pod(0).primary(), well().onNode(off), false},
		{"nor in the pod of another object", "stop", pod(0).primary(), well().strange(), false},
	} {
		t.Run(r.name, func(t *testing.T) {
			f := derive(worldOf(setOf(2, 1), r.first, r.second))
			p := plan{on: f, record: f.record, asked: map[string]bool{}}
			if p.send(f, f.members[1], r.command, r.command, "the caller forgot to ask"); p.Acts() > 0 != r.sent {
				t.Errorf("it does %q", gist(&p))
			}
		})
	}
}

// TestNothingStarves tests that nothing waits forever or is repeated endlessly.
func TestNothingStarves(t *testing.T) {
	stopped := func(replicas int32, there bool) thing {
		return with(func(w *world) {
			w.set.Spec.Replicas, w.set.Status.RestoreReplicas = ptr.To(replicas), 3
			if w.stateful.Spec.Replicas = ptr.To(int32(0)); !there {
				w.stateful = nil
			}
		})
	}
	check(t, []row{
		{"RS-40 a failed secondary holds up no promotion", worldOf(setOf(3, 1), pod(0).crashed(), pod(1).secondary().sequence("4"), pod(2).idle().failures(1, "secondary", 1, true).runs("stop", time.Second)),
			[]string{"1: Promote, alone"}},
		{"RS-40 neither does one that cannot run in its pod", worldOf(setOf(3, 1), pod(0).crashed(), pod(1).secondary().sequence("4"), pod(2).idle().failures(1, "secondary", 5, false)), []string{"1: Promote, alone"}},
		{"RS-40 nor one on a lost node that is not primary", worldOf(setOf(3, 1), pod(0).crashed(), pod(1).secondary().sequence("4"), pod(2).onNode(off)), []string{"1: Promote, alone"}},
		{"a secondary whose copy is not known is waited for, and no idle member taken in its place", worldOf(setOf(3, 2), pod(0).primary(), pod(1).secondary(), pod(2).idle().sequence("9")),
			[]string{"1 asked sequence"}},
		{"RS-57 a member that does not say what it is is recreated, when it is out of date", worldOf(setOf(2, 1), pod(0).primary().outdated(), pod(1).silent(5).outdated()),
			[]string{"delete pod 1: Renew, its template is outdated, and it has no running member"}},
		{"not before it was asked some times", worldOf(setOf(2, 1), pod(0).primary().outdated(), pod(1).silent(4).outdated()), nil},
		{"not when it could not be asked", worldOf(setOf(2, 1), pod(0).primary().outdated(), pod(1).unsent("status", 5*time.Second, 5).outdated()), nil},
		{"not when it may be primary", worldOf(setOf(2, 1), pod(0).granted().silent(5).outdated(), pod(1).secondary().outdated()), nil},
		{"RS-57 one with the new template that has not answered holds up the next", worldOf(setOf(3, 1), pod(0).primary().outdated(), pod(1).silent(4), pod(2).idle().outdated()), []string{"2 asked sequence"}},
		{"RS-33 one that does not answer goes with its pod", worldOf(setOf(3, 1), pod(0).primary(), pod(1).secondary(), pod(2).silent(5), replicas(2)), []string{"patch statefulset rss-db: Scale, from 3 to 2"}},
		{"RS-33 but one that may answer yet is waited for", worldOf(setOf(3, 1), pod(0).primary(), pod(1).secondary(), pod(2).silent(4), replicas(2)), nil},
		{"RS-57 a primary that no member follows is recreated when its sequence is on record", worldOf(setOf(3, 1, "secondary"), pod(0).primary().sequence("9").outdated(), pod(1).idle(), pod(2).idle()),
			[]string{"0: Stop, with 0"}},
		{"RS-57 and not before", worldOf(setOf(3, 1, "secondary"), pod(0).primary().outdated(), pod(1).idle(), pod(2).idle()), []string{"0 asked sequence"}},
		{"RS-57 of two that no member follows, one at a time", worldOf(setOf(3, 2, "secondary"), pod(0).primary().outdated(), pod(1).primary().outdated(), pod(2).idle()), []string{"1: Stop, with 0 1"}},
		{"a primary that no member follows does not go with its ordinal", worldOf(setOf(3, 1, "secondary"), pod(0).idle().sequence("3"), pod(1).idle().sequence("3"),
			pod(2).primary().answered("sequence", podexec.Succeeded, 0, "9", 8*time.Second), replicas(2)), []string{"0 asked sequence", "1 asked sequence"}},
		{"RS-38 a StatefulSet that was deleted does not open the door", worldOf(setOf(3, 1), stopped(2, false)), []string{"create statefulset rss-db: Child, 0 pods"}},
		{"RS-38 it is made with as many as there were", worldOf(setOf(3, 1), stopped(3, false)), []string{"create statefulset rss-db: Child, 3 pods"}},
		{"RS-45 nothing is deleted in a set that is paused", worldOf(setOf(2, 1), with(func(w *world) { w.set.Spec.Paused = true }), pod(0).granted().began("promote", 21*time.Second).secondary(), pod(1).secondary()), nil},
		{"RS-45 a set that begins paused has no pods", worldOf(setOf(2, 1), with(func(w *world) { w.set.Spec.Paused, w.stateful = true, nil })), []string{"create statefulset rss-db: Child, 0 pods"}},
		{"RS-45 RS-47 one whose StatefulSet was deleted keeps the pods that run", worldOf(setOf(2, 1), pod(0).primary(), pod(1).secondary(), replicas(0), with(func(w *world) { w.set.Spec.Paused, w.stateful = true, nil })),
			[]string{"create statefulset rss-db: Child, 2 pods"}},
		{"RS-45 RS-47 and gets those back that went with it", worldOf(setOf(3, 1), with(func(w *world) {
			w.set.Spec.Paused, w.stateful = true, nil
			w.set.Status.RestoreReplicas = 2
		})), []string{"create statefulset rss-db: Child, 2 pods"}},
		{"RS-33 RS-47 in a scale-down too the pods that run stay until they are stopped", worldOf(setOf(3, 1), pod(0).primary(), pod(1).secondary(), pod(2).secondary(), replicas(1), with(func(w *world) { w.stateful = nil })),
			[]string{"create statefulset rss-db: Child, 3 pods"}},
		{"RS-33 a switchover whose demotion failed is over", worldOf(setOf(2, 1), pod(0).primary().failures(1, "demote", 1, false), pod(1).secondary(), annotated(v1alpha1.AnnotationSwitchoverTo, "rss-db-1"),
			with(func(w *world) { w.requestedAt = ago(time.Minute + 300*time.Millisecond) })), []string{"patch replicatedstatefulset db: Refused, 1 was not promoted: demote of 0 failed with exit code 1"}},
		{"RS-33 asked again, it is stopped", worldOf(setOf(2, 1), pod(0).primary().sequence("4").failures(1, "demote", 1, false), pod(1).secondary().answered("sequence", podexec.Succeeded, 0, "4", 0), annotated(v1alpha1.AnnotationSwitchoverTo, "rss-db-1"),
			with(func(w *world) { w.requestedAt = ago(time.Second) })), []string{"0: Stop, with 0"}},
		{"RS-47 a template that was edited is put right", worldOf(setOf(1, 1), pod(0).primary(), edited("another")), []string{"patch statefulset rss-db: Template"}},
		{"RS-47 not again, if that changed nothing", worldOf(setOf(1, 1), pod(0).primary(), edited("another"), inVainFor("another")), nil},
		{"RS-47 but another edit is", worldOf(setOf(1, 1), pod(0).primary(), edited("a third"), inVainFor("another")), []string{"patch statefulset rss-db: Template"}},
		{"RS-47 one that is edited again and again is put right after a while", worldOf(setOf(1, 1), pod(0).primary(), edited("another"), mendedAt(4900*time.Millisecond)), nil},
		{"RS-47 and no later", worldOf(setOf(1, 1), pod(0).primary(), edited("another"), mendedAt(5*time.Second)), []string{"patch statefulset rss-db: Template"}},
		{"RS-57 a new spec is not made to wait", worldOf(setOf(1, 1), pod(0).primary(), mendedAt(time.Second), with(func(w *world) { w.set.Spec.Pod.Containers[0].Image = "two" })), []string{"patch statefulset rss-db: Template"}},
		{"RS-47 what the API server adds to it stays", worldOf(setOf(1, 1), pod(0).primary(), edited("one")), nil},
		{"what failed is tried again after a while", worldOf(setOf(2, 1), pod(0).primary(), pod(1).idle().sequence("4").failures(2, "secondary", 1, false).lately(1900*time.Millisecond)), nil},
		{"and no later", worldOf(setOf(2, 1), pod(0).primary(), pod(1).idle().sequence("4").failures(2, "secondary", 1, false).lately(2*time.Second)), []string{"1: Secondary, with 0"}},
		{"RS-27 a pod that is new is not recreated for starts that failed", worldOf(setOf(2, 1), pod(0).primary(), pod(1).idle().failures(2, "secondary", 1, true).born(59*time.Second)), []string{"1: Stop, with 0"}},
		{"RS-27 after a minute it is", worldOf(setOf(2, 1), pod(0).primary(), pod(1).idle().failures(2, "secondary", 1, true).born(time.Minute)), []string{"delete pod 1: Failed, 2 starts or stops failed"}},
		{"RS-27 one that may be primary is at once", worldOf(setOf(2, 1), pod(0).granted().status(9).failures(2, "promote", 1, true).born(time.Second), pod(1).secondary()),
			[]string{"delete pod 0: Failed, 2 starts or stops failed"}},
	})
}

// TestScaleDownInTheDark tests a scale-down while no member is primary: the members to remove may
// have data that no other member has.
func TestScaleDownInTheDark(t *testing.T) {
	scaled := []string{"patch statefulset rss-db: Scale, from 3 to 2"}
	check(t, []row{
		{"RS-33 who alone has the newest copy is seeded before it goes", worldOf(setOf(3, 1), pod(0).idle().sequence("3"), pod(1).idle().sequence("3"), pod(2).idle().sequence("4"), replicas(2)), []string{"2: Seed, alone"}},
		{"RS-33 or promoted", worldOf(setOf(3, 1), pod(0).crashed(), pod(1).secondary().sequence("8"), pod(2).secondary().sequence("9"), replicas(2)), []string{"2: Promote, alone"}},
		{"RS-33 who does not goes first", worldOf(setOf(3, 1), pod(0).idle().sequence("3"), pod(1).idle().sequence("4"), pod(2).idle().sequence("4"), replicas(2)), scaled},
		{"RS-33 no member goes before it has said what it has", worldOf(setOf(3, 1), pod(0).idle().sequence("3"), pod(1).idle().sequence("3"), pod(2).idle(), replicas(2)), []string{"2 asked sequence"}},
		{"RS-33 nor before the others have", worldOf(setOf(3, 1), pod(0).idle(), pod(1).pending(), pod(2).idle().sequence("4"), replicas(2)), []string{"0 asked sequence"}},
		{"RS-33 who cannot say anything goes", worldOf(setOf(3, 1), pod(0).idle().sequence("3"), pod(1).idle().sequence("3"), pod(2).pending(), replicas(2)), scaled},
		{"RS-33 what a secondary said before the loss is old", worldOf(setOf(3, 1), pod(0).secondary().sequence("9"), pod(1).secondary().sequence("9"), pod(2).secondary().sequence("9"), replicas(2),
			with(func(w *world) { w.lossAt = ago(3 * time.Second) })), []string{"0 asked sequence", "1 asked sequence", "2 asked sequence"}},
		{"RS-33 no member is promoted before who goes has said what it has", worldOf(setOf(3, 1), pod(0).secondary().sequence("8"), pod(1).secondary().sequence("8"),
			pod(2).idle().but(func(w *world) { w.members[2].busy = &podexec.Command{Name: "sequence"} }), replicas(2)), nil},
		{"RS-33 nor while it cannot", worldOf(setOf(3, 1), pod(0).secondary().sequence("8"), pod(1).secondary().sequence("8"),
			pod(2).idle().answered("sequence", podexec.Failed, 1, "", 1500*time.Millisecond), replicas(2)), nil},
		{"RS-33 who has more than those that run is first once more", worldOf(setOf(2, 1), pod(0).secondary().sequence("8"), pod(1).idle().sequence("9"), replicas(1)), []string{"1: Seed, alone"}},
		{"RS-33 unless the others were known to have all that it had", worldOf(setOf(2, 1), pod(0).secondary().sequence("8"),
			pod(1).changed("stop", 20*time.Second).idle().sequence("9").but(func(w *world) {
				m := w.members[1]
				r := m.results["stop"]
				r.Proven, w.lossOf = true, m.pod.UID
				m.results["stop"] = r
			}), replicas(1)), []string{"0: Promote, alone"}},
		{"RS-33 what the primary said before a stop of another is old", worldOf(setOf(4, 1), pod(0).secondary().sequence("9"), pod(1).secondary().sequence("9"),
			pod(2).primary().answered("sequence", podexec.Succeeded, 0, "9", 8*time.Second),
			pod(3).changed("stop", 7*time.Second).answered("status", podexec.Failed, 7, "", 6*time.Second), replicas(2)), []string{"2 asked sequence"}},
		{"RS-33 the last primary of those that go waits until one that stays is primary", worldOf(setOf(4, 2, "secondary", "promote", "demote"), pod(0).idle().sequence("9"), pod(1).idle().sequence("9"),
			pod(2).status(8).granted().answered("sequence", podexec.Succeeded, 0, "9", 8*time.Second), pod(3).idle(), replicas(2)), []string{"0: Primary, with 2"}},
		{"RS-33 when the newest runs as primary, it hands over", worldOf(setOf(3, 1), pod(0).secondary().sequence("9"), pod(1).secondary().sequence("9"),
			pod(2).primary().answered("sequence", podexec.Succeeded, 0, "9", 8*time.Second), replicas(2)), []string{"2: Stop, with 2"}},
	})
}

func TestAsking(t *testing.T) {
	interval := func(d v1alpha1.Duration) thing {
		return with(func(w *world) { w.set.Spec.ReconcileInterval = d })
	}
	asked := func(age time.Duration) *podFixture {
		return pod(0).primary().answered("status", podexec.Failed, 8, "", age+time.Second) // it took a second
	}
	check(t, []row{
		{"RS-48 a healthy member is not asked before a minute is over", worldOf(setOf(1, 1), asked(59*time.Second)), nil},
		{"RS-48 then it is", worldOf(setOf(1, 1), asked(time.Minute)), []string{"0 asked status"}},
		{"RS-48 the interval can be edited", worldOf(setOf(1, 1), interval("10s"), asked(10*time.Second)), []string{"0 asked status"}},
		{"RS-48 and is kept", worldOf(setOf(1, 1), interval("10s"), asked(9*time.Second)), nil},
		{"RS-48 what happens to its pod asks at once", worldOf(setOf(1, 1), asked(9*time.Second).but(func(w *world) { w.members[0].touched = ago(time.Second) })), []string{"0 asked status"}},
		{"RS-16 a sequence is not asked of those that run well", worldOf(setOf(3, 2), pod(0).primary(), pod(1).primary(), pod(2).secondary()), nil},
		{"RS-30 an answer that was lost is waited for longer each time", worldOf(setOf(1, 1), pod(0).granted().silent(3)), []string{"0 asked status"}},
		{"RS-30 and longer", worldOf(setOf(1, 1), pod(0).granted().silent(4)), nil},
	})
}

func TestDeletion(t *testing.T) {
	gone := func(age time.Duration) thing {
		return with(func(w *world) { w.set.DeletionTimestamp = ptr.To(metaTime(age)) })
	}
	empty := with(func(w *world) { w.stateful.Spec.Replicas = ptr.To(int32(0)) })
	scaled := []string{"patch statefulset rss-db: Scale, from 2 to 0"}
	freed := "patch replicatedstatefulset db: Release"
	check(t, []row{
		{"RS-46 secondaries are stopped first", worldOf(setOf(2, 1), gone(time.Second), pod(0).primary(), pod(1).secondary()), []string{"1: Stop, with 0"}},
		{"RS-46 then primaries", worldOf(setOf(2, 1), gone(time.Second), pod(0).primary().sequence("1"), pod(1).idle()), []string{"0: Stop, with 0"}},
		{"RS-46 then the pods go", worldOf(setOf(2, 1), gone(time.Second), pod(0).idle(), pod(1).idle()), scaled},
		{"RS-46 then the object", worldOf(setOf(2, 1), gone(time.Second), empty), []string{freed}},
		{"also one that is paused", worldOf(setOf(2, 1), gone(time.Second), with(func(w *world) { w.set.Spec.Paused = true }), pod(0).primary(), pod(1).secondary()), []string{"1: Stop, with 0"}},
		{"a primary on a lost node is waited for", worldOf(setOf(2, 1), gone(599*time.Second), pod(0).granted().onNode(off), pod(1).idle()), nil},
		{"ten minutes", worldOf(setOf(2, 1), gone(10*time.Minute), pod(0).granted().onNode(off), pod(1).idle()), scaled},
		{"a pod on a lost node is waited for", worldOf(setOf(2, 1), gone(1199*time.Second), empty, pod(0).granted().onNode(off).deleted()), nil},
		{"twenty minutes", worldOf(setOf(2, 1), gone(20*time.Minute), empty, pod(0).granted().onNode(off).deleted()), []string{"patch pod 0: Release"}},
		{"and the object when all of them are let go", worldOf(setOf(2, 1), gone(20*time.Minute), empty, pod(0).granted().onNode(off).deleted().but(func(w *world) { w.members[0].pod.Finalizers = nil })), []string{freed}},
		{"with a namespace all goes at once", worldOf(setOf(2, 1), gone(time.Second), with(func(w *world) { w.namespaceGoes = true }), pod(0).primary(), pod(1).secondary()),
			[]string{"patch pod 0: Release", "patch pod 1: Release"}},
		{"what cannot be served goes at once", worldOf(setOf(2, 1), gone(time.Second), with(func(w *world) { w.invalid = "bad" }), pod(0).primary()), []string{"patch pod 0: Release"}},
		{"so does what its pods are to outlive", worldOf(setOf(2, 1), gone(time.Second), with(func(w *world) { w.set.Finalizers = append(w.set.Finalizers, "orphan") }), pod(0).primary()),
			[]string{"patch pod 0: Release"}},
		{"and the object after them", worldOf(setOf(2, 1), gone(time.Second), with(func(w *world) { w.namespaceGoes = true })), []string{freed}},
		{"a member that does not answer holds nothing up", worldOf(setOf(2, 1), gone(time.Second), pod(0).idle(), pod(1).silent(5)), scaled},
		{"nothing is recreated any more", worldOf(setOf(2, 1), gone(time.Second), pod(0).primary().runs("stop", time.Second).outdated(), pod(1).idle().outdated()), nil},
		{"nothing is started any more", worldOf(setOf(2, 1), gone(time.Second), empty, pod(0).idle().sequence("9").deleted(), pod(1).idle().sequence("9").deleted()), nil},
	})
}

// edited gives the template of the StatefulSet that image, and the defaults of an API server.
func edited(image string) thing {
	return with(func(w *world) {
		w.stateful = editedSet(w, image)
		w.stateful.Kind = "StatefulSet" // as from a cache
	})
}

// inVainFor makes the operator remember that its repair of that image was reverted.
func inVainFor(image string) thing {
	return with(func(w *world) {
		before := w.stateful
		w.stateful = editedSet(w, image)
		w.stateful.ResourceVersion, w.stateful.Kind = "what it was then", "" // not from a cache
		var p plan
		keepStatefulSet(derive(w), &p)
		a := p.Steps[0][0][0]
		answer := a.From.DeepCopyObject().(client.Object)
		var known undone.Memory
		known.Held(w.set.Generation, w.now)
		known.Learn([]action.Outcome{{Action: a, Answer: answer}}, ago(9*time.Second))
		w.undone = known.Held(w.set.Generation, w.now)
		w.stateful = before
	})
}

func mendedAt(before time.Duration) thing {
	return with(func(w *world) { w.mended = map[string]time.Time{childKey(w.stateful): ago(before)} })
}

func editedSet(w *world, image string) *appsv1.StatefulSet {
	set := buildStatefulSet(w.set, *w.set.Spec.Replicas, hashes{})
	c := &set.Spec.Template.Spec.Containers[0]
	c.Image, c.TerminationMessagePath, c.Env = image, "/dev/termination-log", append(c.Env, corev1.EnvVar{Name: "ADDED"})
	set.Spec.Template.Spec.Containers = append(set.Spec.Template.Spec.Containers, corev1.Container{Name: "added"})
	return set
}
