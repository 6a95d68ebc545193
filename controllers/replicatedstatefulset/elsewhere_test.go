package replicatedstatefulset

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/causes"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podexec"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/record"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/rules"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/spec"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/status"
)

// looping puts the container into CrashLoopBackOff. It ended again that long ago.
func (f *podFixture) looping(ended time.Duration) *podFixture {
	c := &f.Pod.Status.ContainerStatuses[0]
	c.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ContainerID: c.ContainerID, StartedAt: metaTime(ended), FinishedAt: metaTime(ended)}
	c.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}
	c.RestartCount = 1
	return f
}

// crashes sets the number of restarts of the container.
func (f *podFixture) crashes(times int32) *podFixture {
	f.Pod.Status.ContainerStatuses[0].RestartCount = times
	return f
}

// hung makes sequence unanswered after the max number of attempts.
func (f *podFixture) hung() *podFixture {
	f.Tries[v1alpha1.CommandSequence] = spec.UnresponsiveAfter
	return f.answered(v1alpha1.CommandSequence, podexec.Unknown, 0, "", 4*time.Second)
}

// provenStop makes the first member the former primary, stopped with proof.
var provenStop = with(func(w *facts.World) {
	m := w.Members[0]
	r := m.Results[v1alpha1.CommandStop]
	r.Proven, w.LossOf = true, m.Pod.UID
	m.Results[v1alpha1.CommandStop] = r
})

// lastStopped makes the first member the former primary, stopped without proof.
var lastStopped = with(func(w *facts.World) { w.LossOf = w.Members[0].Pod.UID })

// TestCopiesElsewhere tests that, while a secondary runs, newer data in members that do not run is
// considered.
func TestCopiesElsewhere(t *testing.T) {
	check(t, []row{
		{"no promotion right after several primaries crashed", worldOf(setOf(3, 2), pod(0).crashed(), pod(1).crashed(), pod(2).secondary().sequence("9"), lost(15*time.Second)), nil},
		{"wait for a member to remove that crashed with the primary", worldOf(setOf(3, 1), pod(0).crashed(), pod(1).secondary().sequence("9"), pod(2).crashed(), lost(15*time.Second), replicas(2)), nil},
		{"wait for wanted members although members to remove run", worldOf(setOf(5, 1), pod(0).crashed(), pod(1).crashed(), pod(2).crashed(), pod(3).secondary().sequence("9"), pod(4).secondary().sequence("9"), lost(15*time.Second), replicas(3)), nil},
		{"query a terminating member that still runs", worldOf(setOf(3, 1), pod(0).idle().sequence("9"), pod(1).secondary().sequence("9"), pod(2).secondary().deleted(), lost(15*time.Second)), []string{"2 asked sequence"}},
		{"wait for a member that is being stopped", worldOf(setOf(3, 1), pod(0).looping(time.Second), pod(1).secondary().sequence("9"), pod(2).runs("stop", time.Second), lost(15*time.Second)), nil},
		{"wait for a member whose container restarts soon", worldOf(setOf(3, 1), pod(0).looping(8*time.Second), pod(1).secondary().sequence("9"), pod(2).looping(8*time.Second), lost(15*time.Second)), nil},
		{"RS-40 promote without waiting for a member in an old crash loop", worldOf(setOf(3, 1), pod(0).looping(time.Hour), pod(1).secondary().sequence("9"), pod(2).idle().sequence("9"), lost(15*time.Second)), []string{"1: Promote, alone"}},
		{"among equal sequences, seed a member that can be started", worldOf(setOf(3, 1), pod(0).idle().sequence("10").deleted(), pod(1).secondary().sequence("9"), pod(2).idle().sequence("10"), lost(15*time.Second)), []string{"2: Seed, alone"}},
		{"no promotion when the proof is of an older stop", worldOf(setOf(3, 1), pod(0).changed("stop", time.Hour).changed("promote", 50*time.Minute).idle().sequence("10"), pod(1).secondary().sequence("9"), pod(2).crashed(), provenStop, lost(11*time.Second)), nil},
		{"query the former primary after a stop without proof", worldOf(setOf(3, 1), pod(0).changed("stop", 12*time.Second).idle(), pod(1).secondary().sequence("8"), pod(2).pending().born(time.Hour), lastStopped, lost(11*time.Second)),
			[]string{"0 asked sequence"}},
		{"seed the former primary when the successor is older", worldOf(setOf(3, 1), pod(0).changed("stop", 12*time.Second).idle().sequence("9"), pod(1).secondary().sequence("8"), pod(2).pending().born(time.Hour), lastStopped, lost(11*time.Second)),
			[]string{"0: Seed, alone"}},
		{"no promotion of a successor that is older than the former primary", worldOf(setOf(3, 1), pod(0).changed("stop", 12*time.Second).idle().sequence("10"), pod(1).secondary().sequence("9"), pod(2).crashed(), provenStop, lost(11*time.Second)), nil},
		{"promote although the sequence query of an idle member hangs", worldOf(setOf(3, 1), pod(0).crashed(), pod(1).secondary().sequence("9"), pod(2).idle().hung(), lost(time.Hour)), []string{"1: Promote, alone"}},
		{"start a secondary although the sequence query of another member hangs", worldOf(setOf(3, 1), pod(0).primary(), pod(1).idle().sequence("9"), pod(2).idle().hung()), []string{"1: Secondary, with 0"}},
	})
}

// TestAPersonInTheDark tests decisions by users while no member is primary.
func TestAPersonInTheDark(t *testing.T) {
	noClaims := setOf(3, 1)
	noClaims.Spec.Pod.VolumeClaimTemplates = nil
	never := noClaims.DeepCopy()
	noClaims.Status.Epoch = 3
	again := func(i int) *podFixture { return pod(i).looping(time.Second).crashes(causes.CrashesInVain).outdated() }
	const renewed = "delete pod 2: Renew, its template is outdated, and it has no running member"
	check(t, []row{
		{"keep an outdated pod without a claim while its container restarts", worldOf(noClaims, pod(0).crashed().outdated(), pod(1).crashed().outdated(), pod(2).crashed().outdated()), nil},
		{"recreate an outdated pod without a claim whose container restarts repeatedly", worldOf(noClaims, pod(0).looping(2*time.Minute).outdated(), pod(1).looping(2*time.Minute).outdated(), pod(2).looping(2*time.Minute).outdated()), []string{renewed}},
		{"W7 recreate an outdated pod without a claim in a crash loop", worldOf(noClaims, again(0), again(1), again(2)), []string{renewed}},
		{"W7 recreate an outdated pod without a claim when no member has served yet", worldOf(never, pod(0).crashed().outdated(), pod(1).crashed().outdated(), pod(2).crashed().outdated()), []string{renewed}},
		{"recreate an outdated pod with a claim", worldOf(setOf(3, 1), pod(0).crashed().outdated(), pod(1).crashed().outdated(), pod(2).crashed().outdated()), []string{renewed}},
		{"seed-from waits until the status of all members was queried", worldOf(setOf(3, 1), pod(0).idle().sequence("9"), pod(1), pod(2).idle().sequence("9"), annotated(v1alpha1.AnnotationSeedFrom, "rss-db-0")), []string{"1 asked status"}},
		{"seed-from does not wait for a member without a status response", worldOf(setOf(3, 1), pod(0).idle().sequence("9"), pod(1).silent(4), pod(2).idle().sequence("9"), annotated(v1alpha1.AnnotationSeedFrom, "rss-db-0")), []string{"0: Seed, alone"}},
		{"switchover-to is refused with the reason", worldOf(setOf(3, 1), pod(0).secondary().sequence("9"), pod(1).secondary().sequence("9"), pod(2).born(time.Hour).pending(), lost(15*time.Second), annotated(v1alpha1.AnnotationSwitchoverTo, "rss-db-2")),
			[]string{"patch replicatedstatefulset db: Refused, 2 was not promoted: it is not running as secondary. The former primary was already stopped or demoted for it; promoting 0"}},
	})
}

func TestConditionsInTheDark(t *testing.T) {
	for _, row := range []struct {
		name                  string
		world                 *facts.World
		kind, reason, message string
	}{
		{"a scale-down waits for a container that restarts repeatedly", worldOf(setOf(3, 1), pod(0).idle().sequence("3"), pod(1).idle().sequence("3"), pod(2).looping(time.Hour), replicas(2), lost(time.Hour)),
			v1alpha1.ConditionDataLossRisk, v1alpha1.ReasonNewestMissing, "rss-db-2 may have data that no other member has: its container has ended"},
		{"a scale-down waits for the recorded newest copy", worldOf(setOf(3, 1), pod(0).idle().sequence("3"), pod(1).idle().sequence("3"), pod(2).born(time.Hour).pending(), replicas(2), recordedSequence("rss-db-2", "9"), lost(time.Hour)),
			v1alpha1.ConditionDataLossRisk, v1alpha1.ReasonNewestMissing, "no remaining member is known to have all data of rss-db-2, which had sequence 9"},
		{"a newer copy cannot be started", worldOf(setOf(3, 1), pod(0).idle().sequence("10").deleted(), pod(1).secondary().sequence("9"), pod(2).born(time.Hour).pending(), recordedSequence("rss-db-0", "10"), lost(9*time.Minute)),
			v1alpha1.ConditionDataLossRisk, v1alpha1.ReasonNewestMissing, "the newest available copy has sequence 9, but rss-db-0 had 10"},
		{"the sequence query of a secondary hangs", worldOf(setOf(3, 1), pod(0).looping(time.Hour), pod(1).secondary().sequence("9"), pod(2).secondary().hung(), lost(time.Hour)),
			v1alpha1.ConditionDataLossRisk, v1alpha1.ReasonSequenceUnknown, "rss-db-2"},
		{"a scale-down waits for a terminating member that may be primary", worldOf(setOf(3, 1), pod(0).secondary(), pod(1).secondary(), pod(2).primary().failures(1, "demote", 1, false).deleted(), replicas(2)),
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

func seedsFail(s *stage) { s.db.fails["rss-db-0 seed"], s.db.fails["rss-db-2 seed"] = 100, 100 }

// until runs the simulation until the condition is true.
func until(is func(*stage) bool) func(*stage) {
	return func(s *stage) {
		for range 3000 {
			s.look()
			s.pass()
			if is(s) {
				return
			}
			for _, m := range append(s.machines(), s.db.moves()...) {
				m()
			}
			s.Now = s.Now.Add(100 * time.Millisecond)
		}
		s.t.Fatal("the condition of the step was never true")
	}
}

func stopsWithProof(s *stage) bool {
	for _, c := range s.db.running {
		if c.Name == v1alpha1.CommandStop && c.Proven {
			return true
		}
	}
	return false
}

func TestScenariosOfCopiesElsewhere(t *testing.T) {
	for _, scenario := range []struct {
		name     string
		replicas int32
		wait     time.Duration
		steps    []func(*stage)
	}{
		{"two primaries crash at once", 2, 90 * time.Second, []func(*stage){write, together(slow("rss-db-2"), write, crash(0), crash(1)), write}},
		{"the member to remove and the primary crash", 1, 90 * time.Second, []func(*stage){write, together(slow("rss-db-1"), write, scaleTo(2), crash(0), crash(2)), write}},
		{"the primary ends after the member to remove was stopped", 1, 90 * time.Second, []func(*stage){write, together(slow("rss-db-1"), write, scaleTo(2),
			until(func(s *stage) bool { return s.db.containers["rss-db-2"].role == record.Idle }),
			func(s *stage) { s.db.containers["rss-db-0"].role = record.Idle }), write}},
		{"the newest member fails to start and is unschedulable", 1, 20 * time.Second, []func(*stage){write, together(slow("rss-db-1"), write, seedsFail, crash(0), crash(2), tellCrashes),
			together(deleted(0), deleted(2), nowhere("n1"), nowhere("n3")), func(s *stage) { s.Now = s.Now.Add(2 * time.Minute) }, write}},
		{"the successor lags while the old primary is being stopped", 1, 90 * time.Second, []func(*stage){write, switchTo(2), write,
			together(scaleTo(2), until(stopsWithProof), slow("rss-db-0"), write, crash(1), tellCrashes), write}},
	} {
		t.Run(scenario.name, func(t *testing.T) { play(t, setOf(3, scenario.replicas), scenario.wait, scenario.steps...) })
	}
}
