package extendedstatefulset

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// without returns a scene in which pod 1 of version 1 waits for the claim that never exists.
func without(f func(*corev1.Pod)) *scene {
	return of(plain()).has(1, span{0, 3}, 1).but(func(w *world) {
		pod := w.children[0].pods[1]
		pod.CreationTimestamp = metav1.NewTime(noon.Add(-unassignedAge))
		pod.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "db-unassigned"}}}}
		f(pod)
		// As stored in the cache.
		cut, err := cutPod(pod)
		if err != nil {
			panic(err)
		}
		w.children[0].pods[1] = cut.(*corev1.Pod)
	})
}

func TestReplaceUnassigned(t *testing.T) {
	for _, row := range []sentence{
		{"a pod that no webhook saw is replaced", without(func(*corev1.Pod) {}), "delete pod db-v1-1: StrayReplaced\n"},
		{"but not more often than that", without(func(p *corev1.Pod) { p.CreationTimestamp = metav1.NewTime(noon.Add(time.Nanosecond - unassignedAge)) }), ""},
		{"nor twice", without(func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: noon} }), ""},
		{"nor when it has a node, and may have run", without(func(p *corev1.Pod) { p.Spec.NodeName = "node" }), ""},
		{"nor when its claim is another", without(func(p *corev1.Pod) { p.Spec.Volumes[0].PersistentVolumeClaim.ClaimName = "data-db-1" }), ""},
	} {
		t.Run(row.name, row.check)
	}
}
