package rules_test

import (
	"testing"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/children"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/spec"
)

func asItIs(*policyv1.PodDisruptionBudget) {}

func TestBudgets(t *testing.T) {
	one := fixture.Budgeted(fixture.Plain, intstr.FromInt32(1))
	canary, perOrdinal, coexist := v1alpha1.PhaseCanary, v1alpha1.HandoverPerOrdinal, v1alpha1.HandoverCoexist
	theirs := func(b *policyv1.PodDisruptionBudget) { b.OwnerReferences = nil }
	for _, row := range []fixture.Sentence{
		{"E40 no budget is created without podDisruptionBudget", fixture.Of(fixture.Plain()).Has(1, children.Span{Start: 0, Replicas: 3}), ""},
		{"E40 a budget is created with podDisruptionBudget", fixture.Of(one()).Has(1, children.Span{Start: 0, Replicas: 3}), "create poddisruptionbudget db: Budget\n"},
		{"a budget without changes is not written", fixture.Of(one()).Has(1, children.Span{Start: 0, Replicas: 3}).But(fixture.KeptBudget(asItIs)), ""},
		{"E40 an edit of minAvailable by another client is reverted",
			fixture.Of(one()).Has(1, children.Span{Start: 0, Replicas: 3}).But(fixture.KeptBudget(func(b *policyv1.PodDisruptionBudget) { b.Spec.MinAvailable = ptr.To(intstr.FromInt32(0)) })),
			"patch poddisruptionbudget db: Budget\n"},
		{"W3 an edit of other fields by another client is kept",
			fixture.Of(one()).Has(1, children.Span{Start: 0, Replicas: 3}).But(fixture.KeptBudget(func(b *policyv1.PodDisruptionBudget) {
				b.Spec.UnhealthyPodEvictionPolicy = ptr.To(policyv1.AlwaysAllow)
			})), ""},
		{"W11 pods with claims that are not Ready can always be evicted",
			fixture.Of(fixture.WithClaims(one())).Has(1, children.Span{Start: 0, Replicas: 3}).But(fixture.KeptBudget(func(b *policyv1.PodDisruptionBudget) { b.Spec.UnhealthyPodEvictionPolicy = nil })),
			"patch poddisruptionbudget db: Budget\n"},
		{"E41 with Coexist, pods of the new version do not count",
			fixture.Of(one()).Has(1, children.Span{Start: 0, Replicas: 3}).But(fixture.KeptBudget(asItIs)).Upgrading(canary, coexist).Has(2, children.Span{Start: 0, Replicas: 1}, 0), ""},
		{"E41 with PerOrdinal, pods of all versions count while ordinals move",
			fixture.Of(fixture.WithClaims(one())).Has(1, children.Span{Start: 0, Replicas: 2}).But(fixture.KeptBudget(asItIs)).Upgrading(canary, perOrdinal).Has(2, children.Span{Start: 2, Replicas: 1}, 2), "patch poddisruptionbudget db: Budget\n"},
		{"E40 a budget is deleted when podDisruptionBudget is removed",
			fixture.Of(one()).Has(1, children.Span{Start: 0, Replicas: 3}).But(fixture.KeptBudget(asItIs)).But(func(w *facts.World) { w.Set.Spec.PodDisruptionBudget = nil }), "delete poddisruptionbudget db: Budget\n"},
		{"E40 a budget of another owner is not changed", fixture.Of(one()).Has(1, children.Span{Start: 0, Replicas: 3}).But(fixture.KeptBudget(theirs)), ""},
		{"a budget of another owner is not deleted", fixture.Of(one()).Has(1, children.Span{Start: 0, Replicas: 3}).But(fixture.KeptBudget(theirs)).But(func(w *facts.World) { w.Set.Spec.PodDisruptionBudget = nil }), ""},
		{"a terminating budget is not changed",
			fixture.Of(one()).Has(1, children.Span{Start: 0, Replicas: 3}).But(fixture.KeptBudget(func(b *policyv1.PodDisruptionBudget) {
				b.DeletionTimestamp, b.Spec.MinAvailable = ptr.To(metav1.NewTime(fixture.Noon)), nil
			})), ""},
	} {
		t.Run(row.Name, func(t *testing.T) { fixture.CheckSentence(t, row) })
	}
}

// TestWhatABudgetKeeps verifies E41: how many of three pods, or of none, a budget keeps.
func TestWhatABudgetKeeps(t *testing.T) {
	least := func(v string) *v1alpha1.DisruptionBudget {
		return &v1alpha1.DisruptionBudget{MinAvailable: ptr.To(intstr.Parse(v))}
	}
	most := func(v string) *v1alpha1.DisruptionBudget {
		return &v1alpha1.DisruptionBudget{MaxUnavailable: ptr.To(intstr.Parse(v))}
	}
	for _, r := range []struct {
		name     string
		budget   *v1alpha1.DisruptionBudget
		replicas int32
		want     int32
	}{
		{"minAvailable as a number", least("2"), 3, 2}, {"a percentage, rounded up", least("50%"), 3, 2}, {"more than replicas", least("5"), 3, 5},
		{"maxUnavailable as a number", most("1"), 3, 2}, {"maxUnavailable as a percentage, rounded up", most("50%"), 3, 1}, {"maxUnavailable 0", most("0"), 3, 3},
		{"maxUnavailable above replicas", most("5"), 3, 0}, {"no replicas", most("1"), 0, 0}, {"an invalid value", most("many"), 3, 3},
		{"no value", &v1alpha1.DisruptionBudget{}, 3, 3},
	} {
		if got := spec.MinAvailableOf(r.budget, r.replicas); got != r.want {
			t.Errorf("E41 %s: %d, want %d", r.name, got, r.want)
		}
	}
}
