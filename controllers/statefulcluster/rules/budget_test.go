package rules_test

import (
	"testing"

	policyv1 "k8s.io/api/policy/v1"

	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/children"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/fixture"
)

// SC-43 The budget allows no eviction of a Ready member, even while the set has an additional
// member.
func TestTheBudgetOfASetThatReplacesFirst(t *testing.T) {
	budget := func(things ...fixture.Thing) policyv1.PodDisruptionBudgetSpec {
		w := fixture.Seen(fixture.Replacing(), append(things, fixture.With(func(w *facts.World) { w.Budget = nil }))...)
		return fixture.FirstWritten(w).(*policyv1.PodDisruptionBudget).Spec
	}
	if b := budget(fixture.A(), fixture.B(), fixture.C()); b.MaxUnavailable != nil || b.MinAvailable.IntValue() != 3 {
		t.Errorf("SC-43 the budget of a set at rest is %v", b)
	}
	if b := budget(fixture.LeavingA(), fixture.B(), fixture.C(), fixture.Starting("d")); b.MaxUnavailable != nil || b.MinAvailable.IntValue() != 4 {
		t.Errorf("SC-43 the budget during a drain is %v", b)
	}
	fixture.Check(t, []fixture.Row{{Name: "SC-43 the budget changes when onEviction changes to ReplaceFirst", World: fixture.Seen(fixture.Replacing(), fixture.A(), fixture.B(), fixture.C(),
		fixture.With(func(w *facts.World) { w.Budget = children.BuildBudget(fixture.Seen(fixture.Set("db")).Settings, 3) })), Want: []string{"patch poddisruptionbudget db: Budget"}}})
}
