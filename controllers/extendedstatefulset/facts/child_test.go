package facts_test

import (
	"testing"

	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/children"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/status"
)

func TestAVersionIsReadyInAnyZone(t *testing.T) {
	turn := func(w *facts.World) { w.Zones[0], w.Zones[1] = w.Zones[1], w.Zones[0] }
	s := fixture.Of(fixture.Plain()).But(fixture.InTwoZones).Has(1, children.Span{Start: 0, Replicas: 3}).But(turn).Has(1, children.Span{Start: 0, Replicas: 3}, 0, 1, 2).But(turn)
	f, p := fixture.Decided(s.W)
	if got := status.Summarize(f, p).Versions; len(got) != 1 || !got["1"] {
		t.Errorf("got status %v for a version that is Ready in one of two zones", got)
	}
}

// TestHasAll verifies that surplus ordinals, which a scale-down will remove, are not treated as missing ones.
func TestHasAll(t *testing.T) {
	for _, row := range []struct {
		name string
		sp   children.Span
		want bool
	}{
		{"all ordinals", children.Span{Start: 0, Replicas: 3}, true},
		{"all ordinals, and surplus ones", children.Span{Start: 0, Replicas: 5}, true},
		{"the highest ordinal is missing", children.Span{Start: 0, Replicas: 2}, false},
		{"the lowest ordinal is missing", children.Span{Start: 1, Replicas: 2}, false},
		{"the lowest ordinal is missing, and there are surplus ones", children.Span{Start: 1, Replicas: 5}, false},
		{"no ordinals", children.Span{}, false},
	} {
		c := fixture.Of(fixture.Plain()).Has(1, row.sp).W.Children[0]
		if got := c.HasAll(3); got != row.want {
			t.Errorf("%s: %t", row.name, got)
		}
	}
}
