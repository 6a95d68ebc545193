package extendedstatefulset

import (
	"testing"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/children"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/rules"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/spec"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/status"
)

// keptBudget adds the wanted budget, modified by change.
func keptBudget(change func(*policyv1.PodDisruptionBudget)) func(*facts.World) {
	return func(w *facts.World) {
		budget := children.BuildBudget(w.Set, w.Zones[0], rules.ServingLabels(asRecorded(w)))
		change(budget)
		w.Budgets = map[string]*policyv1.PodDisruptionBudget{budget.Name: budget}
	}
}

func asItIs(*policyv1.PodDisruptionBudget) {}

func TestBudgets(t *testing.T) {
	one := budgeted(plain, intstr.FromInt32(1))
	canary, perOrdinal, coexist := v1alpha1.PhaseCanary, v1alpha1.HandoverPerOrdinal, v1alpha1.HandoverCoexist
	theirs := func(b *policyv1.PodDisruptionBudget) { b.OwnerReferences = nil }
	for _, row := range []sentence{
		{"E40 no budget is created without podDisruptionBudget", of(plain()).has(1, children.Span{Start: 0, Replicas: 3}), ""},
		{"E40 a budget is created with podDisruptionBudget", of(one()).has(1, children.Span{Start: 0, Replicas: 3}), "create poddisruptionbudget db: Budget\n"},
		{"a budget without changes is not written", of(one()).has(1, children.Span{Start: 0, Replicas: 3}).but(keptBudget(asItIs)), ""},
		{"E40 an edit of minAvailable by another client is reverted",
			of(one()).has(1, children.Span{Start: 0, Replicas: 3}).but(keptBudget(func(b *policyv1.PodDisruptionBudget) { b.Spec.MinAvailable = ptr.To(intstr.FromInt32(0)) })),
			"patch poddisruptionbudget db: Budget\n"},
		{"W3 an edit of other fields by another client is kept",
			of(one()).has(1, children.Span{Start: 0, Replicas: 3}).but(keptBudget(func(b *policyv1.PodDisruptionBudget) {
				b.Spec.UnhealthyPodEvictionPolicy = ptr.To(policyv1.AlwaysAllow)
			})), ""},
		{"W11 pods with claims that are not Ready can always be evicted",
			of(withClaims(one())).has(1, children.Span{Start: 0, Replicas: 3}).but(keptBudget(func(b *policyv1.PodDisruptionBudget) { b.Spec.UnhealthyPodEvictionPolicy = nil })),
			"patch poddisruptionbudget db: Budget\n"},
		{"E41 with Coexist, pods of the new version do not count",
			of(one()).has(1, children.Span{Start: 0, Replicas: 3}).but(keptBudget(asItIs)).upgrading(canary, coexist).has(2, children.Span{Start: 0, Replicas: 1}, 0), ""},
		{"E41 with PerOrdinal, pods of all versions count while ordinals move",
			of(withClaims(one())).has(1, children.Span{Start: 0, Replicas: 2}).but(keptBudget(asItIs)).upgrading(canary, perOrdinal).has(2, children.Span{Start: 2, Replicas: 1}, 2), "patch poddisruptionbudget db: Budget\n"},
		{"E40 a budget is deleted when podDisruptionBudget is removed",
			of(one()).has(1, children.Span{Start: 0, Replicas: 3}).but(keptBudget(asItIs)).but(func(w *facts.World) { w.Set.Spec.PodDisruptionBudget = nil }), "delete poddisruptionbudget db: Budget\n"},
		{"E40 a budget of another owner is not changed", of(one()).has(1, children.Span{Start: 0, Replicas: 3}).but(keptBudget(theirs)), ""},
		{"a budget of another owner is not deleted", of(one()).has(1, children.Span{Start: 0, Replicas: 3}).but(keptBudget(theirs)).but(func(w *facts.World) { w.Set.Spec.PodDisruptionBudget = nil }), ""},
		{"a terminating budget is not changed",
			of(one()).has(1, children.Span{Start: 0, Replicas: 3}).but(keptBudget(func(b *policyv1.PodDisruptionBudget) {
				b.DeletionTimestamp, b.Spec.MinAvailable = ptr.To(metav1.NewTime(noon)), nil
			})), ""},
	} {
		t.Run(row.name, func(t *testing.T) { row.check(t) })
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

func TestABudgetOfAnotherOwner(t *testing.T) {
	w := of(budgeted(plain, intstr.FromInt32(1))()).has(1, children.Span{Start: 0, Replicas: 3}).but(keptBudget(func(b *policyv1.PodDisruptionBudget) { b.OwnerReferences = nil })).w
	f, p := decided(w)
	c := status.Progressing(f, p)
	want := "PodDisruptionBudget db does not belong to this object and is ignored, so a drain may evict more pods than spec.podDisruptionBudget allows: " +
		"delete it so that the operator creates its own: kubectl -n ns delete pdb db"
	if c.Reason != v1alpha1.ReasonBudgetTaken || c.Message != want {
		t.Errorf("E40 got %s: %s\nwant %s", c.Reason, c.Message, want)
	}
	if p.Wait != spec.BudgetRetry {
		t.Errorf("E40 next pass after %v", p.Wait)
	}
}
