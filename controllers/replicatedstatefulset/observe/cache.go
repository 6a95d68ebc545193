package observe

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/slim"
	"github.com/stateful-operator/stateful-operator/controllers/internal/unread"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/application"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/children"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/spec"
)

// SlimSet is a cache transform that drops the spec of a set that is too large to keep.
func SlimSet(obj any) (any, error) {
	set, ok := obj.(*v1alpha1.ReplicatedStatefulSet)
	if !ok {
		return obj, nil
	}
	if problem := unread.Bound(&set.ObjectMeta, &set.Spec); problem != "" {
		set.Spec = v1alpha1.ReplicatedStatefulSetSpec{Problem: problem}
	}
	return set, nil
}

// CutPod is a cache transform that keeps the parts of a pod that decisions use. Pods are read live
// before they are patched.
func CutPod(obj any) (any, error) {
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return obj, nil
	}
	cut := &corev1.Pod{ObjectMeta: pod.ObjectMeta, Status: pod.Status}
	slim.Bounded(&cut.ObjectMeta, v1alpha1.AnnotationTemplate, v1alpha1.AnnotationContainer, v1alpha1.AnnotationConfigHash, v1alpha1.AnnotationInPlace)
	cut.Spec.NodeName = pod.Spec.NodeName
	if len(pod.Spec.InitContainers)+len(pod.Spec.Containers) > spec.MaxContainers {
		return cut, nil
	}
	for i := range pod.Spec.InitContainers {
		cut.Spec.InitContainers = append(
			cut.Spec.InitContainers,
			corev1.Container{Name: pod.Spec.InitContainers[i].Name},
		)
	}
	for i := range pod.Spec.Containers {
		c := &pod.Spec.Containers[i]
		kept := corev1.Container{Name: c.Name}
		if application.LeaseDuration(c) > 0 {
			kept.Command, cut.Spec.ServiceAccountName = c.Command, pod.Spec.ServiceAccountName
		}
		if children.Sleeps(c) {
			kept.Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Sleep: c.Lifecycle.PreStop.Sleep}}
		}
		cut.Spec.Containers = append(cut.Spec.Containers, kept)
	}
	return cut, nil
}

// CutRule is a cache transform of ConfigMaps. Rules are selected by any label. A ConfigMap with
// more labels than are kept is not a rule.
func CutRule(obj any) (any, error) {
	if m, ok := obj.(*metav1.PartialObjectMetadata); ok {
		slim.Bounded(&m.ObjectMeta)
	}
	return obj, nil
}
