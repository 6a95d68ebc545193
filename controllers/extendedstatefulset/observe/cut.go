package observe

import (
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/internal/bounds"
	"github.com/stateful-operator/stateful-operator/controllers/internal/slim"
)

// CutPod is a cache transform that keeps only the fields of a pod that decisions use.
func CutPod(obj any) (any, error) {
	return slim.Kept{Labels: []string{v1alpha1.LabelSet, v1alpha1.LabelVersion, v1alpha1.LabelZoneIndex, v1alpha1.LabelPodActive, v1alpha1.LabelStatefulSet},
		Annotations: []string{v1alpha1.AnnotationConfigHash},
		Containers:  func(*corev1.Pod) bool { return true }, // probes run in the running container
		Causes:      true,
		Volumes: func(v *corev1.Volume) bool {
			return v.PersistentVolumeClaim != nil && strings.HasSuffix(v.PersistentVolumeClaim.ClaimName, v1alpha1.UnassignedClaim)
		}}.Pod(obj)
}

// CutService is a cache transform that keeps the owner and the selector of a Service. Selectors of the
// operator have at most bounds.Terms entries; longer ones are dropped. A Service is read live before it
// is patched.
func CutService(obj any) (any, error) {
	service, ok := obj.(*corev1.Service)
	if !ok {
		return obj, nil
	}
	cut := &corev1.Service{ObjectMeta: service.ObjectMeta}
	slim.Bounded(&cut.ObjectMeta)
	if len(service.Spec.Selector) <= bounds.Terms {
		cut.Spec.Selector = service.Spec.Selector
	}
	return cut, nil
}

// CutJob is a cache transform that keeps only one field manager of a Job: the one that suspended it.
func CutJob(obj any) (any, error) {
	job, ok := obj.(*batchv1.Job)
	if !ok {
		return slim.Child(obj)
	}
	by := facts.Suspender(job)
	cut, err := slim.Child(job)
	if kept, isJob := cut.(*batchv1.Job); isJob && by != "" {
		kept.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: by, FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:suspend":{}}}`)}}
	}
	return cut, err
}
