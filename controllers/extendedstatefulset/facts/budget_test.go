package facts_test

import (
	"testing"

	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/children"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/spec"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/status"
)

func TestABudgetOfAnotherOwner(t *testing.T) {
	w := fixture.Of(fixture.Budgeted(fixture.Plain, intstr.FromInt32(1))()).Has(1, children.Span{Start: 0, Replicas: 3}).But(fixture.KeptBudget(func(b *policyv1.PodDisruptionBudget) { b.OwnerReferences = nil })).W
	f, p := fixture.Decided(w)
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
