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
)

var (
	out = nodestate.Facts{OutOfService: true}
	off = nodestate.Facts{}
)

func replicas(n int32) thing {
	return with(func(w *world) { w.set.Spec.Replicas = ptr.To(n) })
}

func quorum() *v1alpha1.ReplicatedStatefulSet { return quorumOf(3) }

func quorumOf(replicas int32) *v1alpha1.ReplicatedStatefulSet {
	set := setOf(replicas, 1)
	set.Spec.Seeding = v1alpha1.SeedingQuorum
	return set
}

func TestSeeding(t *testing.T) {
	check(t, []row{
		{"RS-10 the newest copy is seeded, before any other starts", worldOf(setOf(3, 1), pod(0).idle().sequence("3"), pod(1).idle().sequence("9"), pod(2).idle().sequence("5")),
			[]string{"1: Seed, alone"}},
		{"RS-11 of equals the lowest ordinal", worldOf(setOf(11, 1), pod(0).idle().sequence("1"), pod(1).idle().sequence("1"), pod(2).idle().sequence("7"), pod(3).idle().sequence("1"),
			pod(4).idle().sequence("1"), pod(5).idle().sequence("1"), pod(6).idle().sequence("1"), pod(7).idle().sequence("1"), pod(8).idle().sequence("1"), pod(9).idle().sequence("1"),
			pod(10).idle().sequence("7")), []string{"2: Seed, alone"}},
		{"RS-12 without a command seed it is primary, with no member to join", worldOf(setOf(1, 1, "seed"), pod(0).idle().sequence("3")), []string{"0: Seed, alone"}},
		{"RS-13 nothing is seeded before all wanted pods run", worldOf(setOf(3, 1), pod(0).idle().sequence("3"), pod(1).idle().sequence("9"), pod(2).pending()), nil},
		{"RS-13 nor while there are too many", worldOf(setOf(1, 1), pod(0).idle().sequence("3"), pod(1).idle().sequence("3").deleted()), nil},
		{"RS-14 when the newest failed, one with the same sequence is next", worldOf(setOf(3, 1), pod(0).idle().sequence("9").failures(1, "seed", 3, false),
			pod(1).idle().sequence("9"), pod(2).idle().sequence("5")), []string{"1: Seed, alone"}},
		{"RS-14 also when the first could be started again", worldOf(setOf(3, 1), pod(0).idle().sequence("9").failures(1, "seed", 1, false),
			pod(1).idle().sequence("9"), pod(2).idle().sequence("5")), []string{"1: Seed, alone"}},
		{"RS-14 and never an older one", worldOf(setOf(3, 1), pod(0).idle().sequence("9").failures(1, "seed", 3, false), pod(1).idle().sequence("8"), pod(2).idle().sequence("5")), nil},
		{"RS-15 a copy of which it is not known how new it is blocks", worldOf(setOf(3, 1), pod(0).idle().sequence("-1"), pod(1).idle().sequence("9"), pod(2).idle().sequence("5")),
			[]string{"0 asked sequence"}},
		{"RS-15 no number at all neither", worldOf(setOf(3, 1), pod(0).idle().sequence(""), pod(1).idle().sequence("9"), pod(2).idle().sequence("5")), []string{"0 asked sequence"}},
		{"RS-15 nor a number that does not fit", worldOf(setOf(3, 1), pod(0).idle().sequence("18446744073709551616"), pod(1).idle().sequence("9"), pod(2).idle().sequence("5")),
			[]string{"0 asked sequence"}},
		{"RS-15 a person may say which all the same", worldOf(setOf(3, 1), pod(0).idle().sequence("x"), pod(1).idle(), pod(2).pending(), annotated(v1alpha1.AnnotationSeedFrom, "rss-db-1")),
			[]string{"1: Seed, alone"}},
		{"who was named is taken off once the grant is written", worldOf(setOf(3, 1), pod(0).idle().sequence("1"), pod(1).idle().granted().runs("seed", time.Second), pod(2).pending(),
			annotated(v1alpha1.AnnotationSeedFrom, "rss-db-1")), []string{"patch replicatedstatefulset db: Override, 1 is being seeded, as requested"}},
		{"RS-16 sequence is not asked when all is on target", worldOf(setOf(2, 1), pod(0).primary(), pod(1).secondary()), nil},
		{"a copy older than the newest on record is not seeded", worldOf(setOf(2, 1), pod(0).idle().sequence("3"), pod(1).idle().sequence("9"), recordedSequence("rss-db-2", "10")), nil},
		{"Quorum: a majority is enough", worldOf(quorum(), pod(0).idle().sequence("3"), pod(1).idle().sequence("9"), pod(2).pending(), recordedSequence("rss-db-1", "9")), []string{"1: Seed, alone"}},
		{"Quorum: half of two is no majority", worldOf(quorumOf(2), pod(0).idle().sequence("3"), pod(1).pending()), nil},
		{"Quorum: both of two are one", worldOf(quorumOf(2), pod(0).idle().sequence("3"), pod(1).idle().sequence("4")), []string{"1: Seed, alone"}},
		{"Quorum: half of four is no majority", worldOf(quorumOf(4), pod(0).idle().sequence("3"), pod(1).idle().sequence("4"), pod(2).pending(), pod(3).pending()), nil},
		{"Quorum: three of four are one", worldOf(quorumOf(4), pod(0).idle().sequence("3"), pod(1).idle().sequence("4"), pod(2).idle().sequence("2"), pod(3).pending()), []string{"1: Seed, alone"}},
		{"Quorum: not without the newest on record", worldOf(quorum(), pod(0).idle().sequence("3"), pod(1).idle().sequence("9"), pod(2).pending(), recordedSequence("rss-db-2", "10")), nil},
		{"Quorum: nor with less than a majority", worldOf(quorum(), pod(0).idle().sequence("3"), pod(1).pending(), pod(2).pending()), nil},
		{"RS-36 who has not said what it is might be primary", worldOf(setOf(2, 1), pod(0).idle().sequence("3"), pod(1)), []string{"1 asked status"}},
		{"RS-41 no seed while the one on a lost node may be primary", worldOf(setOf(2, 1), pod(0).granted().onNode(off), pod(1).idle().sequence("3")), nil},
		{"RS-41 nor beside one that is being deleted", worldOf(setOf(2, 1), pod(0).granted().deleted(), pod(1).idle().sequence("3")), []string{"0 asked status"}},
	})
}

func TestStarting(t *testing.T) {
	check(t, []row{
		{"RS-17 the next primary is the newest of the rest, and is told of those that run", worldOf(setOf(3, 3, "secondary"), pod(0).primary(), pod(1).idle().sequence("3"), pod(2).idle().sequence("4")),
			[]string{"2: Primary, with 0"}},
		{"RS-18 a start waits for the one before", worldOf(setOf(3, 3, "secondary"), pod(0).primary(), pod(1).idle().sequence("3"), pod(2).idle().granted().runs("primary", time.Second)), nil},
		{"RS-19 one that failed is cleaned", worldOf(setOf(3, 3, "secondary"), pod(0).primary(), pod(1).idle().sequence("3"), pod(2).idle().sequence("4").failures(1, "primary", 1, true)),
			[]string{"2: Stop, with 0"}},
		{"RS-19 and until then others are tried", worldOf(setOf(3, 3, "secondary"), pod(0).primary(), pod(1).idle().sequence("3"), pod(2).failures(1, "primary", 1, true).runs("stop", time.Second)),
			[]string{"1: Primary, with 0"}},
		{"RS-20 the others are secondaries, and are told of the primaries", worldOf(setOf(5, 2), pod(0).primary(), pod(1).primary(), pod(2).secondary(), pod(3).idle().sequence("3"), pod(4).idle().sequence("4")),
			[]string{"4: Secondary, with 0 1"}},
		{"RS-20 and none is started twice", worldOf(setOf(5, 2), pod(0).primary(), pod(1).primary(), pod(2).secondary(), pod(3).secondary(), pod(4).secondary()), nil},
		{"RS-21 without a command secondary they stay idle", worldOf(setOf(5, 2, "secondary"), pod(0).primary(), pod(1).primary(), pod(2).idle(), pod(3).idle(), pod(4).idle()), nil},
		{"RS-22 of too many primaries the oldest goes, of equals the highest", worldOf(setOf(4, 2), pod(0).primary().sequence("3"), pod(1).primary().sequence("9"), pod(2).primary().sequence("3"), pod(3).secondary()),
			[]string{"2: Demote, with 0 1 2"}},
		{"RS-22 one after another", worldOf(setOf(4, 2), pod(0).primary().sequence("3"), pod(1).primary().sequence("9"), pod(2).primary().sequence("3"), pod(3).granted().runs("demote", time.Second)), nil},
		{"RS-17b when that failed, no other is stopped", worldOf(setOf(4, 2), pod(0).primary().sequence("1"), pod(1).primary().sequence("9"), pod(2).primary().sequence("3").failures(1, "demote", 1, false), pod(3).secondary()),
			[]string{"2: Stop, with 0 1 2"}},
		{"RS-23 more primaries: the best secondary is promoted", worldOf(setOf(3, 2), pod(0).primary(), pod(1).secondary().sequence("3"), pod(2).secondary().sequence("9")), []string{"2: Promote, with 0"}},
		{"RS-24 0 is primary where there are no secondaries", worldOf(setOf(2, 2, "secondary"), pod(0).secondary().granted(), pod(1).secondary().granted()), nil},
		{"RS-25 one that failed is stopped", worldOf(setOf(2, 1), pod(0).primary(), pod(1).status(1)), []string{"1: Stop, with 0"}},
		{"RS-26 when the stop fails, its pod is recreated", worldOf(setOf(2, 1), pod(0).primary(), pod(1).status(1).failures(1, "stop", 1, false)),
			[]string{"delete pod 1: Failed, stop failed with exit code 1"}},
		{"RS-27 and when too many starts and stops failed", worldOf(setOf(2, 1), pod(0).primary(), pod(1).idle().failures(2, "secondary", 1, true)), []string{"delete pod 1: Failed, 2 starts or stops failed"}},
		{"RS-28 one that stopped by itself is started again", worldOf(setOf(2, 1), pod(0).primary(), pod(1).idle().sequence("4")), []string{"1: Secondary, with 0"}},
		{"RS-30 an answer that was lost is asked again, and changes nothing", worldOf(setOf(2, 1), pod(0).primary(), pod(1).secondary().answered("status", podexec.Unknown, 0, "", 4*time.Second)), []string{"1 asked status"}},
		{"RS-40 a pod that is pending holds up no other", worldOf(setOf(3, 1), pod(0).pending(), pod(1).secondary().sequence("4"), pod(2).secondary().sequence("3")), []string{"1: Promote, alone"}},
		{"RS-41 neither a pod that goes nor one on a lost node is started", worldOf(setOf(4, 1), pod(0).primary(), pod(1).idle().sequence("4").deleted(), pod(2).idle().sequence("4").onNode(off), pod(3).secondary()), nil},
		{"exit codes 2 to 5: not in this pod", worldOf(setOf(2, 1), pod(0).primary(), pod(1).idle().sequence("4").failures(1, "secondary", 5, false)), nil},
		{"exit code 6: none is started", worldOf(setOf(3, 1), pod(0).primary(), pod(1).idle().sequence("4"), pod(2).idle().sequence("5").failures(1, "secondary", 6, false)), nil},
		{"9 is a primary that failed, and is stopped", worldOf(setOf(2, 1), pod(0).status(9).granted(), pod(1).secondary()), []string{"0: Stop, alone"}},
		{"190 and 191 run", worldOf(setOf(2, 1), pod(0).status(191).granted(), pod(1).status(190)), nil},
		{"a pod without the finalizer gets it before anything starts in it", worldOf(setOf(2, 1), pod(0).primary(), pod(1).idle().sequence("4").but(func(w *world) { w.members[1].pod.Finalizers = nil })),
			[]string{"patch pod 1: Protect"}},
		{"RS-45 paused: nothing is asked, and nothing done", worldOf(setOf(3, 1), with(func(w *world) { w.set.Spec.Paused = true }), pod(0).primary(), pod(1).idle(), pod(2), replicas(2)), nil},
	})
}

func TestFailover(t *testing.T) {
	check(t, []row{
		{"RS-34 the best secondary takes over", worldOf(setOf(3, 1), pod(0).crashed(), pod(1).secondary().sequence("3"), pod(2).secondary().sequence("9")), []string{"2: Promote, alone"}},
		{"RS-34 of equals one in which no start failed", worldOf(setOf(3, 1), pod(0).crashed(), pod(1).secondary().sequence("9").failures(1, "promote", 1, false), pod(2).secondary().sequence("9")), []string{"2: Promote, alone"}},
		{"RS-34 none whose copy is older than one on record", worldOf(setOf(3, 1), pod(0).crashed(), pod(1).secondary().sequence("3"), pod(2).secondary().sequence("9"), recordedSequence("rss-db-0", "10")), nil},
		{"RS-34 but the one that had it, when it is back", worldOf(setOf(3, 1), pod(0).idle().sequence("10"), pod(1).secondary().sequence("3"), pod(2).secondary().sequence("9"), recordedSequence("rss-db-0", "10")), []string{"0: Seed, alone"}},
		{"RS-34 and not one that came back with less", worldOf(setOf(3, 1), pod(0).idle().sequence("2"), pod(1).secondary().sequence("3"), pod(2).secondary().sequence("9"), recordedSequence("rss-db-0", "10")), nil},
		{"RS-34 of equals the lowest ordinal", worldOf(setOf(3, 1), pod(0).crashed(), pod(1).secondary().sequence("9"), pod(2).secondary().sequence("9")), []string{"1: Promote, alone"}},
		{"RS-34 but not on what they said before the loss", worldOf(setOf(2, 1), pod(0).crashed(), pod(1).secondary().sequence("9"), with(func(w *world) { w.lossAt = ago(3 * time.Second) })), []string{"1 asked status"}},
		{"RS-34 first whether they run", worldOf(setOf(2, 1), pod(0).crashed(), pod(1).secondary().sequence("9"), with(func(w *world) {
			w.lossAt = ago(3 * time.Second)
			r := w.members[1].said[v1alpha1.CommandStatus]
			r.Began = ago(2 * time.Second)
			w.members[1].said[v1alpha1.CommandStatus] = r
		})), []string{"1 asked sequence"}},
		{"RS-34 a secondary that ended with the primary is awaited", worldOf(setOf(3, 1), pod(0).pending(), pod(1).secondary().sequence("9"), pod(2).crashed(), lost(15*time.Second)), nil},
		{"RS-34 as is one that was deleted with it", worldOf(setOf(3, 1), pod(0).born(5*time.Second).pending(), pod(1).secondary().sequence("9"), pod(2).idle().sequence("9"), lost(15*time.Second)), nil},
		{"RS-34 also while it goes", worldOf(setOf(3, 1), pod(0).crashed().deleted(), pod(1).secondary().sequence("9"), pod(2).idle().sequence("9"), lost(15*time.Second)), nil},
		{"RS-34 and while it is not made yet", worldOf(setOf(3, 1), pod(1).secondary().sequence("9"), pod(2).idle().sequence("9"), lost(15*time.Second)), nil},
		{"RS-40 not one that was Pending before", worldOf(setOf(3, 1), pod(0).born(time.Hour).pending(), pod(1).secondary().sequence("9"), pod(2).idle().sequence("9"), lost(15*time.Second)), []string{"1: Promote, alone"}},
		{"RS-34 and then asked", worldOf(setOf(3, 1), pod(0).pending(), pod(1).secondary().sequence("9"), pod(2).idle()), []string{"2 asked sequence"}},
		{"RS-34 as is one that failed, and was stopped", worldOf(setOf(3, 1), pod(0).pending(), pod(1).secondary().sequence("9"), pod(2).status(1).sequence("10")), []string{"2: Stop, alone"}},
		{"RS-34 and is started if it is newer", worldOf(setOf(3, 1), pod(0).idle().sequence("9"), pod(1).secondary().sequence("9"), pod(2).idle().sequence("10")), []string{"2: Seed, alone"}},
		{"RS-34 and not if it is as new", worldOf(setOf(3, 1), pod(0).idle().sequence("9"), pod(1).secondary().sequence("9"), pod(2).idle().sequence("9")), []string{"1: Promote, alone"}},
		{"RS-34 one that cannot say is not awaited", worldOf(setOf(3, 1), pod(0).pending(), pod(1).secondary().sequence("9"), pod(2).idle().sequence("x")), []string{"1: Promote, alone", "2 asked sequence"}},
		{"RS-40 nor one that is not there", worldOf(setOf(4, 1), pod(0).crashed().deleted(), pod(1).secondary().sequence("9"), pod(2).idle().onNode(off), pod(3).waiting()), []string{"1: Promote, alone"}},
		{"an idle copy is no secondary", worldOf(setOf(3, 1), pod(0).idle().sequence("10"), pod(1).secondary().sequence("9"), pod(2).secondary().sequence("8")), []string{"1: Promote, alone"}},
		{"a secondary older than the newest on record does not take over", worldOf(setOf(2, 1), pod(0).pending(), pod(1).secondary().sequence("9"), recordedSequence("rss-db-0", "11")), nil},
		{"it is primary no more when its container has ended", worldOf(setOf(2, 1), pod(0).granted().crashed(), pod(1).secondary()),
			[]string{"learned: 0 is not primary: its container has ended"}},
		{"or when status says that it stopped", worldOf(setOf(2, 1), pod(0).granted().idle(), pod(1).secondary()), []string{"learned: 0 is not primary: status reports that it has stopped"}},
		{"or is secondary", worldOf(setOf(2, 1), pod(0).granted().secondary(), pod(1).secondary()), []string{"learned: 0 is not primary: status reports that it is secondary"}},
		{"not when it failed", worldOf(setOf(2, 1), pod(0).granted().status(1), pod(1).secondary()), []string{"0: Stop, alone"}},
		{"not when no member answers", worldOf(setOf(2, 1), pod(0).granted(), pod(1).secondary()), []string{"0 asked status"}},
		{"not when its node is silent", worldOf(setOf(2, 1), pod(0).granted().idle().onNode(off), pod(1).secondary()), nil},
		{"not when only pod garbage collection has ended it", worldOf(setOf(2, 1), pod(0).granted().deleted().but(func(w *world) { w.members[0].pod.Status.Phase = "Failed" }), pod(1).secondary()), nil},
		{"but when that is out of service, and the pod deleted", worldOf(setOf(2, 1), pod(0).granted().deleted().onNode(out), pod(1).secondary()),
			[]string{"learned: 0 is not primary: its container has ended"}},
		{"which it is made for", worldOf(setOf(2, 1), pod(0).granted().onNode(out), pod(1).secondary()), []string{"delete pod 0: Fenced, its Node n1 is out of service"}},
		{"a Node that is gone is fenced after a minute", worldOf(setOf(2, 1), pod(0).granted().deleted().onNode(nodestate.Facts{Missing: true, MissingSince: ago(time.Minute)}), pod(1).secondary()),
			[]string{"learned: 0 is not primary: its container has ended"}},
		{"and not before", worldOf(setOf(2, 1), pod(0).granted().deleted().onNode(nodestate.Facts{Missing: true, MissingSince: ago(59 * time.Second)}), pod(1).secondary()), nil},
		{"the container that took its place has to say what it is first", worldOf(setOf(2, 1), pod(0).granted().restarted(time.Minute), pod(1).secondary()), []string{"0 asked status"}},
		{"one that is found as primary counts", worldOf(setOf(2, 1), pod(0).status(8), pod(1).secondary()), []string{"learned: 0 was found running as primary"}},
		{"RS-34 a primary that goes is stopped where another can follow", worldOf(setOf(2, 1), pod(0).primary().deleted(), pod(1).secondary()), []string{"0: Stop, alone"}},
		{"RS-94 but one that its kubelet holds hands its role over", worldOf(setOf(2, 1), pod(0).primary().held(time.Second).sequence("9"), pod(1).secondary().later("9")), []string{"0: Demote, alone"}},
		{"RS-94 to one that has its data", worldOf(setOf(2, 1), pod(0).primary().held(time.Second).sequence("9"), pod(1).secondary().sequence("8")), []string{"1 asked sequence"}},
		{"RS-94 and is stopped when it is held no more", worldOf(setOf(2, 1), pod(0).primary().held(10*time.Second).sequence("9"), pod(1).secondary().sequence("8")), []string{"0: Stop, alone"}},
		{"RS-94 or its demote failed: it ends by itself", worldOf(setOf(2, 1), pod(0).primary().held(time.Second).sequence("9").failures(1, "demote", 1, false), pod(1).secondary().later("9")), nil},
		{"RS-95 one that was demoted while it goes is asked first", worldOf(setOf(2, 1), pod(0).secondary().held(5*time.Second), pod(1).secondary().sequence("9")), []string{"0 asked sequence"}},
		{"RS-95 none takes over while it has more, and they are asked again", worldOf(setOf(2, 1), pod(0).secondary().held(5*time.Second).sequence("10"), pod(1).secondary().answered("sequence", podexec.Succeeded, 0, "9\n", 9*time.Second)), []string{"1 asked sequence"}},
		{"RS-95 but one that has it all", worldOf(setOf(2, 1), pod(0).secondary().held(5*time.Second).sequence("10"), pod(1).secondary().later("10")), []string{"1: Promote, alone"}},
		{"RS-95 or where it cannot say", worldOf(setOf(2, 1), pod(0).secondary().held(5*time.Second).sequence("x"), pod(1).secondary().later("10")), []string{"0 asked sequence", "1: Promote, alone"}},
	})
}

func TestCommandsWhoseEndWasNotSeen(t *testing.T) {
	check(t, []row{
		{"a start that ended with 0 has to be seen in status", worldOf(setOf(2, 1), pod(0).granted().ends("seed", podexec.Succeeded, 0), pod(1).idle()), []string{"0 asked status"}},
		{"then its end is learned", worldOf(setOf(2, 1), pod(0).ends("seed", podexec.Succeeded, 0).granted().statusSince(8, 5*time.Second), pod(1).idle().sequence("3")),
			[]string{"learned: seed of 0 succeeded", "patch pod 0: Role, primary"}},
		{"the end of a stop is learned at once", worldOf(setOf(2, 1), pod(0).primary(), pod(1).ends("stop", podexec.Succeeded, 0).statusSince(7, 500*time.Millisecond)), []string{"learned: stop of 1 succeeded"}},
		{"a failure too", worldOf(setOf(2, 1), pod(0).granted().ends("seed", podexec.Failed, 1), pod(1).idle()), []string{"0 asked status", "learned: seed of 0 failed with exit code 1"}},
		{"one whose answer was lost may take effect: 7 proves nothing", worldOf(setOf(2, 1), pod(0).granted().began("promote", 12*time.Second).idle(), pod(1).secondary().sequence("9")), []string{"0 asked status"}},
		{"nor does 0", worldOf(setOf(2, 1), pod(0).granted().began("promote", 12*time.Second).secondary(), pod(1).secondary().sequence("9")), []string{"0 asked status"}},
		{"8 does", worldOf(setOf(2, 1), pod(0).began("promote", 12*time.Second).primary(), pod(1).secondary()), []string{"learned: promote of 0 took effect: status reports primary", "patch pod 0: Role, primary"}},
		{"but not one from before it was sent", worldOf(setOf(2, 1), pod(0).began("promote", 8*time.Second).primary(), pod(1).secondary()), []string{"0 asked status"}},
		{"after its time status is asked once more, as after an outage", worldOf(setOf(2, 1), pod(0).granted().began("promote", 21*time.Second).secondary(), pod(1).secondary()), []string{"0 asked status"}},
		{"and then the pod is deleted", worldOf(setOf(2, 1), pod(0).granted().began("promote", 21*time.Second).statusSince(0, 500*time.Millisecond), pod(1).secondary()),
			[]string{"delete pod 0: Unseen, the outcome of promote is unknown, and status does not show it"}},
		{"but not on a node that does not answer, whose kubelet would not hear of it", worldOf(setOf(2, 1), pod(0).granted().began("promote", 21*time.Second).secondary().onNode(off), pod(1).secondary()), nil},
		{"nor after an outage, in which it could not be asked", worldOf(setOf(2, 1), pod(0).granted().began("promote", 61*time.Second).unsent("status", 3*time.Second, 6), pod(1).secondary().sequence("9")), nil},
		{"at once where it never can be", worldOf(setOf(2, 1), pod(0).granted().began("promote", 21*time.Second).secondary().strange(), pod(1).secondary()),
			[]string{"delete pod 0: Unseen, the outcome of promote is unknown, and status does not show it"}},
		{"not while it runs", worldOf(setOf(2, 1), pod(0).granted().runs("promote", 21*time.Second).secondary(), pod(1).secondary()), nil},
		{"a secondary is one when it says so", worldOf(setOf(2, 1), pod(0).primary(), pod(1).began("secondary", 12*time.Second).secondary()),
			[]string{"learned: secondary of 1 took effect: status reports secondary", "patch pod 1: Role, secondary"}},
		{"what is stopped has stopped", worldOf(setOf(2, 1), pod(0).primary(), pod(1).began("stop", 12*time.Second).idle()), []string{"learned: stop of 1 took effect: status reports idle"}},
		{"a start as secondary holds up no failover", worldOf(setOf(3, 1), pod(0).crashed(), pod(1).secondary().sequence("9"), pod(2).runs("secondary", time.Second)), []string{"1: Promote, alone"}},
		{"nor, on a node that is lost, others from being secondaries", worldOf(setOf(3, 1), pod(0).primary(), pod(1).idle().sequence("9"), pod(2).began("secondary", time.Hour).onNode(off)), []string{"1: Secondary, with 0"}},
		{"a start for a container that is gone may reach the next one", worldOf(setOf(2, 1), pod(0).granted().began("promote", 12*time.Second).crashed(), pod(1).secondary().sequence("9")), nil},
		{"not for ever", worldOf(setOf(2, 1), pod(0).began("promote", 16*time.Second).crashed(), pod(1).secondary()), []string{"learned: promote of 0 ended with its container"}},
		{"one that it may have reached is deleted", worldOf(setOf(2, 1), pod(0).granted().began("promote", 20*time.Second).restarted(10*time.Second).idle(), pod(1).secondary().sequence("9")),
			[]string{"0 asked status", "delete pod 0: Stray, command promote for the previous container may have reached it"}},
	})
}

func TestSizes(t *testing.T) {
	scaled := "patch statefulset rss-db: Scale, from 3 to "
	check(t, []row{
		{"RS-33 up at once", worldOf(setOf(3, 1), pod(0).primary(), pod(1).secondary(), pod(2).secondary(), replicas(5)), []string{scaled + "5"}},
		{"RS-33 down: who goes is asked what it has", worldOf(setOf(3, 1), pod(0).primary(), pod(1).secondary(), pod(2).secondary(), replicas(2)), []string{"2 asked sequence"}},
		{"RS-33 and then stopped", worldOf(setOf(3, 1), pod(0).primary(), pod(1).secondary(), pod(2).secondary().sequence("9"), replicas(2)), []string{"2: Stop, with 0"}},
		{"RS-33 also where it cannot say", worldOf(setOf(3, 1), pod(0).primary(), pod(1).secondary(), pod(2).secondary().hung(), replicas(2)), []string{"2: Stop, with 0"}},
		{"RS-33 then it goes", worldOf(setOf(3, 1), pod(0).primary(), pod(1).secondary(), pod(2).idle(), replicas(2)), []string{scaled + "2"}},
		{"a primary goes when another has all of its data", worldOf(setOf(3, 1), pod(0).secondary().sequence("9"), pod(1).secondary().sequence("9"),
			pod(2).primary().answered("sequence", podexec.Succeeded, 0, "9", 8*time.Second), replicas(2)), []string{"2: Stop, with 2"}},
		{"and not before", worldOf(setOf(3, 1), pod(0).secondary().sequence("7"), pod(1).secondary().sequence("8"),
			pod(2).primary().answered("sequence", podexec.Succeeded, 0, "9", 8*time.Second), replicas(2)), []string{"0 asked sequence", "1 asked sequence"}},
		{"RS-37 a primary that goes is stopped, and not demoted before", worldOf(setOf(3, 1), pod(0).primary(), pod(1).idle(), pod(2).pending(), replicas(0)), []string{"0 asked sequence"}},
		{"RS-37 to 0: secondaries first", worldOf(setOf(3, 1), pod(0).primary(), pod(1).secondary(), pod(2).secondary(), replicas(0)), []string{"2: Stop, with 0"}},
		{"RS-37 then primaries, the newest last", worldOf(setOf(3, 3), pod(0).primary().sequence("3"), pod(1).primary().sequence("2"), pod(2).idle(), replicas(0)), []string{"1: Stop, with 0 1"}},
		{"RS-37 then the pods go", worldOf(setOf(3, 1), pod(0).idle(), pod(1).idle(), pod(2).pending(), replicas(0)), []string{scaled + "0"}},
		{"RS-38 a stopped set does not come back with fewer members", worldOf(setOf(3, 1), replicas(2), with(func(w *world) {
			w.set.Status.RestoreReplicas, w.stateful.Spec.Replicas = 3, ptr.To(int32(0))
		})), nil},
		{"RS-38 it does with as many", worldOf(setOf(3, 1), with(func(w *world) {
			w.set.Status.RestoreReplicas, w.stateful.Spec.Replicas = 3, ptr.To(int32(0))
		})), []string{"patch statefulset rss-db: Scale, from 0 to 3"}},
		{"RS-47 what others changed is repaired", worldOf(setOf(3, 1), pod(0).primary(), pod(1).secondary(), with(func(w *world) { w.stateful.Spec.Replicas = ptr.To(int32(2)) })),
			[]string{"patch statefulset rss-db: Scale, from 2 to 3"}},
		{"RS-57 a secondary is renewed first", worldOf(setOf(3, 1), pod(0).primary().outdated(), pod(1).secondary().outdated(), pod(2).secondary().outdated()), []string{"2: Stop, with 0"}},
		{"RS-57 none while one says that it is degraded", worldOf(setOf(3, 1), pod(0).primary().outdated(), pod(1).status(190).outdated(), pod(2).secondary().outdated()), nil},
		{"RS-57 one at a time", worldOf(setOf(3, 1), pod(0).primary().outdated(), pod(1).secondary().outdated(), pod(2).pending()), nil},
		{"RS-57 what is stopped is recreated", worldOf(setOf(3, 1), pod(0).primary().outdated(), pod(1).secondary().outdated(), pod(2).idle().outdated()),
			[]string{"delete pod 2: Renew, its template is outdated, and it has no running member"}},
		{"RS-57 the primary last, when another can take its place", worldOf(setOf(2, 1), pod(0).primary().answered("sequence", podexec.Succeeded, 0, "9", 8*time.Second).outdated(), pod(1).secondary().sequence("9")),
			[]string{"0: Stop, with 0"}},
	})
}

func TestCommands(t *testing.T) {
	t.Run("RS-58 an edited command is the one that is run, and no pod is recreated", func(t *testing.T) {
		w := worldOf(setOf(2, 1), pod(0).primary(), pod(1).idle().sequence("4"), with(func(w *world) {
			w.set.Spec.Pod.Commands["secondary"] = v1alpha1.Command{Command: []string{"/new", "argument"}, Timeout: "1m"}
		}))
		p := decide(w)
		c := sentBy(&p)
		if c == nil || !slices.Equal(c.Argv, []string{"/new", "argument", "rss-db-0.db-svc"}) || c.Timeout != time.Minute {
			t.Errorf("it sends %+v in %q, want the new argv, the name of the primary, and the new timeout", c, gist(&p))
		}
		for _, m := range p.on.members {
			if !m.upToDate {
				t.Errorf("%s is out of date", m.name())
			}
		}
	})
	t.Run("RS-12 without a command seed the argv of primary is run, alone", func(t *testing.T) {
		p := decide(worldOf(setOf(1, 1, "seed"), pod(0).idle().sequence("3")))
		if c := sentBy(&p); c == nil || !slices.Equal(c.Argv, []string{"/primary"}) {
			t.Errorf("it sends %+v, want /primary", c)
		}
	})
	t.Run("RS-29 a command without a timeout has ten minutes, and never less than ten seconds", func(t *testing.T) {
		for said, want := range map[v1alpha1.Duration]time.Duration{"": 10 * time.Minute, "1s": 10 * time.Second, "2m": 2 * time.Minute} {
			set := setOf(1, 1)
			set.Spec.Pod.Commands["seed"] = v1alpha1.Command{Command: []string{"/seed"}, Timeout: said}
			p := decide(worldOf(set, pod(0).idle().sequence("3")))
			if c := sentBy(&p); c == nil || c.Timeout != want {
				t.Errorf("timeout %q: it sends %+v, want %s", said, c, want)
			}
		}
	})
}

func TestTheRecord(t *testing.T) {
	t.Run("the record of a command is written before it is sent, and a grant with that of a start", func(t *testing.T) {
		w := worldOf(setOf(2, 1), pod(0).crashed(), pod(1).secondary().sequence("9"))
		p := decide(w)
		chain := p.Steps[0][0]
		record, c := chain[len(chain)-2], chain[len(chain)-1].Command
		set, ok := record.Object.(*v1alpha1.ReplicatedStatefulSet)
		if !ok || record.Verb != action.PatchStatus || record.From != w.set || c == nil {
			t.Fatalf("the chain is %q, want the status of the object that was read, and the command", p.Steps.Strings())
		}
		if s := set.Status; len(s.Commands) != 1 || s.Commands[0].ContainerID != "c1" || !s.Commands[0].StartedAt.Time.Equal(c.Decided) || s.Commands[0].Timeout.Duration != c.Timeout ||
			len(s.Grants) != 1 || s.Grants[0].ContainerID != "c1" || s.Grants[0].UID != "u1" || s.Epoch != 1 || s.Grants[0].Epoch != 1 {
			t.Errorf("the record is %+v %+v of epoch %d", s.Commands, s.Grants, s.Epoch)
		}
	})
	t.Run("only a plan that does nothing but ask is carried out on the cache", func(t *testing.T) {
		asks := decide(worldOf(setOf(2, 1), pod(0).primary(), pod(1)))
		starts := decide(worldOf(setOf(2, 1), pod(0).primary(), pod(1).idle().sequence("4")))
		deletes := decide(worldOf(setOf(2, 1), pod(0).primary(), pod(1).idle().failures(2, "secondary", 1, true)))
		if !asks.asksOnly() || starts.asksOnly() || deletes.asksOnly() {
			t.Errorf("%q asks only: %t, %q: %t, %q: %t", gist(&asks), asks.asksOnly(), gist(&starts), starts.asksOnly(), gist(&deletes), deletes.asksOnly())
		}
	})
}

func TestRecords(t *testing.T) {
	t.Run("what an idle member has beside a primary is not kept: it is about to be overwritten", func(t *testing.T) {
		w := worldOf(setOf(2, 1), pod(0).primary().sequence("3"), pod(1).idle().sequence("9"))
		if s := derive(w).record.versions; len(s) != 1 || s[0].Pod != "rss-db-0" || s[0].Sequence != "3" {
			t.Errorf("on record are %+v, want that of the primary alone", s)
		}
	})
	t.Run("what a person gave up is not waited for again", func(t *testing.T) {
		p := decide(worldOf(setOf(2, 1), pod(0).idle().sequence("3"), pod(1).idle().sequence("5"), recordedSequence("rss-db-0", "2"), recordedSequence("rss-db-2", "10"),
			annotated(v1alpha1.AnnotationSeedFrom, "rss-db-0")))
		chain := p.Steps[0][0]
		set, ok := chain[0].Object.(*v1alpha1.ReplicatedStatefulSet)
		if !ok || len(set.Status.Sequences) != 1 || set.Status.Sequences[0].Pod != "rss-db-0" || set.Status.Sequences[0].Sequence != "3" {
			t.Errorf("the record of %q has the sequences %+v, want only those up to 3", gist(&p), set.Status.Sequences)
		}
	})
}

// sentBy returns the mutating command of a plan.
func sentBy(p *plan) *podexec.Command {
	for _, step := range p.Steps {
		for _, chain := range step {
			if c := chain[len(chain)-1].Command; c != nil && !asks(c.Name) {
				return c
			}
		}
	}
	return nil
}
