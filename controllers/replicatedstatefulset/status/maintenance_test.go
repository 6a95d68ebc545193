package status_test

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/rules"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/status"
)

// TestMaintenance tests that the conditions list the parked members, what parking means, and how to
// end it.
func TestMaintenance(t *testing.T) {
	const end = "kubectl -n ns patch rss db --type=merge -p '{\"spec\":{\"maintenance\":null}}'"
	leaving := func() *fixture.PodFixture { return fixture.Pod(0).Primary().Sequence("9") }
	for _, r := range []struct {
		name         string
		world        *facts.World
		kind, reason string
		says         []string
	}{
		{"no member is listed", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).Primary(), fixture.Pod(1).Secondary()), v1alpha1.ConditionMaintenance, v1alpha1.ReasonNoMaintenance, nil},
		{"RS-92 a member is parked", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).Primary(), fixture.Pod(1).Idle(), fixture.ParkedNow(1)), v1alpha1.ConditionMaintenance, v1alpha1.ReasonParked, []string{"parked: rss-db-1; they get no command except status and sequence", end}},
		{"RS-92 a listed member has no pod yet", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).Primary(), fixture.Pod(1).Secondary(), fixture.ParkedNow(7)), v1alpha1.ConditionMaintenance, v1alpha1.ReasonNoSuchMember, []string{"without a pod, and parked when it is created: rss-db-7", end}},
		{"RS-92 a listed member belongs to another set", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).Primary(), fixture.Pod(1).Secondary(), fixture.With(func(w *facts.World) { w.Set.Spec.Maintenance = []string{"rss-db-1-0"} })), v1alpha1.ConditionMaintenance, v1alpha1.ReasonNoSuchMember, []string{"no member of this set can have the name rss-db-1-0; correct it", end}},
		{"RS-92 a listed primary waits for a successor", fixture.WorldOf(fixture.SetOf(2, 1), leaving(), fixture.Pod(1).Secondary().Sequence("8"), fixture.ToBeParked(0)), v1alpha1.ConditionMaintenance, v1alpha1.ReasonHandingOver,
			[]string{"rss-db-0 is primary and will be parked when another member has its role: waiting for rss-db-1 to catch up with rss-db-0"}},
		{"RS-92 a listed primary waits for the end of its demote", fixture.WorldOf(fixture.SetOf(2, 1), leaving().WithRuns("demote", time.Second), fixture.Pod(1).Secondary(), fixture.ToBeParked(0), fixture.With(func(w *facts.World) { w.Set.Status.Members.Primary = []string{"rss-db-0"} })), v1alpha1.ConditionMaintenance, v1alpha1.ReasonHandingOver,
			[]string{"rss-db-0 is primary and will be parked when another member has its role: waiting for command demote"}},
		{"RS-92 Progressing is True while a listed primary waits", fixture.WorldOf(fixture.SetOf(2, 1), leaving(), fixture.Pod(1).Secondary().Sequence("8"), fixture.ToBeParked(0)), v1alpha1.ConditionProgressing, v1alpha1.ReasonHandingOver, nil},
		{"RS-92 all possible successors are parked", fixture.WorldOf(fixture.SetOf(2, 1), leaving(), fixture.Pod(1).Idle(), fixture.ToBeParked(0), fixture.ParkedNow(1)), v1alpha1.ConditionMaintenance, v1alpha1.ReasonNoSuccessor,
			[]string{"rss-db-1 (it is in spec.maintenance)", "parked: rss-db-1", "{\"spec\":{\"paused\":true}}"}},
		{"RS-92 a listed primary is the only member", fixture.WorldOf(fixture.SetOf(1, 1), leaving(), fixture.ToBeParked(0)), v1alpha1.ConditionMaintenance, v1alpha1.ReasonNoSuccessor, []string{"it has no secondary, so no other member has its data"}},
		{"RS-92 a listed member waits for the end of a command", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).Primary(), fixture.Pod(1).Idle().WithRuns("secondary", time.Second), fixture.Listed(1)), v1alpha1.ConditionMaintenance, v1alpha1.ReasonWaitingForCommand, []string{"rss-db-1 will be parked when its command has ended"}},
		{"RS-92 the set is Ready while a failed secondary is parked", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).Primary(), fixture.Pod(1).Status(1), fixture.ParkedNow(1)), v1alpha1.ConditionReady, v1alpha1.ReasonOnTarget, nil},
		{"the set is Ready while one of three primaries is parked", fixture.WorldOf(fixture.SetOf(3, 3), fixture.Pod(0).Primary(), fixture.Pod(1).Primary(), fixture.Pod(2).Idle(), fixture.ParkedNow(2)), v1alpha1.ConditionReady, v1alpha1.ReasonOnTarget, nil},
		{"the set is not Available without a primary", fixture.WorldOf(fixture.SetOf(2, 2), fixture.Pod(0).Idle(), fixture.Pod(1).Idle(), fixture.ParkedNow(0), fixture.ParkedNow(1)), v1alpha1.ConditionAvailable, v1alpha1.ReasonBelowTarget, nil},
		{"Degraded does not report a parked member", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).Primary(), fixture.Pod(1).WithSilent(9), fixture.ParkedNow(1)), v1alpha1.ConditionDegraded, v1alpha1.ReasonHealthy, nil},
		{"RS-91 a failover waits for the copy of a parked secondary", fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Crashed(), fixture.Pod(1).Secondary().Later("9"), fixture.Pod(2).Secondary().Later("10"), fixture.ParkedNow(2)), v1alpha1.ConditionDataLossRisk, v1alpha1.ReasonNewestMissing,
			[]string{"rss-db-2 has the newest copy, sequence 10, and is in spec.maintenance"}},
		{"RS-91 a failover waits for the recorded copy of a parked member", fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Crashed(), fixture.Pod(1).Secondary().Later("9"), fixture.Pod(2).Idle(), fixture.ParkedNow(2), fixture.RecordedSequence("rss-db-2", "10")), v1alpha1.ConditionDataLossRisk, v1alpha1.ReasonNewestMissing,
			[]string{"rss-db-2 had 10 and is in spec.maintenance"}},
		{"RS-91 a seed waits for the copy of a parked member", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).Idle().Sequence("9"), fixture.Pod(1).Idle().Sequence("10"), fixture.ParkedNow(1)), v1alpha1.ConditionDataLossRisk, v1alpha1.ReasonNewestMissing, []string{"is in spec.maintenance"}},
		{"RS-89 a scale-down waits for a parked member", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).Primary(), fixture.Pod(1).Idle(), fixture.ParkedNow(1), fixture.Replicas(1)), v1alpha1.ConditionProgressing, v1alpha1.ReasonScaling, []string{"spec.maintenance: rss-db-1"}},
		{"RS-89 an update waits for a parked member", fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).Primary(), fixture.Pod(1).Idle().Outdated(), fixture.ParkedNow(1)), v1alpha1.ConditionProgressing, v1alpha1.ReasonUpdating, []string{"members in spec.maintenance: rss-db-1"}},
	} {
		t.Run(r.name, func(t *testing.T) {
			p := rules.Decide(r.world)
			c := meta.FindStatusCondition(status.Summarize(&p).Conditions, r.kind)
			if c == nil || c.Reason != r.reason {
				t.Fatalf("the condition is %+v", c)
			}
			for _, text := range r.says {
				if !strings.Contains(c.Message, text) {
					t.Errorf("the message lacks %q: %s", text, c.Message)
				}
			}
			if r.kind == v1alpha1.ConditionMaintenance && (c.Status == metav1.ConditionTrue) == (r.reason == v1alpha1.ReasonNoMaintenance) {
				t.Errorf("the condition is %s", c.Status)
			}
		})
	}
}
