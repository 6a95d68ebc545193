package rules_test

import (
	"strings"
	"testing"

	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/rules"
)

// TestHandoverWritesTheBudget tests that a handover writes the closed budget even if it is closed
// already. So the pending write of another operator that froze before it opened the budget fails.
// It is written once only; otherwise a label that cannot be written would cause a write in each
// pass.
func TestHandoverWritesTheBudget(t *testing.T) {
	leaving, ready := fixture.Pod(0).Primary().Cordoned().Sequence("9"), fixture.Pod(1).Secondary().Later("9")
	byUs := fixture.With(func(w *facts.World) { w.ClosedAt = "before" })
	for _, r := range []struct {
		name     string
		world    *facts.World
		closedAt string
		writes   bool
	}{
		{"RS-67 an open budget is closed", fixture.WorldOf(fixture.SetOf(2, 1), leaving, ready), "", true},
		{"RS-67 a closed budget without a time is written", fixture.ShutWorld(leaving, ready), "", true},
		{"RS-67 a budget that another process closed is written", fixture.ShutWorld(leaving, ready), "before", true},
		{"RS-67 a budget that another process closed after this one is written", fixture.ShutWorld(leaving, ready, byUs), "later", true},
		{"RS-67 a budget that this process closed is not written again", fixture.ShutWorld(leaving, ready, byUs), "before", false},
	} {
		t.Run(r.name, func(t *testing.T) {
			r.world.Budget.Annotations = map[string]string{v1alpha1.AnnotationClosedAt: r.closedAt}
			chain := handedOver(t, r.world)
			b, writes := chain[0].Object.(*policyv1.PodDisruptionBudget)
			if writes != r.writes {
				t.Fatalf("the chain begins with %s", chain[0])
			}
			before := r.world.Budget
			if writes && (!chain[0].Unchanged || fixture.BudgetSays(b) != "maxUnavailable 0, NotIn [primary]" || b.ResourceVersion != before.ResourceVersion ||
				b.Annotations[v1alpha1.AnnotationClosedAt] == before.Annotations[v1alpha1.AnnotationClosedAt]) {
				t.Errorf("written is %s: %+v", fixture.BudgetSays(b), b.Annotations)
			}
		})
	}
}

// TestHandoverNeedsAClosedBudget tests that, if a policy of the cluster changes the closed budget,
// the label stays and no command is sent: the rest of the chain is not run.
func TestHandoverNeedsAClosedBudget(t *testing.T) {
	chain := handedOver(t, fixture.WorldOf(fixture.SetOf(2, 1), fixture.Pod(0).Primary().Cordoned().Sequence("9"), fixture.Pod(1).Secondary().Later("9")))
	verify := chain[0].Verify
	if chain[0].Reason != facts.ReasonBudget || verify == nil {
		t.Fatalf("RS-67 the chain begins with %s, and does not verify the response", chain[0])
	}
	for _, r := range []struct {
		name string
		most *intstr.IntOrString
		ends bool
	}{
		{"RS-67 a closed budget", ptr.To(intstr.FromInt32(0)), false},
		{"RS-67 a budget that a policy opened", ptr.To(intstr.FromInt32(1)), true},
		{"RS-67 a budget without a number after a policy", nil, true},
	} {
		answer := chain[0].Object.DeepCopyObject().(*policyv1.PodDisruptionBudget)
		answer.Spec.MaxUnavailable = r.most
		if err := verify(answer); (err != nil) != r.ends {
			t.Errorf("%s: %v", r.name, err)
		}
	}
}

// TestHandoverBeginsWithATrueLabel tests that a primary with a wrong label gets the primary label
// first, because the chain of a handover begins with a primary that has clients.
func TestHandoverBeginsWithATrueLabel(t *testing.T) {
	p := rules.Decide(fixture.ShutWorld(fixture.Pod(0).Primary().Cordoned().Sequence("9").Labelled("secondary"), fixture.Pod(1).Secondary().Later("9")))
	if lines := strings.Join(p.Steps.Strings(), "\n"); strings.Contains(lines, "exec") || !strings.Contains(lines, "patch pod rss-db-0: Role, primary") {
		t.Errorf("RS-67 the plan is\n%s", lines)
	}
}
