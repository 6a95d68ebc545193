package rules_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/children"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/fixture"
)

// scaledDown returns a set that was scaled from 3 to 2 while pod 0 is missing: its StatefulSet has two
// ordinals, and pod 2 still exists.
func scaledDown(changes ...func(*facts.Child)) *fixture.Scene {
	return fixture.Of(fixture.FakeSet(2)).Has(1, children.Span{Start: 0, Replicas: 2}).But(func(w *facts.World) {
		c := w.Children[0]
		c.Pods[2] = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "db-v1-2"}}
		delete(c.Pods, 0)
		for _, change := range changes {
			change(c)
		}
	})
}

// TestW8SurplusPods verifies the workaround for kubernetes#140858 (W8).
func TestW8SurplusPods(t *testing.T) {
	refused := func(w *facts.World) {
		w.Refusals = map[string]string{"db-v1-0": "it cannot be created: exceeded quota"}
	}
	for _, row := range []fixture.Sentence{
		{"W8 a surplus pod is deleted while a missing one is refused", scaledDown().But(refused), "delete pod db-v1-2: SurplusDeleted\n"},
		{"W8 a surplus pod is left to the StatefulSet controller if no pod is refused", scaledDown(), ""},
		{"W8 a refused pod of another StatefulSet is ignored", scaledDown().But(func(w *facts.World) {
			w.Refusals = map[string]string{"db-v2-0": "it cannot be created: exceeded quota"}
		}), ""},
		{"W8 a refusal of a pod that exists is ignored", scaledDown().But(refused).But(func(w *facts.World) {
			w.Children[0].Pods[0] = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "db-v1-0"}}
		}), ""},
		{"W8 a surplus pod is not deleted before the scale-down is observed", scaledDown(func(c *facts.Child) { c.Set.Status.ObservedGeneration = 0 }).But(refused), ""},
		{"W8 a terminating surplus pod is not deleted again", scaledDown(func(c *facts.Child) { c.Pods[2].DeletionTimestamp = ptr.To(metav1.NewTime(fixture.Noon)) }).But(refused), ""},
	} {
		t.Run(row.Name, func(t *testing.T) { fixture.CheckSentence(t, row) })
	}
}
