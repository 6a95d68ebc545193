package rules_test

import (
	"testing"
	"time"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podexec"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/rules"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/spec"
)

// TestDecideSeedOrders tests that a seed order, which loses data that only other members have, is
// never carried out twice for one id.
func TestDecideSeedOrders(t *testing.T) {
	from := v1alpha1.OrderSeedFrom
	fixture.Check(t, []fixture.Row{
		{"RS-102 record a seed order before it is carried out", fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Idle().Sequence("x"), fixture.Pod(1).Idle(), fixture.Pod(2).Pending(), fixture.InSpec(from, "rss-db-1", "a")), []string{noted}},
		{"RS-102 carry out a recorded seed order", fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Idle().Sequence("x"), fixture.Pod(1).Idle(), fixture.Pod(2).Pending(), fixture.SeedingFrom("rss-db-1", v1alpha1.OrderWaiting)), []string{"1: Seed, alone"}},
		{"RS-102 a seed order is done when the member has its grant", fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Idle(), fixture.Pod(1).WithGranted().WithRuns("seed", time.Second), fixture.Pod(2).Pending(), fixture.SeedingFrom("rss-db-1", v1alpha1.OrderStarted)),
			[]string{"patch status of replicatedstatefulset db: Override, 1 is being seeded, as requested"}},
		{"RS-102 a started seed order is not retried", fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Idle().Sequence("x"), fixture.Pod(1).Idle(), fixture.Pod(2).Pending(), fixture.SeedingFrom("rss-db-1", v1alpha1.OrderStarted)),
			[]string{"patch status of replicatedstatefulset db: Refused, 1 was not seeded: it was started and did not become primary" + overIt}},
		{"RS-102 a seed order that is done is not repeated", fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Idle().Sequence("x"), fixture.Pod(1).Idle().Sequence("7"), fixture.Pod(2).Pending(), fixture.SeedingFrom("rss-db-1", v1alpha1.OrderDone)), []string{"0 asked sequence"}},
		{"RS-103 a seed order in a new object is ignored", fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Idle().Sequence("x"), fixture.Pod(1).Idle(), fixture.Pod(2).Pending(), fixture.InSpec(from, "rss-db-1", "a"), generation(1, -1)),
			[]string{"learned: 1 was not seeded: spec.seedFrom already had order a when the object was created. To carry it out, give the order a new id"}},
		{"RS-102 a seed order is refused while a primary runs", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).Primary(), fixture.Pod(1).Secondary(), fixture.SeedingFrom("rss-db-1", v1alpha1.OrderWaiting)),
			[]string{"patch status of replicatedstatefulset db: Refused, 1 was not seeded: a primary is running or may be running" + overIt}},
	})
}

func quorum() *v1alpha1.ReplicatedStatefulSet { return quorumOf(3) }

func quorumOf(replicas int32) *v1alpha1.ReplicatedStatefulSet {
	set := fixture.SetOf(replicas, 1)
	set.Spec.Seeding = v1alpha1.SeedingQuorum
	return set
}

func TestSeeding(t *testing.T) {
	fixture.Check(t, []fixture.Row{
		{"RS-10 seed the member with the highest sequence first", fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Idle().Sequence("3"), fixture.Pod(1).Idle().Sequence("9"), fixture.Pod(2).Idle().Sequence("5")),
			[]string{"1: Seed, alone"}},
		{"RS-11 seed the lowest ordinal among equal sequences", fixture.WorldOf(fixture.SetOf(11, 1), fixture.Pod(0).Idle().Sequence("1"), fixture.Pod(1).Idle().Sequence("1"), fixture.Pod(2).Idle().Sequence("7"), fixture.Pod(3).Idle().Sequence("1"),
			fixture.Pod(4).Idle().Sequence("1"), fixture.Pod(5).Idle().Sequence("1"), fixture.Pod(6).Idle().Sequence("1"), fixture.Pod(7).Idle().Sequence("1"), fixture.Pod(8).Idle().Sequence("1"), fixture.Pod(9).Idle().Sequence("1"),
			fixture.Pod(10).Idle().Sequence("7")), []string{"2: Seed, alone"}},
		{"RS-12 without the command seed, start the only member alone", fixture.WorldOf(fixture.SetOf(1, 1, "seed"), fixture.Pod(0).Idle().Sequence("3")), []string{"0: Seed, alone"}},
		{"RS-13 no seed while a wanted pod is pending", fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Idle().Sequence("3"), fixture.Pod(1).Idle().Sequence("9"), fixture.Pod(2).Pending()), nil},
		{"RS-13 no seed while a surplus pod exists", fixture.WorldOf(fixture.SetOf(1, 1), fixture.Pod(0).Idle().Sequence("3"), fixture.Pod(1).Idle().Sequence("3").Deleted()), nil},
		{"RS-14 after the newest failed, seed another member with the same sequence", fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Idle().Sequence("9").Failures(1, "seed", 3, false),
			fixture.Pod(1).Idle().Sequence("9"), fixture.Pod(2).Idle().Sequence("5")), []string{"1: Seed, alone"}},
		{"RS-14 seed another member with the same sequence although the first may be retried", fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Idle().Sequence("9").Failures(1, "seed", 1, false),
			fixture.Pod(1).Idle().Sequence("9"), fixture.Pod(2).Idle().Sequence("5")), []string{"1: Seed, alone"}},
		{"RS-14 after the newest failed, no seed of an older copy", fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Idle().Sequence("9").Failures(1, "seed", 3, false), fixture.Pod(1).Idle().Sequence("8"), fixture.Pod(2).Idle().Sequence("5")), nil},
		{"RS-15 no seed while a sequence is negative", fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Idle().Sequence("-1"), fixture.Pod(1).Idle().Sequence("9"), fixture.Pod(2).Idle().Sequence("5")),
			[]string{"0 asked sequence"}},
		{"RS-15 no seed while a sequence is empty", fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Idle().Sequence(""), fixture.Pod(1).Idle().Sequence("9"), fixture.Pod(2).Idle().Sequence("5")), []string{"0 asked sequence"}},
		{"RS-15 no seed while a sequence exceeds 64 bits", fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Idle().Sequence("18446744073709551616"), fixture.Pod(1).Idle().Sequence("9"), fixture.Pod(2).Idle().Sequence("5")),
			[]string{"0 asked sequence"}},
		{"RS-15 seed-from seeds a member although a sequence is unknown", fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Idle().Sequence("x"), fixture.Pod(1).Idle(), fixture.Pod(2).Pending(), fixture.Annotated(v1alpha1.AnnotationSeedFrom, "rss-db-1")),
			[]string{"1: Seed, alone"}},
		{"seed-from is removed once the grant is recorded", fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Idle().Sequence("1"), fixture.Pod(1).Idle().WithGranted().WithRuns("seed", time.Second), fixture.Pod(2).Pending(),
			fixture.Annotated(v1alpha1.AnnotationSeedFrom, "rss-db-1")), []string{"patch replicatedstatefulset db: Override, 1 is being seeded, as requested"}},
		{"RS-16 no sequence query while all members are on target", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).Primary(), fixture.Pod(1).Secondary()), nil},
		{"no seed of a copy that is older than the recorded newest", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).Idle().Sequence("3"), fixture.Pod(1).Idle().Sequence("9"), fixture.RecordedSequence("rss-db-2", "10")), nil},
		{"Quorum: seed with a majority of members", fixture.WorldOf(quorum(), fixture.Pod(0).Idle().Sequence("3"), fixture.Pod(1).Idle().Sequence("9"), fixture.Pod(2).Pending(), fixture.RecordedSequence("rss-db-1", "9")), []string{"1: Seed, alone"}},
		{"Quorum: no seed with one of two members", fixture.WorldOf(quorumOf(2), fixture.Pod(0).Idle().Sequence("3"), fixture.Pod(1).Pending()), nil},
		{"Quorum: seed with two of two members", fixture.WorldOf(quorumOf(2), fixture.Pod(0).Idle().Sequence("3"), fixture.Pod(1).Idle().Sequence("4")), []string{"1: Seed, alone"}},
		{"Quorum: no seed with two of four members", fixture.WorldOf(quorumOf(4), fixture.Pod(0).Idle().Sequence("3"), fixture.Pod(1).Idle().Sequence("4"), fixture.Pod(2).Pending(), fixture.Pod(3).Pending()), nil},
		{"Quorum: seed with three of four members", fixture.WorldOf(quorumOf(4), fixture.Pod(0).Idle().Sequence("3"), fixture.Pod(1).Idle().Sequence("4"), fixture.Pod(2).Idle().Sequence("2"), fixture.Pod(3).Pending()), []string{"1: Seed, alone"}},
		{"Quorum: no seed while the recorded newest copy is missing", fixture.WorldOf(quorum(), fixture.Pod(0).Idle().Sequence("3"), fixture.Pod(1).Idle().Sequence("9"), fixture.Pod(2).Pending(), fixture.RecordedSequence("rss-db-2", "10")), nil},
		{"Quorum: no seed with one of three members", fixture.WorldOf(quorum(), fixture.Pod(0).Idle().Sequence("3"), fixture.Pod(1).Pending(), fixture.Pod(2).Pending()), nil},
		{"RS-36 no seed while the role of a running member is unknown", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).Idle().Sequence("3"), fixture.Pod(1)), []string{"1 asked status"}},
		{"RS-41 no seed while a member on an unreachable node may be primary", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).WithGranted().OnNode(fixture.Off), fixture.Pod(1).Idle().Sequence("3")), nil},
		{"RS-41 no seed while a terminating member may be primary", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).WithGranted().Deleted(), fixture.Pod(1).Idle().Sequence("3")), []string{"0 asked status"}},
	})
}

func TestStarting(t *testing.T) {
	fixture.Check(t, []fixture.Row{
		{"RS-17 start the newest idle member as primary, with the names of the running primaries", fixture.WorldOf(fixture.SetOf(3, 3, "secondary"), fixture.Pod(0).Primary(), fixture.Pod(1).Idle().Sequence("3"), fixture.Pod(2).Idle().Sequence("4")),
			[]string{"2: Primary, with 0"}},
		{"RS-18 no start while another start is in progress", fixture.WorldOf(fixture.SetOf(3, 3, "secondary"), fixture.Pod(0).Primary(), fixture.Pod(1).Idle().Sequence("3"), fixture.Pod(2).Idle().WithGranted().WithRuns("primary", time.Second)), nil},
		{"RS-19 stop a member after a failed start", fixture.WorldOf(fixture.SetOf(3, 3, "secondary"), fixture.Pod(0).Primary(), fixture.Pod(1).Idle().Sequence("3"), fixture.Pod(2).Idle().Sequence("4").Failures(1, "primary", 1, true)),
			[]string{"2: Stop, with 0"}},
		{"RS-19 start another member while the failed one is being stopped", fixture.WorldOf(fixture.SetOf(3, 3, "secondary"), fixture.Pod(0).Primary(), fixture.Pod(1).Idle().Sequence("3"), fixture.Pod(2).Failures(1, "primary", 1, true).WithRuns("stop", time.Second)),
			[]string{"1: Primary, with 0"}},
		{"RS-20 start the other members as secondaries, with the names of the primaries", fixture.WorldOf(fixture.SetOf(5, 2), fixture.Pod(0).Primary(), fixture.Pod(1).Primary(), fixture.Pod(2).Secondary(), fixture.Pod(3).Idle().Sequence("3"), fixture.Pod(4).Idle().Sequence("4")),
			[]string{"4: Secondary, with 0 1"}},
		{"RS-20 no start of a running secondary", fixture.WorldOf(fixture.SetOf(5, 2), fixture.Pod(0).Primary(), fixture.Pod(1).Primary(), fixture.Pod(2).Secondary(), fixture.Pod(3).Secondary(), fixture.Pod(4).Secondary()), nil},
		{"RS-21 without the command secondary, the other members stay idle", fixture.WorldOf(fixture.SetOf(5, 2, "secondary"), fixture.Pod(0).Primary(), fixture.Pod(1).Primary(), fixture.Pod(2).Idle(), fixture.Pod(3).Idle(), fixture.Pod(4).Idle()), nil},
		{"RS-22 demote the surplus primary with the lowest sequence, the highest ordinal among equals", fixture.WorldOf(fixture.SetOf(4, 2), fixture.Pod(0).Primary().Sequence("3"), fixture.Pod(1).Primary().Sequence("9"), fixture.Pod(2).Primary().Sequence("3"), fixture.Pod(3).Secondary()),
			[]string{"2: Demote, with 0 1 2"}},
		{"RS-22 no second demotion while one is in progress", fixture.WorldOf(fixture.SetOf(4, 2), fixture.Pod(0).Primary().Sequence("3"), fixture.Pod(1).Primary().Sequence("9"), fixture.Pod(2).Primary().Sequence("3"), fixture.Pod(3).WithGranted().WithRuns("demote", time.Second)), nil},
		{"RS-17b after a failed demotion, stop the same primary", fixture.WorldOf(fixture.SetOf(4, 2), fixture.Pod(0).Primary().Sequence("1"), fixture.Pod(1).Primary().Sequence("9"), fixture.Pod(2).Primary().Sequence("3").Failures(1, "demote", 1, false), fixture.Pod(3).Secondary()),
			[]string{"2: Stop, with 0 1 2"}},
		{"RS-23 promote the newest secondary when another primary is wanted", fixture.WorldOf(fixture.SetOf(3, 2), fixture.Pod(0).Primary(), fixture.Pod(1).Secondary().Sequence("3"), fixture.Pod(2).Secondary().Sequence("9")), []string{"2: Promote, with 0"}},
		{"RS-24 without secondaries, status exit code 0 means primary", fixture.WorldOf(fixture.SetOf(2, 2, "secondary"), fixture.Pod(0).Secondary().WithGranted(), fixture.Pod(1).Secondary().WithGranted()), nil},
		{"RS-25 stop a failed member", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).Primary(), fixture.Pod(1).Status(1)), []string{"1: Stop, with 0"}},
		{"RS-26 recreate the pod when stop fails", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).Primary(), fixture.Pod(1).Status(1).Failures(1, "stop", 1, false)),
			[]string{"delete pod 1: Failed, stop failed with exit code 1"}},
		{"RS-27 recreate the pod after too many failed starts and stops", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).Primary(), fixture.Pod(1).Idle().Failures(2, "secondary", 1, true)), []string{"delete pod 1: Failed, 2 starts or stops failed"}},
		{"RS-28 start a member that stopped without a stop command", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).Primary(), fixture.Pod(1).Idle().Sequence("4")), []string{"1: Secondary, with 0"}},
		{"RS-30 query status again after a lost response, and change nothing", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).Primary(), fixture.Pod(1).Secondary().Answered("status", podexec.Unknown, 0, "", 4*time.Second)), []string{"1 asked status"}},
		{"RS-40 promote a secondary while another pod is pending", fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Pending(), fixture.Pod(1).Secondary().Sequence("4"), fixture.Pod(2).Secondary().Sequence("3")), []string{"1: Promote, alone"}},
		{"RS-41 no start in a terminating pod or on an unreachable node", fixture.WorldOf(fixture.SetOf(4, 1), fixture.Pod(0).Primary(), fixture.Pod(1).Idle().Sequence("4").Deleted(), fixture.Pod(2).Idle().Sequence("4").OnNode(fixture.Off), fixture.Pod(3).Secondary()), nil},
		{"exit codes 2 to 5 block further starts in the same pod", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).Primary(), fixture.Pod(1).Idle().Sequence("4").Failures(1, "secondary", 5, false)), nil},
		{"exit code 6 blocks the start of all members", fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Primary(), fixture.Pod(1).Idle().Sequence("4"), fixture.Pod(2).Idle().Sequence("5").Failures(1, "secondary", 6, false)), nil},
		{"status exit code 9 means a failed primary, which is stopped", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).Status(9).WithGranted(), fixture.Pod(1).Secondary()), []string{"0: Stop, alone"}},
		{"status exit codes 190 and 191 mean running", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).Status(191).WithGranted(), fixture.Pod(1).Status(190)), nil},
		{"add the finalizer to a pod before a start", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).Primary(), fixture.Pod(1).Idle().Sequence("4").But(func(w *facts.World) { w.Members[1].Pod.Finalizers = nil })),
			[]string{"patch pod 1: Protect"}},
		{"RS-45 no queries and no changes while paused", fixture.WorldOf(fixture.SetOf(3, 1), fixture.With(func(w *facts.World) { w.Set.Spec.Paused = true }), fixture.Pod(0).Primary(), fixture.Pod(1).Idle(), fixture.Pod(2), fixture.Replicas(2)), nil},
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
