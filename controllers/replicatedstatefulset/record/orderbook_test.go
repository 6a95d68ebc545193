package record_test

import (
	"strings"
	"testing"
	"time"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podexec"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/rules"
)

// writtenBefore returns the orders in the status that is written before a command of the plan is
// sent.
func writtenBefore(t *testing.T, p *rules.Plan, command string) []v1alpha1.OrderStatus {
	t.Helper()
	var last []v1alpha1.OrderStatus
	for _, step := range p.Steps {
		for _, chain := range step {
			for _, a := range chain {
				if a.Verb == action.PatchStatus {
					last = a.Object.(*v1alpha1.ReplicatedStatefulSet).Status.Orders
				}
				if a.Verb == action.Exec && a.Command.Name == command {
					return last
				}
			}
		}
	}
	t.Fatalf("no %s is sent in\n%s", command, strings.Join(p.Steps.Strings(), "\n"))
	return nil
}

// TestOrdersAreBegunOnRecord tests RS-102: the write that precedes the first command of an order
// records that the order was started.
func TestOrdersAreBegunOnRecord(t *testing.T) {
	demotes := rules.Decide(fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Primary().Answered("sequence", podexec.Succeeded, 0, "9", 8*time.Second), fixture.Pod(1).Secondary().Sequence("9"), fixture.Pod(2).Secondary().Sequence("9"),
		fixture.SwitchingTo("rss-db-1", v1alpha1.OrderWaiting)))
	got := writtenBefore(t, &demotes, v1alpha1.CommandDemote)
	if len(got) != 1 || got[0].Result != v1alpha1.OrderStarted || got[0].From != "rss-db-0" || got[0].GrantedAt == nil || !got[0].Time.Time.Equal(fixture.Noon) {
		t.Errorf("the orders that are recorded before the demotion are %+v", got)
	}
	seeds := rules.Decide(fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Idle().Sequence("x"), fixture.Pod(1).Idle(), fixture.Pod(2).Pending(), fixture.SeedingFrom("rss-db-1", v1alpha1.OrderWaiting)))
	if got = writtenBefore(t, &seeds, v1alpha1.CommandSeed); len(got) != 1 || got[0].Result != v1alpha1.OrderStarted {
		t.Errorf("the orders that are recorded before the seed are %+v", got)
	}
}
