package slim

import (
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stateful-operator/stateful-operator/controllers/internal/bounds"
)

// Child is a cache transform of objects that the operator makes for its own, and that who
// may put a label on an object can make as well. It keeps them whole, but for managed
// fields, and of one that is larger than any of ours its metadata alone. What is decided on
// that is decided again on what the API server has.
func Child(obj any) (any, error) {
	switch o := obj.(type) {
	case *appsv1.StatefulSet:
		rest := &appsv1.StatefulSet{ObjectMeta: o.ObjectMeta, Spec: appsv1.StatefulSetSpec{Replicas: o.Spec.Replicas}}
		return either(o, rest, &rest.ObjectMeta, isLarge(o.Size(), &o.Spec.Template.Spec)), nil
	case *batchv1.Job:
		rest := &batchv1.Job{ObjectMeta: o.ObjectMeta}
		return either(o, rest, &rest.ObjectMeta, isLarge(o.Size(), &o.Spec.Template.Spec)), nil
	case *appsv1.ControllerRevision:
		rest := &appsv1.ControllerRevision{ObjectMeta: o.ObjectMeta, Revision: o.Revision}
		return either(o, rest, &rest.ObjectMeta, isLarge(o.Size(), nil)), nil
	case *corev1.PersistentVolumeClaim:
		rest := &corev1.PersistentVolumeClaim{ObjectMeta: o.ObjectMeta}
		return either(o, rest, &rest.ObjectMeta, isLarge(o.Size(), nil)), nil
	case *corev1.Service:
		rest := &corev1.Service{ObjectMeta: o.ObjectMeta}
		return either(o, rest, &rest.ObjectMeta, isLarge(o.Size(), nil)), nil
	case *policyv1.PodDisruptionBudget:
		rest := &policyv1.PodDisruptionBudget{ObjectMeta: o.ObjectMeta}
		return either(o, rest, &rest.ObjectMeta, isLarge(o.Size(), nil)), nil
	}
	return obj, nil
}

// either is an object without managed fields, or what is kept of a large one.
func either[T metav1.Object](whole, rest T, meta *metav1.ObjectMeta, large bool) T {
	if large {
		Bounded(meta)
		return rest
	}
	whole.SetManagedFields(nil)
	return whole
}

// mostChild is how many bytes of an object are kept, as protobuf: twice what a spec of ours
// may have, since it has a status, and records in annotations.
const mostChild = 2 * bounds.Bytes

// isLarge reports whether an object of so many bytes, with that pod in it, is larger than
// any of ours. An empty container takes a few bytes there and 1 KiB here.
func isLarge(bytes int, pod *corev1.PodSpec) bool {
	if bytes > mostChild {
		return true
	}
	return pod != nil && len(pod.Containers)+len(pod.InitContainers) > 4*bounds.Containers
}
