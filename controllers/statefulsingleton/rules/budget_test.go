package rules_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/fixture"
)

func TestBudgetOfASingleton(t *testing.T) {
	foreign := func(w *facts.World) {
		w.Budget = &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: "db.singleton", Namespace: "ns"}}
	}
	fixture.Check(t, []fixture.Row{
		{"S42 the holder gets a budget", fixture.WorldOf(fixture.Replacing(), fixture.Serving()), []string{makesBudget}},
		{"S42 the budget of the holder is kept", fixture.Budgeted(fixture.WorldOf(fixture.Replacing(), fixture.Serving())), nil},
		{"S42 the budget is kept while the holder is terminating", fixture.Budgeted(fixture.WorldOf(fixture.Replacing(), fixture.Serving().Deleted())), nil},
		{"S42 the budget is kept while a pod is returned to its ReplicaSet", fixture.Budgeted(fixture.WorldOf(fixture.Replacing(), fixture.Serving().Kin(func(f *facts.Family) { *f = facts.Family{} }).With(func(p *corev1.Pod) { p.OwnerReferences = nil }))), nil},
		{"S42 a changed budget is repaired", fixture.WorldWith(fixture.Budgeted(fixture.WorldOf(fixture.Replacing(), fixture.Serving())), func(w *facts.World) { w.Budget.Spec.MinAvailable = nil }), []string{"patch poddisruptionbudget db.singleton: Budget"}},
		{"S42 a budget of another client is not changed", fixture.WorldWith(fixture.WorldOf(fixture.Replacing(), fixture.Serving()), foreign), nil},
		{"S42 with Replace no budget is created", fixture.WorldOf(fixture.Held(), fixture.Serving()), nil},
		{"S42 the budget is deleted when onEviction is set to Replace", fixture.Budgeted(fixture.WorldOf(fixture.Held(), fixture.Serving())), []string{dropsBudget}},
		{"S42 the budget is deleted when the object is deleted", fixture.Budgeted(fixture.WorldOf(fixture.Held().Goes(), fixture.Serving(), fixture.Waiting("b").Of("web"))), []string{dropsBudget}},
		{"S45 the budget is deleted for strategy Recreate", fixture.Budgeted(fixture.WorldOf(fixture.Replacing(), fixture.Serving().Kin(func(f *facts.Family) { f.Rolls = false }))), []string{dropsBudget}},
	})
}
