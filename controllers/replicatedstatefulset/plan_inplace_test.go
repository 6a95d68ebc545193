package replicatedstatefulset

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stateful-operator/stateful-operator/controllers/internal/engine"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/fixture"
)

func TestRevisionsAreReadLive(t *testing.T) {
	s := newStage(t, fixture.InPlace(fixture.SetOf(3, 1)))
	s.settle(time.Minute)
	if w := s.observe(s.Set(), engine.View{Reader: s.Cluster, Live: true}); len(w.Revisions) != 0 {
		t.Errorf("%d templates of an updated set are read, want 0", len(w.Revisions))
	}
	cpuOf("2")(s)
	for range 3 { // the StatefulSet gets the template, and its controller observes it
		s.Look()
		s.pass()
		for _, move := range s.Machines() {
			move()
		}
	}
	w := s.observe(s.Set(), engine.View{Reader: s.Cluster, Live: true})
	if now, was := w.Revisions[w.Stateful.Status.UpdateRevision], w.Revisions[s.pod(1).Labels[appsv1.ControllerRevisionHashLabelKey]]; now == nil || was == nil ||
		now.Spec.Containers[0].Resources.Requests.Cpu().String() != "2" || len(was.Spec.Containers[0].Resources.Requests) > 0 {
		t.Fatalf("the revisions are %v", w.Revisions)
	}
	// A revision of the same name that the StatefulSet does not control is ignored.
	for _, o := range s.All {
		if r, is := o.(*appsv1.ControllerRevision); is {
			next := r.DeepCopy()
			next.OwnerReferences = []metav1.OwnerReference{{UID: "other"}}
			s.Put(next)
		}
	}
	if w := s.observe(s.Set(), engine.View{Reader: s.Cluster, Live: true}); len(w.Revisions) != 0 {
		t.Error("revisions of another owner are read")
	}
}
