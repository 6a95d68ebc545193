package rules_test

import (
	"testing"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/children"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/fixture"
)

// TestHandEdits verifies the response to edits of StatefulSets by other clients.
func TestHandEdits(t *testing.T) {
	const coexist = v1alpha1.HandoverCoexist
	for _, row := range []fixture.Sentence{
		{"an edit is reverted", fixture.Of(fixture.Plain()).Has(1, children.Span{Start: 0, Replicas: 3}).But(func(w *facts.World) { w.Children[0].Set.Generation = 2 }), "patch statefulset db-v1: EditUndone\n"},
		{"an edit of replicas is reverted", fixture.Of(fixture.Plain()).Has(1, children.Span{Start: 0, Replicas: 2}).But(func(w *facts.World) { w.Children[0].Set.Generation = 2 }), "patch statefulset db-v1: EditUndone, ordinals 0 to 2\n"},
		{"an edit is reported if the original content is unknown", fixture.Of(fixture.Plain()).Has(1, children.Span{Start: 0, Replicas: 3}).Upgrading(v1alpha1.PhaseStale, coexist).Has(2, children.Span{}).But(fixture.Stale2).
			But(func(w *facts.World) { w.Children[0].Set.Generation = 2 }), "patch statefulset db-v1: EditKept\n"},
		{"an edit of replicas is reverted if the original content is unknown", fixture.Of(fixture.Plain()).Has(1, children.Span{Start: 0, Replicas: 2}).Upgrading(v1alpha1.PhaseStale, coexist).Has(2, children.Span{}).But(fixture.Stale2).
			But(func(w *facts.World) { w.Children[0].Set.Generation = 2 }), "patch statefulset db-v1: EditKept, ordinals 0 to 2\n"},
		{"a kept edit is reported once", fixture.Of(fixture.Plain()).Has(1, children.Span{Start: 0, Replicas: 3}).Upgrading(v1alpha1.PhaseStale, coexist).Has(2, children.Span{}).But(fixture.Stale2).But(keptEdit), ""},
		{"a kept edit is reverted when the original content is known", fixture.Of(fixture.Plain()).Has(1, children.Span{Start: 0, Replicas: 3}).But(keptEdit), "patch statefulset db-v1: EditUndone\n"},
	} {
		t.Run(row.Name, func(t *testing.T) { fixture.CheckSentence(t, row) })
	}
}
