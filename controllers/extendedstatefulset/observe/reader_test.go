package observe_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/children"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/observe"
)

// TestRivals verifies that a StatefulSet which the object used to control is a rival, and that an
// unrelated one is not.
func TestRivals(t *testing.T) {
	s := fixture.Of(fixture.Volumes()).Has(1, children.Span{Start: 0, Replicas: 1})
	taken := s.W.Children[0].Set.DeepCopy()
	taken.OwnerReferences = nil
	foreign := taken.DeepCopy()
	foreign.Spec.Template.Labels = nil
	observe.AddChild(s.W, taken)
	observe.AddChild(s.W, foreign)
	if len(s.W.Rivals) != 1 || s.W.Rivals[0].Set != taken {
		t.Errorf("got rivals %v", s.W.Rivals)
	}
	s = fixture.Of(fixture.Volumes())
	pod := &corev1.Pod{}
	s.W.Pods = []facts.PodOfOrdinal{{Zone: children.NoZone, Version: 9, Ordinal: 1, Pod: pod}}
	for _, live := range []bool{false, true} {
		if s.W.Live = live; s.W.Unsure() == live {
			t.Errorf("live %t: wrong reason for a pod without its StatefulSet", live)
		}
	}
	if s.W.InTransit(children.Zone{Index: children.NoZone}, 1) || !s.W.InTransit(children.Zone{Index: children.NoZone}, 0) {
		t.Error("a running orphaned pod is waited for, or an expected pod is not")
	}
}
