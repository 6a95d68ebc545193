package workloads

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation/kubelet"
)

// TestStatus tests the numbers of pods, and when the current revision becomes the new one.
func TestStatus(t *testing.T) {
	s := newStage(t, rolling(2, nil))
	numbers := func() [5]int32 {
		st := s.set().Status
		return [5]int32{st.Replicas, st.ReadyReplicas, st.AvailableReplicas, st.CurrentReplicas, st.UpdatedReplicas}
	}
	first := s.set().Status.CurrentRevision
	if got := numbers(); got != [5]int32{3, 3, 3, 3, 3} || first != s.set().Status.UpdateRevision {
		t.Errorf("at first: %v, revision %s", got, first)
	}
	s.edit(image("two"))
	if s.rest(); numbers() != [5]int32{3, 3, 3, 2, 1} || s.set().Status.CurrentRevision != first {
		t.Errorf("with a partition: %v", s.set().Status)
	}
	s.edit(rolling(0, nil))
	if s.rest(); numbers() != [5]int32{3, 3, 3, 3, 3} || s.set().Status.CurrentRevision == first {
		t.Errorf("after the update: %v", s.set().Status)
	}
	s.edit(image(kubelet.BadImage))
	if s.rest(); numbers() != [5]int32{3, 2, 2, 2, 1} || s.set().Status.ObservedGeneration != s.set().Generation {
		t.Errorf("with a bad image: %v", s.set().Status)
	}
	s.edit(scale(2), func(set *appsv1.StatefulSet) { image("two")(set) })
	if s.rest(); numbers() != [5]int32{2, 2, 2, 2, 2} {
		t.Errorf("after the scale down: %v", s.set().Status)
	}
}
