package rejection

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
)

// W10: a quota may have become too small to recreate a pod after its deletion.
func TestIsFullWithout(t *testing.T) {
	gone := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{
		{Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("500m"), corev1.ResourceMemory: resource.MustParse("1Gi")},
			Limits:   corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")},
		}},
		{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("500m")}}},
	}}}
	for _, r := range []struct {
		name, quota string
		want        bool
	}{
		{"W10 the quota has room after the pod is deleted", "requested: pods=1, used: pods=3, limited: pods=3", false},
		{"W10 the quota was lowered", "requested: pods=1, used: pods=3, limited: pods=2", true},
		{"W10 the quota on the object count was lowered", "requested: count/pods=1, used: count/pods=3, limited: count/pods=2", true},
		{"W10 the new pod requests as much", "requested: requests.cpu=1, used: requests.cpu=3, limited: requests.cpu=3", false},
		{"W10 the new pod requests more", "requested: cpu=1500m, used: cpu=3, limited: cpu=3", true},
		{"W10 the new pod requests more memory", "requested: requests.memory=2Gi, used: requests.memory=3Gi, limited: requests.memory=3Gi", true},
		{"W10 the new pod has a higher limit", "requested: limits.cpu=1100m, used: limits.cpu=2, limited: limits.cpu=2", true},
		{"W10 one of two resources has no room", "requested: cpu=1,pods=1, used: cpu=3,pods=3, limited: cpu=3,pods=2", true},
		{"W10 a resource that is not counted", "requested: requests.nvidia.com/gpu=1, used: requests.nvidia.com/gpu=3, limited: requests.nvidia.com/gpu=2", false},
		{"W10 a message in another format", "no room", false},
	} {
		err := apierrors.NewForbidden(corev1.Resource("pods"), "a", errors.New("exceeded quota: q, "+r.quota))
		if got := IsFullWithout(err, gone); got != r.want {
			t.Errorf("%s: %t", r.name, got)
		}
	}
	if IsFullWithout(nil, gone) || IsFullWithout(errors.New("exceeded quota: q, requested: pods=1, used: pods=3, limited: pods=2"), gone) {
		t.Error("W10 an error that is not a refusal")
	}
	gone.Spec.InitContainers = make([]corev1.Container, 1)
	if IsFullWithout(apierrors.NewForbidden(corev1.Resource("pods"), "a", errors.New("exceeded quota: q, requested: cpu=9, used: cpu=3, limited: cpu=3")), gone) {
		t.Error("W10 the resources of init containers are not counted, so the result is unknown")
	}
}
