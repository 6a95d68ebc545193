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
