package patch

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation/objects"
)

// TestStatus tests that a patch of the status changes nothing else, and stores times as an API server does.
func TestStatus(t *testing.T) {
	second := time.Date(2030, 1, 1, 0, 0, 1, 0, time.UTC)
	have := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: map[string]string{"app": "shop"}},
		Status:     corev1.PodStatus{Phase: corev1.PodRunning, StartTime: &metav1.Time{Time: second}},
	}
	for _, row := range []struct {
		name   string
		change func(*corev1.Pod)
		want   corev1.PodPhase
		same   bool
	}{
		{"nothing", func(*corev1.Pod) {}, corev1.PodRunning, true},
		{"a part of a second", func(p *corev1.Pod) { p.Status.StartTime = &metav1.Time{Time: second.Add(time.Millisecond)} }, corev1.PodRunning, true},
		{"an empty list", func(p *corev1.Pod) { p.Status.Conditions = []corev1.PodCondition{} }, corev1.PodRunning, true},
		{"labels", func(p *corev1.Pod) { p.Labels = nil }, corev1.PodRunning, true},
		{"the phase", func(p *corev1.Pod) { p.Status.Phase, p.Labels = corev1.PodFailed, nil }, corev1.PodFailed, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			written := have.DeepCopy()
			row.change(written)
			next, err := Apply(action.Action{Verb: action.PatchStatus, Object: written}, have)
			if err != nil {
				t.Fatal(err)
			}
			if isSame := next == client.Object(have); isSame != row.same {
				t.Errorf("the object is the same: %t", isSame)
			}
			pod := next.(*corev1.Pod)
			if pod.Status.Phase != row.want || pod.Labels["app"] != "shop" || !pod.Status.StartTime.Time.Equal(second) {
				t.Errorf("%+v", pod)
			}
			if have.Status.Phase != corev1.PodRunning {
				t.Error("the stored object is modified")
			}
		})
	}
}

// TestOtherPatchesKeepTheStatus tests that a patch of labels does not change the status.
func TestOtherPatchesKeepTheStatus(t *testing.T) {
	have := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "shop"}, Status: corev1.ServiceStatus{Conditions: []metav1.Condition{{Type: "Ready"}}}}
	written := objects.Clone(have)
	written.Labels, written.Status.Conditions = map[string]string{"app": "shop"}, nil
	next, err := Apply(action.Action{Verb: action.Patch, From: have, Object: written, Unchanged: true}, have)
	if err != nil || next.GetLabels()["app"] != "shop" || len(next.(*corev1.Service).Status.Conditions) != 1 || have.Labels != nil {
		t.Errorf("%+v, %v", next, err)
	}
}
