package rules_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/children"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/spec"
)

// without returns a scene in which pod 1 of version 1 waits for the claim that never exists.
func without(f func(*corev1.Pod)) *fixture.Scene {
	return fixture.Of(fixture.Plain()).Has(1, children.Span{Start: 0, Replicas: 3}, 1).But(func(w *facts.World) {
		pod := w.Children[0].Pods[1]
		pod.CreationTimestamp = metav1.NewTime(fixture.Noon.Add(-spec.UnassignedAge))
		pod.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "db-unassigned"}}}}
		f(pod)
	})
}

func TestReplaceUnassigned(t *testing.T) {
	for _, row := range []fixture.Sentence{
		{"a pod that was created without the webhook is replaced", without(func(*corev1.Pod) {}), "delete pod db-v1-1: StrayReplaced\n"},
		{"a pod that was created without the webhook is kept until unassignedAge", without(func(p *corev1.Pod) {
			p.CreationTimestamp = metav1.NewTime(fixture.Noon.Add(time.Nanosecond - spec.UnassignedAge))
		}), ""},
		{"a terminating pod is not replaced again", without(func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: fixture.Noon} }), ""},
		{"a scheduled pod is not replaced", without(func(p *corev1.Pod) { p.Spec.NodeName = "node" }), ""},
		{"a pod with another claim is not replaced", without(func(p *corev1.Pod) { p.Spec.Volumes[0].PersistentVolumeClaim.ClaimName = "data-db-1" }), ""},
	} {
		t.Run(row.Name, func(t *testing.T) { fixture.CheckSentence(t, row) })
	}
}
