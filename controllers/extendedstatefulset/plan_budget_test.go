package extendedstatefulset

import (
	"testing"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
)

// keptBudget adds the wanted budget, modified by change.
func keptBudget(change func(*policyv1.PodDisruptionBudget)) func(*world) {
	return func(w *world) {
		w.record = w.set.Status.DeepCopy()
		budget := buildBudget(w.set, w.zones[0], w.traffic().serves())
		change(budget)
		w.budgets = map[string]*policyv1.PodDisruptionBudget{budget.Name: budget}
	}
}

func asItIs(*policyv1.PodDisruptionBudget) {}

func TestBudgets(t *testing.T) {
	one := budgeted(plain, intstr.FromInt32(1))
	canary, perOrdinal, coexist := v1alpha1.PhaseCanary, v1alpha1.HandoverPerOrdinal, v1alpha1.HandoverCoexist
	theirs := func(b *policyv1.PodDisruptionBudget) { b.OwnerReferences = nil }
	for _, row := range []sentence{
		{"E40 an object that asks for none gets none", of(plain()).has(1, span{0, 3}), ""},
		{"E40 one that asks for it gets one", of(one()).has(1, span{0, 3}), "create poddisruptionbudget db: Budget\n"},
		{"it is left as it is", of(one()).has(1, span{0, 3}).but(keptBudget(asItIs)), ""},
		{"E40 what another client made it say is put back",
			of(one()).has(1, span{0, 3}).but(keptBudget(func(b *policyv1.PodDisruptionBudget) { b.Spec.MinAvailable = ptr.To(intstr.FromInt32(0)) })),
			"patch poddisruptionbudget db: Budget\n"},
		{"W3 but not what it says nothing about",
			of(one()).has(1, span{0, 3}).but(keptBudget(func(b *policyv1.PodDisruptionBudget) {
				b.Spec.UnhealthyPodEvictionPolicy = ptr.To(policyv1.AlwaysAllow)
			})), ""},
		{"W11 a pod that is not Ready and has claims may always be evicted",
			of(withClaims(one())).has(1, span{0, 3}).but(keptBudget(func(b *policyv1.PodDisruptionBudget) { b.Spec.UnhealthyPodEvictionPolicy = nil })),
			"patch poddisruptionbudget db: Budget\n"},
		{"E41 pods of a version that is on its way do not count while both are there",
			of(one()).has(1, span{0, 3}).but(keptBudget(asItIs)).upgrading(canary, coexist).has(2, span{0, 1}, 0), ""},
		{"E41 while ordinals move those of each version do",
			of(withClaims(one())).has(1, span{0, 2}).but(keptBudget(asItIs)).upgrading(canary, perOrdinal).has(2, span{2, 1}, 2), "patch poddisruptionbudget db: Budget\n"},
		{"E40 one that is not asked for any more goes",
			of(one()).has(1, span{0, 3}).but(keptBudget(asItIs)).but(func(w *world) { w.set.Spec.PodDisruptionBudget = nil }), "delete poddisruptionbudget db: Budget\n"},
		{"E40 one of another owner is left alone", of(one()).has(1, span{0, 3}).but(keptBudget(theirs)), ""},
		{"also when none is asked for", of(one()).has(1, span{0, 3}).but(keptBudget(theirs)).but(func(w *world) { w.set.Spec.PodDisruptionBudget = nil }), ""},
		{"one that is being deleted is left alone until it is gone",
			of(one()).has(1, span{0, 3}).but(keptBudget(func(b *policyv1.PodDisruptionBudget) {
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
		{"a number", least("2"), 3, 2}, {"a part, rounded up", least("50%"), 3, 2}, {"more than there are", least("5"), 3, 5},
		{"all but a number", most("1"), 3, 2}, {"all but a part, which is rounded up", most("50%"), 3, 1}, {"all", most("0"), 3, 3},
		{"none", most("5"), 3, 0}, {"of none", most("1"), 0, 0}, {"all, if nobody can read it", most("many"), 3, 3},
		{"all, if it says nothing", &v1alpha1.DisruptionBudget{}, 3, 3},
	} {
		if got := minAvailableOf(r.budget, r.replicas); got != r.want {
			t.Errorf("E41 %s: %d, want %d", r.name, got, r.want)
		}
	}
}

func TestABudgetOfAnotherOwner(t *testing.T) {
	w := of(budgeted(plain, intstr.FromInt32(1))()).has(1, span{0, 3}).but(keptBudget(func(b *policyv1.PodDisruptionBudget) { b.OwnerReferences = nil })).w
	p := decide(w)
	c := progressing(w, &p)
	want := "PodDisruptionBudget db does not belong to this object and is ignored, so a drain may evict more pods than spec.podDisruptionBudget allows: " +
		"delete it so that the operator creates its own: kubectl -n ns delete pdb db"
	if c.Reason != v1alpha1.ReasonBudgetTaken || c.Message != want {
		t.Errorf("E40 it says %s: %s\nwant %s", c.Reason, c.Message, want)
	}
	if p.Wait != budgetRetry {
		t.Errorf("E40 it looks again after %v", p.Wait)
	}
}
