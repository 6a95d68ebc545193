package extendedstatefulset

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/children"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/observe"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/spec"
)

// TestUnassignedPodsInTheCache checks that the cache keeps what shows that a pod waits for the claim
// that never exists.
func TestUnassignedPodsInTheCache(t *testing.T) {
	s := fixture.Of(fixture.Plain()).Has(1, children.Span{Start: 0, Replicas: 3}, 1).But(func(w *facts.World) {
		pod := w.Children[0].Pods[1]
		pod.CreationTimestamp = metav1.NewTime(fixture.Noon.Add(-spec.UnassignedAge))
		pod.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "db-unassigned"}}}}
		cut, err := observe.CutPod(pod)
		if err != nil {
			t.Fatal(err)
		}
		w.Children[0].Pods[1] = cut.(*corev1.Pod)
	})
	fixture.CheckSentence(t, fixture.Sentence{Name: "a pod as stored in the cache", Scene: s, Want: "delete pod db-v1-1: StrayReplaced\n"})
}
