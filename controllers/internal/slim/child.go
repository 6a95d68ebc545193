package slim

import (
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stateful-operator/stateful-operator/controllers/internal/bounds"
)

// Child is a cache transform for the objects that the operator creates as children. Other users can
// create such objects too, by setting a label. Child removes managed fields. If the object is larger
// than any that the operator creates, it keeps little more than the metadata. A decision based on such
// an object is made again on the live object.
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

// either returns whole without managed fields, or rest if the object is large.
func either[T metav1.Object](whole, rest T, meta *metav1.ObjectMeta, large bool) T {
	if large {
		Bounded(meta)
		return rest
	}
	whole.SetManagedFields(nil)
	return whole
}

// maxChild is the max size of a kept object as protobuf, in bytes. It is twice the max size of a spec,
// because an object also has a status, and records in annotations.
const maxChild = 2 * bounds.Bytes

// isLarge reports whether an object of the given size and pod spec is larger than any that the operator
// creates. An empty container takes a few bytes as protobuf, but 1 KiB in memory.
func isLarge(bytes int, pod *corev1.PodSpec) bool {
	if bytes > maxChild {
		return true
	}
	return pod != nil && len(pod.Containers)+len(pod.InitContainers) > 4*bounds.Containers
}
