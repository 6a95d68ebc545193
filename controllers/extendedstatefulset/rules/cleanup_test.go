package rules_test

import (
	"testing"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/children"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/fixture"
)

// givenBack returns a set whose template was reverted to that of version 1, and whose version 2 has no
// pods left.
func givenBack() *fixture.Scene {
	return fixture.Of(fixture.Volumes()).Has(1, children.Span{Start: 0, Replicas: 3}).Upgrading(v1alpha1.PhaseCanary, v1alpha1.HandoverPerOrdinal).Has(2, children.Span{Start: 3}).But(backToOne)
}

func TestCleanUp(t *testing.T) {
	for _, row := range []fixture.Sentence{
		{"a version that is no longer needed is deleted", givenBack(), "delete statefulset db-v2: OldVersion\n"},
		{"a version is not deleted before its StatefulSet controller has observed 0 replicas", givenBack().But(func(w *facts.World) {
			observedLater(w.Children[1])
			w.Children[1].Set.Annotations[v1alpha1.AnnotationApplied] = ""
		}), ""},
	} {
		t.Run(row.Name, func(t *testing.T) { fixture.CheckSentence(t, row) })
	}
}
