package facts_test

import (
	"testing"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/children"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/fixture"
)

// TestForward checks when the new version may take ordinals.
func TestForward(t *testing.T) {
	tried := func(phase v1alpha1.Phase) *fixture.Scene {
		return fixture.Of(fixture.Volumes()).Has(1, children.Span{Start: 0, Replicas: 2}).Upgrading(phase, v1alpha1.HandoverPerOrdinal)
	}
	begun := children.Span{Start: 2, Replicas: 1}
	for _, r := range []struct {
		name  string
		scene *fixture.Scene
		want  bool
	}{
		{"canaries", tried(v1alpha1.PhaseCanary).Has(2, begun), true},
		{"promoting", tried(v1alpha1.PhasePromoting).Has(2, begun), true},
		{"the zone of the upgrade, before the first pod", tried(v1alpha1.PhaseCanary).Has(2, children.Span{}), true},
		{"another zone, before the first pod", tried(v1alpha1.PhaseCanary).Has(2, children.Span{}).But(func(w *facts.World) { w.Set.Status.Update.Zone = "b" }), false},
		{"another zone that has begun", tried(v1alpha1.PhaseCanary).Has(2, begun).But(func(w *facts.World) { w.Set.Status.Update.Zone = "b" }), true},
		{"before the first job has ended", tried(v1alpha1.PhasePreJob).Has(2, begun), false},
		{"a rollback", tried(v1alpha1.PhasePromoting).Has(2, begun).But(func(w *facts.World) { w.Set.Status.Update.Returning = true }), false},
		{"a stale version", tried(v1alpha1.PhaseStale).Has(2, begun), false},
		{"no upgrade", fixture.Of(fixture.Volumes()).Has(1, children.Span{Start: 0, Replicas: 3}), false},
	} {
		if got := fixture.AsRecorded(r.scene.W).Forward(r.scene.W.Zones[0]); got != r.want {
			t.Errorf("%s: %t", r.name, got)
		}
	}
}

func TestOrdinalsThatAreLeftForLater(t *testing.T) {
	a, b := children.Zone{Name: "a", Index: 0}, children.Zone{Name: "b", Index: 1}
	w := &facts.World{FirstUnread: map[int32]int32{0: 5}}
	for _, r := range []struct {
		zone    children.Zone
		ordinal int32
		want    bool
	}{{a, 4, false}, {a, 5, true}, {a, 6, true}, {b, 6, false}} {
		if got := w.IsUnread(r.zone, r.ordinal); got != r.want {
			t.Errorf("ordinal %d of zone %s: %t", r.ordinal, r.zone.Name, got)
		}
	}
}

func TestZoneOfAnUpgrade(t *testing.T) {
	w := fixture.Of(fixture.Zoned(3, "a", "b")).W
	for zone, want := range map[string]string{"b": "b", "removed": "a"} {
		if got := w.ZoneOf(&v1alpha1.UpdateStatus{Zone: zone}).Name; got != want {
			t.Errorf("%s: %s, want %s", zone, got, want)
		}
	}
}
