package podresize

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func cpuOf(amount string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(amount)}
}

func TestResized(t *testing.T) {
	asks := func(amount string) corev1.ResourceRequirements {
		return corev1.ResourceRequirements{Requests: cpuOf(amount)}
	}
	limit := func(amount string) corev1.ResourceRequirements {
		return corev1.ResourceRequirements{Limits: cpuOf(amount)}
	}
	for _, r := range []struct {
		name           string
		have, want     corev1.ResourceRequirements
		request, limit string
	}{
		{"a limit without a request is also the request", asks("1"), limit("2"), "2", "2"},
		{"a limit that another client set is kept", limit("4"), asks("1"), "1", "4"},
		{"equal quantities in other units", asks("1000m"), asks("1"), "1", "0"},
	} {
		pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "beside"}, {Name: "main", Resources: r.have}}}}
		sized := Resized(pod, []corev1.Container{{Name: "main", Resources: r.want}})
		got := sized.Spec.Containers[1].Resources
		request, limit := got.Requests[corev1.ResourceCPU], got.Limits[corev1.ResourceCPU]
		if request.Cmp(resource.MustParse(r.request)) != 0 || limit.Cmp(resource.MustParse(r.limit)) != 0 {
			t.Errorf("%s: got request %s and limit %s, want %s and %s", r.name, request.String(), limit.String(), r.request, r.limit)
		}
		if sized.Spec.Containers[0].Resources.Requests != nil || pod == sized {
			t.Errorf("%s: another container or the cached pod was modified", r.name)
		}
	}
}

func TestKeepsResources(t *testing.T) {
	one := func(r corev1.ResourceRequirements) []corev1.Container {
		return []corev1.Container{{Name: "main", Resources: r}}
	}
	asks := one(corev1.ResourceRequirements{Requests: cpuOf("1")})
	both := one(corev1.ResourceRequirements{Requests: cpuOf("2"), Limits: cpuOf("2")})
	if !KeepsResources(asks, both) || KeepsResources(both, asks) || KeepsResources(asks, one(corev1.ResourceRequirements{})) {
		t.Error("a resize adds and changes resources, and removes none")
	}
}

func TestWhatTheKubeletSaysOfAResize(t *testing.T) {
	with := func(kind corev1.PodConditionType, reason string) *corev1.Pod {
		return &corev1.Pod{Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: kind, Reason: reason, Status: corev1.ConditionTrue}}}}
	}
	deferred, infeasible := with(corev1.PodResizePending, corev1.PodReasonDeferred), with(corev1.PodResizePending, corev1.PodReasonInfeasible)
	underWay, ready := with(corev1.PodResizeInProgress, ""), with(corev1.PodReady, "")
	if !Resizing(deferred) || !Resizing(infeasible) || !Resizing(underWay) || Resizing(ready) {
		t.Error("a resize is pending while either condition exists")
	}
	if Infeasible(deferred) || !Infeasible(infeasible) || Infeasible(underWay) {
		t.Error("only reason Infeasible is permanent")
	}
	seen := &corev1.Pod{}
	seen.Generation = 2
	if Unseen(seen) {
		t.Error("a kubelet that does not report observedGeneration has not observed the resize")
	}
	if seen.Status.ObservedGeneration = 1; !Unseen(seen) {
		t.Error("the kubelet has observed an older generation")
	}
	if seen.Status.ObservedGeneration = 2; Unseen(seen) {
		t.Error("the kubelet has observed the current generation")
	}
}
