package spec_test

import (
	"testing"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/spec"
)

// TestOrders checks that each order has a field and an annotation of its own.
func TestOrders(t *testing.T) {
	s := &v1alpha1.ReplicatedStatefulSetSpec{SeedFrom: &v1alpha1.MemberOrder{ID: "seed"}, SwitchoverTo: &v1alpha1.MemberOrder{ID: "switch"}}
	for name, want := range map[v1alpha1.OrderName]string{v1alpha1.OrderSeedFrom: "seed", v1alpha1.OrderSwitchoverTo: "switch"} {
		if got := spec.OrderIn(s, name); got == nil || got.ID != want {
			t.Errorf("%s: %+v", name, got)
		}
	}
	annotations := map[string]bool{}
	for _, name := range spec.OrderNames {
		if spec.OrderIn(&v1alpha1.ReplicatedStatefulSetSpec{}, name) != nil {
			t.Errorf("%s is in an empty spec", name)
		}
		annotations[spec.AnnotationOf[name]] = true
	}
	if len(annotations) != len(spec.OrderNames) || annotations[""] {
		t.Errorf("the annotations of %d orders are %v", len(spec.OrderNames), annotations)
	}
}
