package rules_test

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/rules"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/spec"
)

func TestRS131ServiceOfThatNameOfAnotherOwner(t *testing.T) {
	w := fixture.WorldOf(fixture.SetOf(3, 1))
	w.Services[spec.SecondaryServiceName(w.Set)] = &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: spec.SecondaryServiceName(w.Set), Namespace: w.Set.Namespace}}
	if described, child := w.Foreign(); child != nil {
		t.Errorf("%s is reported as a conflict", described)
	}
	for _, step := range rules.Decide(w).Steps {
		for _, a := range slices.Concat(step...) {
			if a.Object.GetName() == spec.SecondaryServiceName(w.Set) {
				t.Errorf("unexpected write: %s", a)
			}
		}
	}
}
