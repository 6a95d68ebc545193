package rules_test

import (
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/rules"
)

// TestOwnersOfRefusedPodsAreTouched checks that a ReplicaSet whose pods were refused gets an
// annotation with the current time, and keeps its other annotations.
func TestOwnersOfRefusedPodsAreTouched(t *testing.T) {
	set := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Name: "web-1", Namespace: "ns", Annotations: map[string]string{"mine": "stays"}}}
	bare := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "db", Namespace: "ns"}}
	lacking := func(s *fixture.SingletonFixture) *facts.World {
		return fixture.WorldWith(fixture.WorldOf(s), func(w *facts.World) { w.RefusedOwners = []facts.Object{set, bare} })
	}
	steps := rules.Decide(facts.Derive(lacking(fixture.Singleton("db")))).Steps
	if got := steps.Strings(); !slices.Equal(got, []string{"patch replicaset web-1: Touch", "patch statefulset db: Touch"}) {
		t.Fatalf("the plan is %q", got)
	}
	for _, chain := range steps[0] {
		if got := chain[0].Object.GetAnnotations()[v1.Prefix+"touched"]; got != "2026-03-01T12:00:00.000000Z" {
			t.Errorf("%s has the time %q", chain[0].Object.GetName(), got)
		}
	}
	if steps[0][0][0].Object.GetAnnotations()["mine"] != "stays" || len(set.Annotations) != 1 || len(bare.Annotations) != 0 {
		t.Errorf("an annotation was lost, or the objects that were read have changed: %v, %v", set.Annotations, bare.Annotations)
	}
	released := fixture.Singleton("db").Goes().With(func(s *v1.StatefulSingleton) { s.Annotations = map[string]string{v1.AnnotationReleaseNow: v1.True} })
	for _, got := range rules.Decide(facts.Derive(lacking(released))).Steps.Strings() {
		if got == "patch replicaset web-1: Touch" {
			t.Error("the owners of a released object are touched")
		}
	}
}
