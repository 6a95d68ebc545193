package observe_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/children"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/observe"
)

// TestTwoZonesNeverHaveOneIndex verifies that contradictory labels, for example of a copied claim,
// never give two zones the same index.
func TestTwoZonesNeverHaveOneIndex(t *testing.T) {
	set := fixture.FakeSet(1)
	set.Spec.Zones = []string{"a", "b"}
	w := &facts.World{Set: set, Claims: map[string]*corev1.PersistentVolumeClaim{}}
	for _, name := range set.Spec.Zones {
		c := &corev1.PersistentVolumeClaim{}
		c.Labels = children.OwnLabels("db", children.Zone{Name: name, Index: 0}, 0)
		w.Claims[name] = c
	}
	observe.RecoverZones(w, nil)
	if w.Zones[0] != (children.Zone{Name: "a", Index: 0}) || w.Zones[1] != (children.Zone{Name: "b", Index: 1}) {
		t.Errorf("conflicting labels: got zones %v", w.Zones)
	}
}
