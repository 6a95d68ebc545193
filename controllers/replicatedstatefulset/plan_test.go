package replicatedstatefulset

import (
	"slices"
	"testing"
	"time"

	"k8s.io/utils/ptr"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/nodestate"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podexec"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/rules"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/spec"
)

var (
	out = nodestate.Facts{OutOfService: true}
	off = nodestate.Facts{}
)

func replicas(n int32) thing {
	return with(func(w *facts.World) { w.Set.Spec.Replicas = ptr.To(n) })
}

func quorum() *v1alpha1.ReplicatedStatefulSet { return quorumOf(3) }

func quorumOf(replicas int32) *v1alpha1.ReplicatedStatefulSet {
	set := setOf(replicas, 1)
	set.Spec.Seeding = v1alpha1.SeedingQuorum
	return set
}

func TestSeeding(t *testing.T) {
	check(t, []row{
		{"RS-10 seed the member with the highest sequence first", worldOf(setOf(3, 1), pod(0).idle().sequence("3"), pod(1).idle().sequence("9"), pod(2).idle().sequence("5")),
			[]string{"1: Seed, alone"}},
		{"RS-11 seed the lowest ordinal among equal sequences", worldOf(setOf(11, 1), pod(0).idle().sequence("1"), pod(1).idle().sequence("1"), pod(2).idle().sequence("7"), pod(3).idle().sequence("1"),
			pod(4).idle().sequence("1"), pod(5).idle().sequence("1"), pod(6).idle().sequence("1"), pod(7).idle().sequence("1"), pod(8).idle().sequence("1"), pod(9).idle().sequence("1"),
			pod(10).idle().sequence("7")), []string{"2: Seed, alone"}},
		{"RS-12 without the command seed, start the only member alone", worldOf(setOf(1, 1, "seed"), pod(0).idle().sequence("3")), []string{"0: Seed, alone"}},
		{"RS-13 no seed while a wanted pod is pending", worldOf(setOf(3, 1), pod(0).idle().sequence("3"), pod(1).idle().sequence("9"), pod(2).pending()), nil},
		{"RS-13 no seed while a surplus pod exists", worldOf(setOf(1, 1), pod(0).idle().sequence("3"), pod(1).idle().sequence("3").deleted()), nil},
		{"RS-14 after the newest failed, seed another member with the same sequence", worldOf(setOf(3, 1), pod(0).idle().sequence("9").failures(1, "seed", 3, false),
			pod(1).idle().sequence("9"), pod(2).idle().sequence("5")), []string{"1: Seed, alone"}},
		{"RS-14 seed another member with the same sequence although the first may be retried", worldOf(setOf(3, 1), pod(0).idle().sequence("9").failures(1, "seed", 1, false),
			pod(1).idle().sequence("9"), pod(2).idle().sequence("5")), []string{"1: Seed, alone"}},
		{"RS-14 after the newest failed, no seed of an older copy", worldOf(setOf(3, 1), pod(0).idle().sequence("9").failures(1, "seed", 3, false), pod(1).idle().sequence("8"), pod(2).idle().sequence("5")), nil},
		{"RS-15 no seed while a sequence is negative", worldOf(setOf(3, 1), pod(0).idle().sequence("-1"), pod(1).idle().sequence("9"), pod(2).idle().sequence("5")),
			[]string{"0 asked sequence"}},
		{"RS-15 no seed while a sequence is empty", worldOf(setOf(3, 1), pod(0).idle().sequence(""), pod(1).idle().sequence("9"), pod(2).idle().sequence("5")), []string{"0 asked sequence"}},
		{"RS-15 no seed while a sequence exceeds 64 bits", worldOf(setOf(3, 1), pod(0).idle().sequence("18446744073709551616"), pod(1).idle().sequence("9"), pod(2).idle().sequence("5")),
			[]string{"0 asked sequence"}},
		{"RS-15 seed-from seeds a member although a sequence is unknown", worldOf(setOf(3, 1), pod(0).idle().sequence("x"), pod(1).idle(), pod(2).pending(), annotated(v1alpha1.AnnotationSeedFrom, "rss-db-1")),
			[]string{"1: Seed, alone"}},
		{"seed-from is removed once the grant is recorded", worldOf(setOf(3, 1), pod(0).idle().sequence("1"), pod(1).idle().granted().runs("seed", time.Second), pod(2).pending(),
			annotated(v1alpha1.AnnotationSeedFrom, "rss-db-1")), []string{"patch replicatedstatefulset db: Override, 1 is being seeded, as requested"}},
		{"RS-16 no sequence query while all members are on target", worldOf(setOf(2, 1), pod(0).primary(), pod(1).secondary()), nil},
		{"no seed of a copy that is older than the recorded newest", worldOf(setOf(2, 1), pod(0).idle().sequence("3"), pod(1).idle().sequence("9"), recordedSequence("rss-db-2", "10")), nil},
		{"Quorum: seed with a majority of members", worldOf(quorum(), pod(0).idle().sequence("3"), pod(1).idle().sequence("9"), pod(2).pending(), recordedSequence("rss-db-1", "9")), []string{"1: Seed, alone"}},
		{"Quorum: no seed with one of two members", worldOf(quorumOf(2), pod(0).idle().sequence("3"), pod(1).pending()), nil},
		{"Quorum: seed with two of two members", worldOf(quorumOf(2), pod(0).idle().sequence("3"), pod(1).idle().sequence("4")), []string{"1: Seed, alone"}},
		{"Quorum: no seed with two of four members", worldOf(quorumOf(4), pod(0).idle().sequence("3"), pod(1).idle().sequence("4"), pod(2).pending(), pod(3).pending()), nil},
		{"Quorum: seed with three of four members", worldOf(quorumOf(4), pod(0).idle().sequence("3"), pod(1).idle().sequence("4"), pod(2).idle().sequence("2"), pod(3).pending()), []string{"1: Seed, alone"}},
		{"Quorum: no seed while the recorded newest copy is missing", worldOf(quorum(), pod(0).idle().sequence("3"), pod(1).idle().sequence("9"), pod(2).pending(), recordedSequence("rss-db-2", "10")), nil},
		{"Quorum: no seed with one of three members", worldOf(quorum(), pod(0).idle().sequence("3"), pod(1).pending(), pod(2).pending()), nil},
		{"RS-36 no seed while the role of a running member is unknown", worldOf(setOf(2, 1), pod(0).idle().sequence("3"), pod(1)), []string{"1 asked status"}},
		{"RS-41 no seed while a member on an unreachable node may be primary", worldOf(setOf(2, 1), pod(0).granted().onNode(off), pod(1).idle().sequence("3")), nil},
		{"RS-41 no seed while a terminating member may be primary", worldOf(setOf(2, 1), pod(0).granted().deleted(), pod(1).idle().sequence("3")), []string{"0 asked status"}},
	})
}

func TestStarting(t *testing.T) {
	check(t, []row{
		{"RS-17 start the newest idle member as primary, with the names of the running primaries", worldOf(setOf(3, 3, "secondary"), pod(0).primary(), pod(1).idle().sequence("3"), pod(2).idle().sequence("4")),
			[]string{"2: Primary, with 0"}},
		{"RS-18 no start while another start is in progress", worldOf(setOf(3, 3, "secondary"), pod(0).primary(), pod(1).idle().sequence("3"), pod(2).idle().granted().runs("primary", time.Second)), nil},
		{"RS-19 stop a member after a failed start", worldOf(setOf(3, 3, "secondary"), pod(0).primary(), pod(1).idle().sequence("3"), pod(2).idle().sequence("4").failures(1, "primary", 1, true)),
			[]string{"2: Stop, with 0"}},
		{"RS-19 start another member while the failed one is being stopped", worldOf(setOf(3, 3, "secondary"), pod(0).primary(), pod(1).idle().sequence("3"), pod(2).failures(1, "primary", 1, true).runs("stop", time.Second)),
			[]string{"1: Primary, with 0"}},
		{"RS-20 start the other members as secondaries, with the names of the primaries", worldOf(setOf(5, 2), pod(0).primary(), pod(1).primary(), pod(2).secondary(), pod(3).idle().sequence("3"), pod(4).idle().sequence("4")),
			[]string{"4: Secondary, with 0 1"}},
		{"RS-20 no start of a running secondary", worldOf(setOf(5, 2), pod(0).primary(), pod(1).primary(), pod(2).secondary(), pod(3).secondary(), pod(4).secondary()), nil},
		{"RS-21 without the command secondary, the other members stay idle", worldOf(setOf(5, 2, "secondary"), pod(0).primary(), pod(1).primary(), pod(2).idle(), pod(3).idle(), pod(4).idle()), nil},
		{"RS-22 demote the surplus primary with the lowest sequence, the highest ordinal among equals", worldOf(setOf(4, 2), pod(0).primary().sequence("3"), pod(1).primary().sequence("9"), pod(2).primary().sequence("3"), pod(3).secondary()),
			[]string{"2: Demote, with 0 1 2"}},
		{"RS-22 no second demotion while one is in progress", worldOf(setOf(4, 2), pod(0).primary().sequence("3"), pod(1).primary().sequence("9"), pod(2).primary().sequence("3"), pod(3).granted().runs("demote", time.Second)), nil},
		{"RS-17b after a failed demotion, stop the same primary", worldOf(setOf(4, 2), pod(0).primary().sequence("1"), pod(1).primary().sequence("9"), pod(2).primary().sequence("3").failures(1, "demote", 1, false), pod(3).secondary()),
			[]string{"2: Stop, with 0 1 2"}},
		{"RS-23 promote the newest secondary when another primary is wanted", worldOf(setOf(3, 2), pod(0).primary(), pod(1).secondary().sequence("3"), pod(2).secondary().sequence("9")), []string{"2: Promote, with 0"}},
		{"RS-24 without secondaries, status exit code 0 means primary", worldOf(setOf(2, 2, "secondary"), pod(0).secondary().granted(), pod(1).secondary().granted()), nil},
		{"RS-25 stop a failed member", worldOf(setOf(2, 1), pod(0).primary(), pod(1).status(1)), []string{"1: Stop, with 0"}},
		{"RS-26 recreate the pod when stop fails", worldOf(setOf(2, 1), pod(0).primary(), pod(1).status(1).failures(1, "stop", 1, false)),
			[]string{"delete pod 1: Failed, stop failed with exit code 1"}},
		{"RS-27 recreate the pod after too many failed starts and stops", worldOf(setOf(2, 1), pod(0).primary(), pod(1).idle().failures(2, "secondary", 1, true)), []string{"delete pod 1: Failed, 2 starts or stops failed"}},
		{"RS-28 start a member that stopped without a stop command", worldOf(setOf(2, 1), pod(0).primary(), pod(1).idle().sequence("4")), []string{"1: Secondary, with 0"}},
		{"RS-30 query status again after a lost response, and change nothing", worldOf(setOf(2, 1), pod(0).primary(), pod(1).secondary().answered("status", podexec.Unknown, 0, "", 4*time.Second)), []string{"1 asked status"}},
		{"RS-40 promote a secondary while another pod is pending", worldOf(setOf(3, 1), pod(0).pending(), pod(1).secondary().sequence("4"), pod(2).secondary().sequence("3")), []string{"1: Promote, alone"}},
		{"RS-41 no start in a terminating pod or on an unreachable node", worldOf(setOf(4, 1), pod(0).primary(), pod(1).idle().sequence("4").deleted(), pod(2).idle().sequence("4").onNode(off), pod(3).secondary()), nil},
		{"exit codes 2 to 5 block further starts in the same pod", worldOf(setOf(2, 1), pod(0).primary(), pod(1).idle().sequence("4").failures(1, "secondary", 5, false)), nil},
		{"exit code 6 blocks the start of all members", worldOf(setOf(3, 1), pod(0).primary(), pod(1).idle().sequence("4"), pod(2).idle().sequence("5").failures(1, "secondary", 6, false)), nil},
		{"status exit code 9 means a failed primary, which is stopped", worldOf(setOf(2, 1), pod(0).status(9).granted(), pod(1).secondary()), []string{"0: Stop, alone"}},
		{"status exit codes 190 and 191 mean running", worldOf(setOf(2, 1), pod(0).status(191).granted(), pod(1).status(190)), nil},
		{"add the finalizer to a pod before a start", worldOf(setOf(2, 1), pod(0).primary(), pod(1).idle().sequence("4").but(func(w *facts.World) { w.Members[1].Pod.Finalizers = nil })),
			[]string{"patch pod 1: Protect"}},
		{"RS-45 no queries and no changes while paused", worldOf(setOf(3, 1), with(func(w *facts.World) { w.Set.Spec.Paused = true }), pod(0).primary(), pod(1).idle(), pod(2), replicas(2)), nil},
	})
}

func TestFailover(t *testing.T) {
	check(t, []row{
		{"RS-34 promote the secondary with the highest sequence", worldOf(setOf(3, 1), pod(0).crashed(), pod(1).secondary().sequence("3"), pod(2).secondary().sequence("9")), []string{"2: Promote, alone"}},
		{"RS-34 among equal sequences, promote a member without a failed start", worldOf(setOf(3, 1), pod(0).crashed(), pod(1).secondary().sequence("9").failures(1, "promote", 1, false), pod(2).secondary().sequence("9")), []string{"2: Promote, alone"}},
		{"RS-34 no promotion of a copy that is older than the recorded newest", worldOf(setOf(3, 1), pod(0).crashed(), pod(1).secondary().sequence("3"), pod(2).secondary().sequence("9"), recordedSequence("rss-db-0", "10")), nil},
		{"RS-34 seed the member with the recorded newest copy when it returns", worldOf(setOf(3, 1), pod(0).idle().sequence("10"), pod(1).secondary().sequence("3"), pod(2).secondary().sequence("9"), recordedSequence("rss-db-0", "10")), []string{"0: Seed, alone"}},
		{"RS-34 no seed of a member that returns with a lower sequence than recorded", worldOf(setOf(3, 1), pod(0).idle().sequence("2"), pod(1).secondary().sequence("3"), pod(2).secondary().sequence("9"), recordedSequence("rss-db-0", "10")), nil},
		{"RS-34 among equal sequences, promote the lowest ordinal", worldOf(setOf(3, 1), pod(0).crashed(), pod(1).secondary().sequence("9"), pod(2).secondary().sequence("9")), []string{"1: Promote, alone"}},
		{"RS-34 query status again if it was read before the loss", worldOf(setOf(2, 1), pod(0).crashed(), pod(1).secondary().sequence("9"), with(func(w *facts.World) { w.LossAt = ago(3 * time.Second) })), []string{"1 asked status"}},
		{"RS-34 query sequence again if it was read before the loss", worldOf(setOf(2, 1), pod(0).crashed(), pod(1).secondary().sequence("9"), with(func(w *facts.World) {
			w.LossAt = ago(3 * time.Second)
			r := w.Members[1].Said[v1alpha1.CommandStatus]
			r.Began = ago(2 * time.Second)
			w.Members[1].Said[v1alpha1.CommandStatus] = r
		})), []string{"1 asked sequence"}},
		{"RS-34 wait for a secondary that crashed with the primary", worldOf(setOf(3, 1), pod(0).pending(), pod(1).secondary().sequence("9"), pod(2).crashed(), lost(15*time.Second)), nil},
		{"RS-34 wait for the new pod of a member that was deleted during the loss", worldOf(setOf(3, 1), pod(0).born(5*time.Second).pending(), pod(1).secondary().sequence("9"), pod(2).idle().sequence("9"), lost(15*time.Second)), nil},
		{"RS-34 wait for a member whose pod is terminating", worldOf(setOf(3, 1), pod(0).crashed().deleted(), pod(1).secondary().sequence("9"), pod(2).idle().sequence("9"), lost(15*time.Second)), nil},
		{"RS-34 wait for a member whose pod is not created yet", worldOf(setOf(3, 1), pod(1).secondary().sequence("9"), pod(2).idle().sequence("9"), lost(15*time.Second)), nil},
		{"RS-40 promote without waiting for a pod that was pending before the loss", worldOf(setOf(3, 1), pod(0).born(time.Hour).pending(), pod(1).secondary().sequence("9"), pod(2).idle().sequence("9"), lost(15*time.Second)), []string{"1: Promote, alone"}},
		{"RS-34 query the sequence of an idle member before a promotion", worldOf(setOf(3, 1), pod(0).pending(), pod(1).secondary().sequence("9"), pod(2).idle()), []string{"2 asked sequence"}},
		{"RS-34 stop a failed member before a promotion", worldOf(setOf(3, 1), pod(0).pending(), pod(1).secondary().sequence("9"), pod(2).status(1).sequence("10")), []string{"2: Stop, alone"}},
		{"RS-34 seed an idle member that is newer than the secondary", worldOf(setOf(3, 1), pod(0).idle().sequence("9"), pod(1).secondary().sequence("9"), pod(2).idle().sequence("10")), []string{"2: Seed, alone"}},
		{"RS-34 promote the secondary when the idle members are not newer", worldOf(setOf(3, 1), pod(0).idle().sequence("9"), pod(1).secondary().sequence("9"), pod(2).idle().sequence("9")), []string{"1: Promote, alone"}},
		{"RS-34 promote without waiting for an idle member with an unreadable sequence", worldOf(setOf(3, 1), pod(0).pending(), pod(1).secondary().sequence("9"), pod(2).idle().sequence("x")), []string{"1: Promote, alone", "2 asked sequence"}},
		{"RS-40 promote without waiting for terminating, unreachable or waiting members", worldOf(setOf(4, 1), pod(0).crashed().deleted(), pod(1).secondary().sequence("9"), pod(2).idle().onNode(off), pod(3).waiting()), []string{"1: Promote, alone"}},
		{"promote a secondary, not an idle member", worldOf(setOf(3, 1), pod(0).idle().sequence("10"), pod(1).secondary().sequence("9"), pod(2).secondary().sequence("8")), []string{"1: Promote, alone"}},
		{"no promotion of the only secondary if it is older than the recorded newest", worldOf(setOf(2, 1), pod(0).pending(), pod(1).secondary().sequence("9"), recordedSequence("rss-db-0", "11")), nil},
		{"remove the grant when the container has ended", worldOf(setOf(2, 1), pod(0).granted().crashed(), pod(1).secondary()),
			[]string{"learned: 0 is not primary: its container has ended"}},
		{"remove the grant when status reports stopped", worldOf(setOf(2, 1), pod(0).granted().idle(), pod(1).secondary()), []string{"learned: 0 is not primary: status reports that it has stopped"}},
		{"remove the grant when status reports secondary", worldOf(setOf(2, 1), pod(0).granted().secondary(), pod(1).secondary()), []string{"learned: 0 is not primary: status reports that it is secondary"}},
		{"keep the grant when status reports a failure", worldOf(setOf(2, 1), pod(0).granted().status(1), pod(1).secondary()), []string{"0: Stop, alone"}},
		{"keep the grant while status has not answered", worldOf(setOf(2, 1), pod(0).granted(), pod(1).secondary()), []string{"0 asked status"}},
		{"keep the grant while the node is unreachable", worldOf(setOf(2, 1), pod(0).granted().idle().onNode(off), pod(1).secondary()), nil},
		{"keep the grant when only pod garbage collection ended the pod", worldOf(setOf(2, 1), pod(0).granted().deleted().but(func(w *facts.World) { w.Members[0].Pod.Status.Phase = "Failed" }), pod(1).secondary()), nil},
		{"remove the grant of a deleted pod on an out-of-service Node", worldOf(setOf(2, 1), pod(0).granted().deleted().onNode(out), pod(1).secondary()),
			[]string{"learned: 0 is not primary: its container has ended"}},
		{"delete a pod that may be primary on an out-of-service Node", worldOf(setOf(2, 1), pod(0).granted().onNode(out), pod(1).secondary()), []string{"delete pod 0: Fenced, its Node n1 is out of service"}},
		{"remove the grant when the Node has been missing for a minute", worldOf(setOf(2, 1), pod(0).granted().deleted().onNode(nodestate.Facts{Missing: true, MissingSince: ago(time.Minute)}), pod(1).secondary()),
			[]string{"learned: 0 is not primary: its container has ended"}},
		{"keep the grant while the Node has been missing for less than a minute", worldOf(setOf(2, 1), pod(0).granted().deleted().onNode(nodestate.Facts{Missing: true, MissingSince: ago(59 * time.Second)}), pod(1).secondary()), nil},
		{"query status of a restarted container before the grant is removed", worldOf(setOf(2, 1), pod(0).granted().restarted(time.Minute), pod(1).secondary()), []string{"0 asked status"}},
		{"record a member that is found running as primary", worldOf(setOf(2, 1), pod(0).status(8), pod(1).secondary()), []string{"learned: 0 was found running as primary"}},
		{"RS-34 stop a terminating primary when a successor exists", worldOf(setOf(2, 1), pod(0).primary().deleted(), pod(1).secondary()), []string{"0: Stop, alone"}},
		{"RS-94 demote a terminating primary while its preStop hook runs", worldOf(setOf(2, 1), pod(0).primary().held(time.Second).sequence("9"), pod(1).secondary().later("9")), []string{"0: Demote, alone"}},
		{"RS-94 query the successor while it lacks data of the terminating primary", worldOf(setOf(2, 1), pod(0).primary().held(time.Second).sequence("9"), pod(1).secondary().sequence("8")), []string{"1 asked sequence"}},
		{"RS-94 stop a terminating primary when its preStop hook has ended", worldOf(setOf(2, 1), pod(0).primary().held(10*time.Second).sequence("9"), pod(1).secondary().sequence("8")), []string{"0: Stop, alone"}},
		{"RS-94 send nothing to a terminating primary whose demote failed", worldOf(setOf(2, 1), pod(0).primary().held(time.Second).sequence("9").failures(1, "demote", 1, false), pod(1).secondary().later("9")), nil},
		{"RS-95 query the sequence of a terminating, demoted primary before a promotion", worldOf(setOf(2, 1), pod(0).secondary().held(5*time.Second), pod(1).secondary().sequence("9")), []string{"0 asked sequence"}},
		{"RS-95 no promotion while the demoted primary is newer, and query the successor again", worldOf(setOf(2, 1), pod(0).secondary().held(5*time.Second).sequence("10"), pod(1).secondary().answered("sequence", podexec.Succeeded, 0, "9\n", 9*time.Second)), []string{"1 asked sequence"}},
		{"RS-95 promote a successor that has all data of the demoted primary", worldOf(setOf(2, 1), pod(0).secondary().held(5*time.Second).sequence("10"), pod(1).secondary().later("10")), []string{"1: Promote, alone"}},
		{"RS-95 promote a successor when the sequence of the demoted primary is unreadable", worldOf(setOf(2, 1), pod(0).secondary().held(5*time.Second).sequence("x"), pod(1).secondary().later("10")), []string{"0 asked sequence", "1: Promote, alone"}},
	})
}

func TestCommandsWhoseEndWasNotSeen(t *testing.T) {
	check(t, []row{
		{"query status after a start that ended with 0", worldOf(setOf(2, 1), pod(0).granted().ends("seed", podexec.Succeeded, 0), pod(1).idle()), []string{"0 asked status"}},
		{"record the success of a start once status confirms it", worldOf(setOf(2, 1), pod(0).ends("seed", podexec.Succeeded, 0).granted().statusSince(8, 5*time.Second), pod(1).idle().sequence("3")),
			[]string{"learned: seed of 0 succeeded", "patch pod 0: Role, primary"}},
		{"record the success of a stop at once", worldOf(setOf(2, 1), pod(0).primary(), pod(1).ends("stop", podexec.Succeeded, 0).statusSince(7, 500*time.Millisecond)), []string{"learned: stop of 1 succeeded"}},
		{"record a failed start at once", worldOf(setOf(2, 1), pod(0).granted().ends("seed", podexec.Failed, 1), pod(1).idle()), []string{"0 asked status", "learned: seed of 0 failed with exit code 1"}},
		{"a start with a lost response stays unresolved when status returns 7", worldOf(setOf(2, 1), pod(0).granted().began("promote", 12*time.Second).idle(), pod(1).secondary().sequence("9")), []string{"0 asked status"}},
		{"a start with a lost response stays unresolved when status returns 0", worldOf(setOf(2, 1), pod(0).granted().began("promote", 12*time.Second).secondary(), pod(1).secondary().sequence("9")), []string{"0 asked status"}},
		{"a start with a lost response is resolved when status returns 8", worldOf(setOf(2, 1), pod(0).began("promote", 12*time.Second).primary(), pod(1).secondary()), []string{"learned: promote of 0 took effect: status reports primary", "patch pod 0: Role, primary"}},
		{"query status again if it was read before the start was sent", worldOf(setOf(2, 1), pod(0).began("promote", 8*time.Second).primary(), pod(1).secondary()), []string{"0 asked status"}},
		{"query status once more after the timeout of the start", worldOf(setOf(2, 1), pod(0).granted().began("promote", 21*time.Second).secondary(), pod(1).secondary()), []string{"0 asked status"}},
		{"delete the pod when status does not confirm the start after the timeout", worldOf(setOf(2, 1), pod(0).granted().began("promote", 21*time.Second).statusSince(0, 500*time.Millisecond), pod(1).secondary()),
			[]string{"delete pod 0: Unseen, the outcome of promote is unknown, and status does not show it"}},
		{"keep the pod with an unresolved start on an unreachable node", worldOf(setOf(2, 1), pod(0).granted().began("promote", 21*time.Second).secondary().onNode(off), pod(1).secondary()), nil},
		{"keep the pod with an unresolved start while status could not be sent", worldOf(setOf(2, 1), pod(0).granted().began("promote", 61*time.Second).unsent("status", 3*time.Second, 6), pod(1).secondary().sequence("9")), nil},
		{"delete a foreign pod with an unresolved start right after the timeout", worldOf(setOf(2, 1), pod(0).granted().began("promote", 21*time.Second).secondary().strange(), pod(1).secondary()),
			[]string{"delete pod 0: Unseen, the outcome of promote is unknown, and status does not show it"}},
		{"keep the pod while the start is running", worldOf(setOf(2, 1), pod(0).granted().runs("promote", 21*time.Second).secondary(), pod(1).secondary()), nil},
		{"a start as secondary is resolved when status reports secondary", worldOf(setOf(2, 1), pod(0).primary(), pod(1).began("secondary", 12*time.Second).secondary()),
			[]string{"learned: secondary of 1 took effect: status reports secondary", "patch pod 1: Role, secondary"}},
		{"a stop is resolved when status reports idle", worldOf(setOf(2, 1), pod(0).primary(), pod(1).began("stop", 12*time.Second).idle()), []string{"learned: stop of 1 took effect: status reports idle"}},
		{"promote while a start as secondary is in progress", worldOf(setOf(3, 1), pod(0).crashed(), pod(1).secondary().sequence("9"), pod(2).runs("secondary", time.Second)), []string{"1: Promote, alone"}},
		{"start a secondary while a start on an unreachable node is unresolved", worldOf(setOf(3, 1), pod(0).primary(), pod(1).idle().sequence("9"), pod(2).began("secondary", time.Hour).onNode(off)), []string{"1: Secondary, with 0"}},
		{"a start for an ended container stays unresolved, because it may reach the next container", worldOf(setOf(2, 1), pod(0).granted().began("promote", 12*time.Second).crashed(), pod(1).secondary().sequence("9")), nil},
		{"a start for an ended container is resolved after the timeout for strays", worldOf(setOf(2, 1), pod(0).began("promote", 16*time.Second).crashed(), pod(1).secondary()), []string{"learned: promote of 0 ended with its container"}},
		{"delete a pod whose next container may have received the start", worldOf(setOf(2, 1), pod(0).granted().began("promote", 20*time.Second).restarted(10*time.Second).idle(), pod(1).secondary().sequence("9")),
			[]string{"0 asked status", "delete pod 0: Stray, command promote for the previous container may have reached it"}},
	})
}

func TestSizes(t *testing.T) {
	scaled := "patch statefulset rss-db: Scale, from 3 to "
	check(t, []row{
		{"RS-33 scale up at once", worldOf(setOf(3, 1), pod(0).primary(), pod(1).secondary(), pod(2).secondary(), replicas(5)), []string{scaled + "5"}},
		{"RS-33 query the sequence of the member to remove", worldOf(setOf(3, 1), pod(0).primary(), pod(1).secondary(), pod(2).secondary(), replicas(2)), []string{"2 asked sequence"}},
		{"RS-33 stop the member to remove", worldOf(setOf(3, 1), pod(0).primary(), pod(1).secondary(), pod(2).secondary().sequence("9"), replicas(2)), []string{"2: Stop, with 0"}},
		{"RS-33 stop the member to remove although its sequence query hangs", worldOf(setOf(3, 1), pod(0).primary(), pod(1).secondary(), pod(2).secondary().hung(), replicas(2)), []string{"2: Stop, with 0"}},
		{"RS-33 scale down when the member to remove is idle", worldOf(setOf(3, 1), pod(0).primary(), pod(1).secondary(), pod(2).idle(), replicas(2)), []string{scaled + "2"}},
		{"stop a primary to remove when another member has all its data", worldOf(setOf(3, 1), pod(0).secondary().sequence("9"), pod(1).secondary().sequence("9"),
			pod(2).primary().answered("sequence", podexec.Succeeded, 0, "9", 8*time.Second), replicas(2)), []string{"2: Stop, with 2"}},
		{"query the other members while they lack data of the primary to remove", worldOf(setOf(3, 1), pod(0).secondary().sequence("7"), pod(1).secondary().sequence("8"),
			pod(2).primary().answered("sequence", podexec.Succeeded, 0, "9", 8*time.Second), replicas(2)), []string{"0 asked sequence", "1 asked sequence"}},
		{"RS-37 to 0: query the sequence of the primary, without a demotion", worldOf(setOf(3, 1), pod(0).primary(), pod(1).idle(), pod(2).pending(), replicas(0)), []string{"0 asked sequence"}},
		{"RS-37 to 0: stop secondaries first", worldOf(setOf(3, 1), pod(0).primary(), pod(1).secondary(), pod(2).secondary(), replicas(0)), []string{"2: Stop, with 0"}},
		{"RS-37 to 0: stop the primary with the highest sequence last", worldOf(setOf(3, 3), pod(0).primary().sequence("3"), pod(1).primary().sequence("2"), pod(2).idle(), replicas(0)), []string{"1: Stop, with 0 1"}},
		{"RS-37 to 0: scale down when all members are idle", worldOf(setOf(3, 1), pod(0).idle(), pod(1).idle(), pod(2).pending(), replicas(0)), []string{scaled + "0"}},
		{"RS-38 a stopped set does not start with fewer members than before", worldOf(setOf(3, 1), replicas(2), with(func(w *facts.World) {
			w.Set.Status.RestoreReplicas, w.Stateful.Spec.Replicas = 3, ptr.To(int32(0))
		})), nil},
		{"RS-38 a stopped set starts with as many members as before", worldOf(setOf(3, 1), with(func(w *facts.World) {
			w.Set.Status.RestoreReplicas, w.Stateful.Spec.Replicas = 3, ptr.To(int32(0))
		})), []string{"patch statefulset rss-db: Scale, from 0 to 3"}},
		{"RS-47 restore the replicas of the StatefulSet", worldOf(setOf(3, 1), pod(0).primary(), pod(1).secondary(), with(func(w *facts.World) { w.Stateful.Spec.Replicas = ptr.To(int32(2)) })),
			[]string{"patch statefulset rss-db: Scale, from 2 to 3"}},
		{"RS-57 update a secondary first", worldOf(setOf(3, 1), pod(0).primary().outdated(), pod(1).secondary().outdated(), pod(2).secondary().outdated()), []string{"2: Stop, with 0"}},
		{"RS-57 no update while a member reports that it is degraded", worldOf(setOf(3, 1), pod(0).primary().outdated(), pod(1).status(190).outdated(), pod(2).secondary().outdated()), nil},
		{"RS-57 no update while an updated pod is pending", worldOf(setOf(3, 1), pod(0).primary().outdated(), pod(1).secondary().outdated(), pod(2).pending()), nil},
		{"RS-57 delete an outdated pod when its member is idle", worldOf(setOf(3, 1), pod(0).primary().outdated(), pod(1).secondary().outdated(), pod(2).idle().outdated()),
			[]string{"delete pod 2: Renew, its template is outdated, and it has no running member"}},
		{"RS-57 update the primary last, when a successor has all its data", worldOf(setOf(2, 1), pod(0).primary().answered("sequence", podexec.Succeeded, 0, "9", 8*time.Second).outdated(), pod(1).secondary().sequence("9")),
			[]string{"0: Stop, with 0"}},
	})
}

func TestCommands(t *testing.T) {
	t.Run("RS-58 an edited command is used, and no pod is recreated", func(t *testing.T) {
		w := worldOf(setOf(2, 1), pod(0).primary(), pod(1).idle().sequence("4"), with(func(w *facts.World) {
			w.Set.Spec.Pod.Commands["secondary"] = v1alpha1.Command{Command: []string{"/new", "argument"}, Timeout: "1m"}
		}))
		p := rules.Decide(w)
		c := sentBy(&p)
		if c == nil || !slices.Equal(c.Argv, []string{"/new", "argument", "rss-db-0.db-svc"}) || c.Timeout != time.Minute {
			t.Errorf("sent %+v in %q, want the new argv, the name of the primary, and the new timeout", c, gist(&p))
		}
		for _, m := range p.On.Members {
			if !m.UpToDate {
				t.Errorf("%s is out of date", m.Name())
			}
		}
	})
	t.Run("RS-12 without the command seed, the argv of primary is run without names of members", func(t *testing.T) {
		p := rules.Decide(worldOf(setOf(1, 1, "seed"), pod(0).idle().sequence("3")))
		if c := sentBy(&p); c == nil || !slices.Equal(c.Argv, []string{"/primary"}) {
			t.Errorf("sent %+v, want /primary", c)
		}
	})
	t.Run("RS-29 the default timeout is ten minutes, the minimum ten seconds", func(t *testing.T) {
		for said, want := range map[v1alpha1.Duration]time.Duration{"": 10 * time.Minute, "1s": 10 * time.Second, "2m": 2 * time.Minute} {
			set := setOf(1, 1)
			set.Spec.Pod.Commands["seed"] = v1alpha1.Command{Command: []string{"/seed"}, Timeout: said}
			p := rules.Decide(worldOf(set, pod(0).idle().sequence("3")))
			if c := sentBy(&p); c == nil || c.Timeout != want {
				t.Errorf("timeout %q: sent %+v, want %s", said, c, want)
			}
		}
	})
}

func TestTheRecord(t *testing.T) {
	t.Run("a command is recorded before it is sent, and a start with its grant", func(t *testing.T) {
		w := worldOf(setOf(2, 1), pod(0).crashed(), pod(1).secondary().sequence("9"))
		p := rules.Decide(w)
		chain := p.Steps[0][0]
		record, c := chain[len(chain)-2], chain[len(chain)-1].Command
		set, ok := record.Object.(*v1alpha1.ReplicatedStatefulSet)
		if !ok || record.Verb != action.PatchStatus || record.From != w.Set || c == nil {
			t.Fatalf("the chain is %q, want the status of the object that was read, then the command", p.Steps.Strings())
		}
		if s := set.Status; len(s.Commands) != 1 || s.Commands[0].ContainerID != "c1" || !s.Commands[0].StartedAt.Time.Equal(c.Decided) || s.Commands[0].Timeout.Duration != c.Timeout ||
			len(s.Grants) != 1 || s.Grants[0].ContainerID != "c1" || s.Grants[0].UID != "u1" || s.Epoch != 1 || s.Grants[0].Epoch != 1 {
			t.Errorf("the record is %+v %+v of epoch %d", s.Commands, s.Grants, s.Epoch)
		}
	})
	t.Run("only a plan of queries is executed on cached objects", func(t *testing.T) {
		asks := rules.Decide(worldOf(setOf(2, 1), pod(0).primary(), pod(1)))
		starts := rules.Decide(worldOf(setOf(2, 1), pod(0).primary(), pod(1).idle().sequence("4")))
		deletes := rules.Decide(worldOf(setOf(2, 1), pod(0).primary(), pod(1).idle().failures(2, "secondary", 1, true)))
		if !asks.AsksOnly() || starts.AsksOnly() || deletes.AsksOnly() {
			t.Errorf("asksOnly of %q is %t, of %q %t, of %q %t", gist(&asks), asks.AsksOnly(), gist(&starts), starts.AsksOnly(), gist(&deletes), deletes.AsksOnly())
		}
	})
}

func TestRecords(t *testing.T) {
	t.Run("the sequence of an idle member is not recorded while a primary runs", func(t *testing.T) {
		w := worldOf(setOf(2, 1), pod(0).primary().sequence("3"), pod(1).idle().sequence("9"))
		if s := facts.Derive(w).Record.Versions; len(s) != 1 || s[0].Pod != "rss-db-0" || s[0].Sequence != "3" {
			t.Errorf("the recorded sequences are %+v, want only that of the primary", s)
		}
	})
	t.Run("seed-from removes higher recorded sequences", func(t *testing.T) {
		p := rules.Decide(worldOf(setOf(2, 1), pod(0).idle().sequence("3"), pod(1).idle().sequence("5"), recordedSequence("rss-db-0", "2"), recordedSequence("rss-db-2", "10"),
			annotated(v1alpha1.AnnotationSeedFrom, "rss-db-0")))
		chain := p.Steps[0][0]
		set, ok := chain[0].Object.(*v1alpha1.ReplicatedStatefulSet)
		if !ok || len(set.Status.Sequences) != 1 || set.Status.Sequences[0].Pod != "rss-db-0" || set.Status.Sequences[0].Sequence != "3" {
			t.Errorf("the record of %q has the sequences %+v, want only those up to 3", gist(&p), set.Status.Sequences)
		}
	})
}

// sentBy returns the mutating command of a plan.
func sentBy(p *rules.Plan) *podexec.Command {
	for _, step := range p.Steps {
		for _, chain := range step {
			if c := chain[len(chain)-1].Command; c != nil && !spec.Asks(c.Name) {
				return c
			}
		}
	}
	return nil
}
