package status_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/children"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/status"
	"github.com/stateful-operator/stateful-operator/controllers/internal/causes/causestest"
)

// kept returns a world in which a sample has blocked pod db-v1-2 for the given time. It returns nil for
// a sample that has no pod.
func kept(s *causestest.Sample, age time.Duration) *facts.World {
	if s.Fails {
		return nil
	}
	w := fixture.Of(fixture.Plain()).Has(1, children.Span{Start: 0, Replicas: 3}, 2).W
	pods := w.Children[0].Pods
	since := fixture.Noon.Add(-age)
	switch {
	case s.Refused != "":
		delete(pods, 2)
		w.Refusals, w.RefusalsDue = map[string]string{"db-v1-2": "it cannot be created: " + s.Refused}, fixture.Noon.Add(time.Minute)
	case s.Pod != nil:
		s.Pod(pods[2], since)
	default:
		pods[2].Spec.NodeName = "n1"
		pods[2].Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}, {Type: corev1.PodReady, Status: corev1.ConditionFalse}}
		for i := range pods[2].Status.Conditions {
			pods[2].Status.Conditions[i].LastTransitionTime.Time = since
		}
	}
	w.Causes = s.Read(fixture.Noon, facts.CurrentPods(w))
	return w
}

// TestW17EachCauseIsToldOf verifies that after a minute condition Degraded reports, with a command, why
// a pod of the current version does not run, and that Stalled reports the causes that require manual
// intervention (W17).
func TestW17EachCauseIsToldOf(t *testing.T) {
	for i := range causestest.All {
		s := &causestest.All[i]
		w := kept(s, 70*time.Second)
		if w == nil {
			continue
		}
		f, p := fixture.Decided(w)
		set := w.Set.DeepCopy()
		set.Generation = 1
		w.Set.Generation = 1
		set.Status = status.Summarize(f, p)
		s.Check(t, v1alpha1.ConditionDegraded, set, set.Status.Conditions)
	}
}
