package rules_test

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/causes"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/rules"
)

// provenStop makes the first member the former primary, stopped with proof.
var provenStop = fixture.With(func(w *facts.World) {
	m := w.Members[0]
	r := m.Results[v1alpha1.CommandStop]
	r.Proven, w.LossOf = true, m.Pod.UID
	m.Results[v1alpha1.CommandStop] = r
})

// TestCopiesElsewhere tests that, while a secondary runs, newer data in members that do not run is
// considered.
func TestCopiesElsewhere(t *testing.T) {
	fixture.Check(t, []fixture.Row{
		{"no promotion right after several primaries crashed", fixture.WorldOf(fixture.SetOf(3, 2), fixture.Pod(0).Crashed(), fixture.Pod(1).Crashed(), fixture.Pod(2).Secondary().Sequence("9"), fixture.Lost(15*time.Second)), nil},
		{"wait for a member to remove that crashed with the primary", fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Crashed(), fixture.Pod(1).Secondary().Sequence("9"), fixture.Pod(2).Crashed(), fixture.Lost(15*time.Second), fixture.Replicas(2)), nil},
		{"wait for wanted members although members to remove run", fixture.WorldOf(fixture.SetOf(5, 1), fixture.Pod(0).Crashed(), fixture.Pod(1).Crashed(), fixture.Pod(2).Crashed(), fixture.Pod(3).Secondary().Sequence("9"), fixture.Pod(4).Secondary().Sequence("9"), fixture.Lost(15*time.Second), fixture.Replicas(3)), nil},
		{"query a terminating member that still runs", fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Idle().Sequence("9"), fixture.Pod(1).Secondary().Sequence("9"), fixture.Pod(2).Secondary().Deleted(), fixture.Lost(15*time.Second)), []string{"2 asked sequence"}},
		{"wait for a member that is being stopped", fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Looping(time.Second), fixture.Pod(1).Secondary().Sequence("9"), fixture.Pod(2).WithRuns("stop", time.Second), fixture.Lost(15*time.Second)), nil},
		{"wait for a member whose container restarts soon", fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Looping(8*time.Second), fixture.Pod(1).Secondary().Sequence("9"), fixture.Pod(2).Looping(8*time.Second), fixture.Lost(15*time.Second)), nil},
		{"RS-40 promote without waiting for a member in an old crash loop", fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Looping(time.Hour), fixture.Pod(1).Secondary().Sequence("9"), fixture.Pod(2).Idle().Sequence("9"), fixture.Lost(15*time.Second)), []string{"1: Promote, alone"}},
		{"among equal sequences, seed a member that can be started", fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Idle().Sequence("10").Deleted(), fixture.Pod(1).Secondary().Sequence("9"), fixture.Pod(2).Idle().Sequence("10"), fixture.Lost(15*time.Second)), []string{"2: Seed, alone"}},
		{"no promotion when the proof is of an older stop", fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Changed("stop", time.Hour).Changed("promote", 50*time.Minute).Idle().Sequence("10"), fixture.Pod(1).Secondary().Sequence("9"), fixture.Pod(2).Crashed(), provenStop, fixture.Lost(11*time.Second)), nil},
		{"query the former primary after a stop without proof", fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Changed("stop", 12*time.Second).Idle(), fixture.Pod(1).Secondary().Sequence("8"), fixture.Pod(2).Pending().Born(time.Hour), fixture.LastStopped, fixture.Lost(11*time.Second)),
			[]string{"0 asked sequence"}},
		{"seed the former primary when the successor is older", fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Changed("stop", 12*time.Second).Idle().Sequence("9"), fixture.Pod(1).Secondary().Sequence("8"), fixture.Pod(2).Pending().Born(time.Hour), fixture.LastStopped, fixture.Lost(11*time.Second)),
			[]string{"0: Seed, alone"}},
		{"no promotion of a successor that is older than the former primary", fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Changed("stop", 12*time.Second).Idle().Sequence("10"), fixture.Pod(1).Secondary().Sequence("9"), fixture.Pod(2).Crashed(), provenStop, fixture.Lost(11*time.Second)), nil},
		{"promote although the sequence query of an idle member hangs", fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Crashed(), fixture.Pod(1).Secondary().Sequence("9"), fixture.Pod(2).Idle().Hung(), fixture.Lost(time.Hour)), []string{"1: Promote, alone"}},
		{"start a secondary although the sequence query of another member hangs", fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Primary(), fixture.Pod(1).Idle().Sequence("9"), fixture.Pod(2).Idle().Hung()), []string{"1: Secondary, with 0"}},
	})
}

// TestAPersonInTheDark tests decisions by users while no member is primary.
func TestAPersonInTheDark(t *testing.T) {
	noClaims := fixture.SetOf(3, 1)
	noClaims.Spec.Pod.VolumeClaimTemplates = nil
	never := noClaims.DeepCopy()
	noClaims.Status.Epoch = 3
	again := func(i int) *fixture.PodFixture {
		return fixture.Pod(i).Looping(time.Second).Crashes(causes.CrashesInVain).Outdated()
	}
	const renewed = "delete pod 2: Renew, its template is outdated, and it has no running member"
	fixture.Check(t, []fixture.Row{
		{"keep an outdated pod without a claim while its container restarts", fixture.WorldOf(noClaims, fixture.Pod(0).Crashed().Outdated(), fixture.Pod(1).Crashed().Outdated(), fixture.Pod(2).Crashed().Outdated()), nil},
		{"recreate an outdated pod without a claim whose container restarts repeatedly", fixture.WorldOf(noClaims, fixture.Pod(0).Looping(2*time.Minute).Outdated(), fixture.Pod(1).Looping(2*time.Minute).Outdated(), fixture.Pod(2).Looping(2*time.Minute).Outdated()), []string{renewed}},
		{"W7 recreate an outdated pod without a claim in a crash loop", fixture.WorldOf(noClaims, again(0), again(1), again(2)), []string{renewed}},
		{"W7 recreate an outdated pod without a claim when no member has served yet", fixture.WorldOf(never, fixture.Pod(0).Crashed().Outdated(), fixture.Pod(1).Crashed().Outdated(), fixture.Pod(2).Crashed().Outdated()), []string{renewed}},
		{"recreate an outdated pod with a claim", fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Crashed().Outdated(), fixture.Pod(1).Crashed().Outdated(), fixture.Pod(2).Crashed().Outdated()), []string{renewed}},
		{"seed-from waits until the status of all members was queried", fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Idle().Sequence("9"), fixture.Pod(1), fixture.Pod(2).Idle().Sequence("9"), fixture.Annotated(v1alpha1.AnnotationSeedFrom, "rss-db-0")), []string{"1 asked status"}},
		{"seed-from does not wait for a member without a status response", fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Idle().Sequence("9"), fixture.Pod(1).WithSilent(4), fixture.Pod(2).Idle().Sequence("9"), fixture.Annotated(v1alpha1.AnnotationSeedFrom, "rss-db-0")), []string{"0: Seed, alone"}},
		{"switchover-to is refused with the reason", fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Secondary().Sequence("9"), fixture.Pod(1).Secondary().Sequence("9"), fixture.Pod(2).Born(time.Hour).Pending(), fixture.Lost(15*time.Second), fixture.Annotated(v1alpha1.AnnotationSwitchoverTo, "rss-db-2")),
			[]string{"patch replicatedstatefulset db: Refused, 2 was not promoted: it is not running as secondary. The former primary was already stopped or demoted for it; promoting 0"}},
	})
}

func TestW12TheFormerPrimaryIsCompared(t *testing.T) {
	ends := func() *fixture.PodFixture { return fixture.Pod(0).Looping(8 * time.Second) }
	fixture.Check(t, []fixture.Row{
		{"W12 promote a secondary by default", fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Idle(), fixture.Pod(1).Secondary().Sequence("9"), fixture.Pod(2).Secondary().Sequence("8"), fixture.Lost(15*time.Second)), []string{"1: Promote, alone"}},
		{"W12 IfNewest: query the sequence of the former primary", fixture.WorldOf(fixture.Restarting(fixture.SetOf(3, 1)), fixture.Pod(0).Idle(), fixture.Pod(1).Secondary().Sequence("9"), fixture.Pod(2).Secondary().Sequence("8"), fixture.Lost(15*time.Second)), []string{"0 asked sequence"}},
		{"W12 IfNewest: seed the former primary when it is newer", fixture.WorldOf(fixture.Restarting(fixture.SetOf(3, 1)), fixture.Pod(0).Idle().Sequence("10"), fixture.Pod(1).Secondary().Sequence("9"), fixture.Pod(2).Secondary().Sequence("8"), fixture.Lost(15*time.Second)), []string{"0: Seed, alone"}},
		{"W12 IfNewest: promote a secondary that is as new as the former primary", fixture.WorldOf(fixture.Restarting(fixture.SetOf(3, 1)), fixture.Pod(0).Idle().Sequence("9"), fixture.Pod(1).Secondary().Sequence("9"), fixture.Pod(2).Secondary().Sequence("8"), fixture.Lost(15*time.Second)), []string{"1: Promote, alone"}},
		{"W12 IfNewest: stop the failed former primary first", fixture.WorldOf(fixture.Restarting(fixture.SetOf(3, 1)), fixture.Pod(0).Status(1), fixture.Pod(1).Secondary().Sequence("9"), fixture.Pod(2).Secondary().Sequence("8"), fixture.Lost(15*time.Second)), []string{"0: Stop, alone"}},
		{"W12 IfNewest: wait for the container of the former primary", fixture.WorldOf(fixture.Restarting(fixture.SetOf(3, 1)), ends(), fixture.Pod(1).Secondary().Sequence("9"), fixture.Pod(2).Secondary().Sequence("8"), fixture.Lost(15*time.Second)), nil},
		{"W12 IfNewest: wait for the pod of the former primary", fixture.WorldOf(fixture.Restarting(fixture.SetOf(3, 1)), fixture.Pod(1).Secondary().Sequence("9"), fixture.Pod(2).Secondary().Sequence("8"), fixture.Lost(15*time.Second)), nil},
		{"W12 IfNewest: promote a secondary after waiting a minute for the former primary", fixture.WorldOf(fixture.Restarting(fixture.SetOf(3, 1)), ends(), fixture.Pod(1).Secondary().Sequence("9"), fixture.Pod(2).Secondary().Sequence("8")), []string{"1: Promote, alone"}},
		{"W12 IfNewest: promote a secondary after a handover", fixture.WorldOf(fixture.Restarting(fixture.SetOf(3, 1)), fixture.Pod(0).Changed("stop", 12*time.Second).Idle(), fixture.Pod(1).Secondary().Sequence("9"), fixture.Pod(2).Secondary().Sequence("8"), provenStop, fixture.Lost(11*time.Second)), []string{"1: Promote, alone"}},
		{"W12 IfNewest: no promotion of an older copy when the former primary cannot be started", fixture.WorldOf(fixture.Restarting(fixture.SetOf(3, 1)), fixture.Pod(0).Idle().Sequence("10").Failures(1, "seed", 5, false), fixture.Pod(1).Secondary().Sequence("9"), fixture.Pod(2).Secondary().Sequence("8"), fixture.RecordedSequence("rss-db-0", "10"), fixture.Lost(15*time.Second)), nil},
	})
}

// TestRS155TheLossIsLimited tests that with spec.failover.maxLoss no secondary is promoted if that could
// lose more.
func TestRS155TheLossIsLimited(t *testing.T) {
	of := func(limit int64) *v1alpha1.ReplicatedStatefulSet {
		return fixture.LosingAtMost(limit, fixture.SetOf(3, 1))
	}
	first, second := func() *fixture.PodFixture { return fixture.Pod(1).Secondary().Sequence("9") }, func() *fixture.PodFixture { return fixture.Pod(2).Secondary().Sequence("8") }
	recently, longAgo := fixture.Lost(15*time.Second), fixture.Lost(time.Hour)
	was := fixture.With(func(w *facts.World) { w.LossOf, w.LossPod = w.Members[0].Pod.UID, w.Members[0].Name() })
	gone := fixture.With(func(w *facts.World) { w.LossOf, w.LossPod = "gone", "rss-db-0" })
	ends := func() *fixture.PodFixture { return fixture.Pod(0).Looping(8 * time.Second) }
	stopped := fixture.Pod(0).Changed("stop", 12*time.Second).Idle()
	fixture.Check(t, []fixture.Row{
		{"ask the former primary", fixture.WorldOf(of(5), fixture.Pod(0).Idle(), first(), second(), recently, was), []string{"0 asked sequence"}},
		{"promote a secondary within the limit", fixture.WorldOf(of(5), fixture.Pod(0).Idle().Sequence("14"), first(), second(), recently, was), []string{"1: Promote, alone"}},
		{"start the former primary beyond the limit", fixture.WorldOf(of(5), fixture.Pod(0).Idle().Sequence("15"), first(), second(), recently, was), []string{"0: Seed, alone"}},
		{"a limit of 0", fixture.WorldOf(of(0), fixture.Pod(0).Idle().Sequence("10"), first(), second(), recently, was), []string{"0: Seed, alone"}},
		{"wait without a limit of time", fixture.WorldOf(of(5), ends(), first(), second(), longAgo, was), nil},
		{"wait for a pod that does not exist", fixture.WorldOf(of(5), first(), second(), longAgo, gone), nil},
		{"a copy without data does not count", fixture.WorldOf(of(5), fixture.Pod(0).Idle().Sequence("0"), first(), second(), longAgo, gone), nil},
		{"another operator has seen the loss", fixture.WorldOf(of(5), fixture.Pod(0).Idle().Sequence("10"), first(), second(), longAgo), []string{"1: Promote, alone"}},
		{"another operator has seen the loss, and one copy is unknown", fixture.WorldOf(of(5), fixture.Pod(0).Idle().Sequence("10"), first(), longAgo), nil},
		{"a third member is missing", fixture.WorldOf(of(5), fixture.Pod(0).Idle().Sequence("10"), first(), longAgo, was), []string{"1: Promote, alone"}},
		{"a number on record within the limit", fixture.WorldOf(of(5), fixture.Pod(0).Idle().Sequence("12"), first(), second(), fixture.RecordedSequence("rss-db-0", "12"), recently, was), []string{"1: Promote, alone"}},
		{"a number on record beyond the limit", fixture.WorldOf(of(5), ends(), first(), second(), fixture.RecordedSequence("rss-db-0", "15"), recently, was), nil},
		{"a number beyond the limit in a member on a lost node", fixture.WorldOf(of(5), fixture.Pod(0).Sequence("1000").OnNode(fixture.Off), first(), second(), recently, was), nil},
		{"a copy without data in the same pod", fixture.WorldOf(of(5), fixture.Pod(0).Idle().Sequence("0"), first(), second(), recently, was), []string{"1: Promote, alone"}},
		{"no copy has data", fixture.WorldOf(of(5), fixture.Pod(0).Idle().Sequence("0"), fixture.Pod(1).Secondary().Sequence("0"), fixture.Pod(2).Secondary().Sequence("0"), recently, gone), []string{"1: Promote, alone"}},
		{"another operator has seen the loss, and a member to remove is unknown", fixture.WorldOf(of(5), fixture.Pod(0).Secondary().Sequence("9"), fixture.Pod(1).Secondary().Sequence("9"), fixture.Pod(2).Looping(8*time.Second), longAgo, fixture.Replicas(2)), nil},
		{"the former primary is not recreated before it is compared", fixture.WorldOf(of(5), fixture.Pod(0).Changed("stop", 12*time.Second).Idle().Outdated(), first(), second(), provenStop, fixture.Lost(11*time.Second), was), []string{"1: Promote, alone"}},
		{"after a handover", fixture.WorldOf(of(5), stopped, first(), second(), provenStop, fixture.Lost(11*time.Second)), []string{"1: Promote, alone"}},
		{"seed-from", fixture.WorldOf(of(5), ends(), first(), second(), longAgo, was, fixture.Annotated(v1alpha1.AnnotationSeedFrom, "rss-db-1")), []string{"1: Promote, alone"}},
	})
	p := rules.Decide(fixture.WorldOf(of(5), ends(), first(), second(), longAgo, was))
	if want := "data version unknown for rss-db-0, so the loss of a failover could exceed spec.failover.maxLoss"; p.Waiting.Message != want || p.SequenceUnknown != "rss-db-0" {
		t.Errorf("the plan waits because %q (%s), want %q", p.Waiting.Message, p.SequenceUnknown, want)
	}
	p = rules.Decide(fixture.WorldOf(of(5), fixture.With(func(w *facts.World) { w.Set.Status.Epoch = 3 }), fixture.Pod(0).Idle().Sequence("14"), first(), second(), recently, was))
	if !strings.HasSuffix(p.Uncompared, "The sequence of rss-db-0 was 14: data that only its copy had is lost. This does not exceed spec.failover.maxLoss") {
		t.Errorf("the loss is reported as %q", p.Uncompared)
	}
}

func TestW12ACopyThatWasNotComparedIsTold(t *testing.T) {
	third := fixture.With(func(w *facts.World) { w.Set.Status.Epoch = 3 })
	lastWas := fixture.With(func(w *facts.World) { w.LossOf, w.LossPod = w.Members[0].Pod.UID, w.Members[0].Name() })
	told := "epoch 4: rss-db-1 was promoted with sequence 9. The sequence of rss-db-0 was not read, and may have been higher: data that only its copy had is lost. " +
		"To compare that copy before a promotion, set spec.failover.restartPrimary to IfNewest"
	toldBefore := fixture.With(func(w *facts.World) {
		meta.SetStatusCondition(&w.Set.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionDataLossRisk, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonPrimaryNotCompared, Message: told})
	})
	for _, r := range []struct {
		name  string
		world *facts.World
		want  string
	}{
		{"the former primary was killed", fixture.WorldOf(fixture.SetOf(3, 1), third, fixture.Pod(0).Idle(), fixture.Pod(1).Secondary().Sequence("9"), fixture.Pod(2).Secondary().Sequence("8"), fixture.Lost(15*time.Second), lastWas), told},
		{"the former primary was killed, and its sequence is known", fixture.WorldOf(fixture.SetOf(3, 1), third, fixture.Pod(0).Idle().Sequence("12"), fixture.Pod(1).Secondary().Sequence("9"), fixture.Pod(2).Secondary().Sequence("8"), fixture.Lost(15*time.Second), lastWas),
			strings.Replace(told, "was not read, and may have been higher", "was 12", 1)},
		{"the former primary is not newer", fixture.WorldOf(fixture.SetOf(3, 1), third, fixture.Pod(0).Idle().Sequence("9"), fixture.Pod(1).Secondary().Sequence("9"), fixture.Pod(2).Secondary().Sequence("8"), fixture.Lost(15*time.Second), lastWas), ""},
		{"the pod of the former primary was recreated", fixture.WorldOf(fixture.SetOf(3, 1), third, fixture.Pod(0).Pending(), fixture.Pod(1).Secondary().Sequence("9"), fixture.Pod(2).Secondary().Sequence("8"), fixture.Lost(15*time.Second), lastWas,
			fixture.With(func(w *facts.World) { w.LossOf = "gone" })), told},
		{"the role was handed over", fixture.WorldOf(fixture.SetOf(3, 1), third, fixture.Pod(0).Changed("stop", 12*time.Second).Idle(), fixture.Pod(1).Secondary().Sequence("9"), fixture.Pod(2).Secondary().Sequence("8"), provenStop, fixture.Lost(11*time.Second)), ""},
		{"the role was handed over, and the pod of the former primary was recreated before the promotion", fixture.WorldOf(fixture.SetOf(3, 1), third, fixture.Pod(0).Pending(), fixture.Pod(1).Secondary().Sequence("9"), fixture.Pod(2).Secondary().Sequence("8"), fixture.Lost(11*time.Second), lastWas,
			fixture.With(func(w *facts.World) { w.LossOf, w.LossProven = "gone", true })), ""},
		{"the role was handed over, but the recreated pod of the former primary is newer", fixture.WorldOf(fixture.SetOf(3, 1), third, fixture.Pod(0).Idle().Sequence("12"), fixture.Pod(1).Secondary().Sequence("9"), fixture.Pod(2).Secondary().Sequence("8"), fixture.Lost(15*time.Second), lastWas,
			fixture.With(func(w *facts.World) { w.LossOf, w.LossProven = "gone", true })), strings.Replace(told, "was not read, and may have been higher", "was 12", 1)},
		{"the former primary was demoted and compared", fixture.WorldOf(fixture.SetOf(3, 1), third, fixture.Pod(0).Secondary().Sequence("9"), fixture.Pod(1).Secondary().Sequence("9"), fixture.Pod(2).Secondary().Sequence("8"), fixture.Lost(15*time.Second)), ""},
		{"the first primary of the set", fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Pending(), fixture.Pod(1).Secondary().Sequence("9"), fixture.Pod(2).Secondary().Sequence("8"), fixture.Lost(15*time.Minute)), ""},
		{"the promoted primary still runs", fixture.WorldOf(fixture.SetOf(2, 1), fixture.With(func(w *facts.World) { w.Set.Status.Epoch = 4 }), fixture.Pod(0).Secondary(), fixture.Pod(1).Primary(), toldBefore), told},
		{"a later primary runs", fixture.WorldOf(fixture.SetOf(2, 1), fixture.With(func(w *facts.World) { w.Set.Status.Epoch = 5 }), fixture.Pod(0).Secondary(), fixture.Pod(1).Primary(), toldBefore), ""},
	} {
		c := fixture.ConditionOf(t, r.world, v1alpha1.ConditionDataLossRisk)
		reason, want := v1alpha1.ReasonPrimaryNotCompared, r.want
		if want == "" {
			reason, want = v1alpha1.ReasonNewestPresent, "the newest known data is available"
		}
		if c.Status != metav1.ConditionFalse || c.Reason != reason || c.Message != want {
			t.Errorf("%s: %s %s, %q, want %s, %q", r.name, c.Status, c.Reason, c.Message, reason, want)
		}
	}
}
