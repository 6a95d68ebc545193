package children

import (
	"fmt"
	"maps"
	"strconv"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
)

// Name parts of the Jobs of an upgrade.
const (
	PreJob    = "pre"
	CanaryJob = "canary"
	PostJob   = "post"
)

// JobName returns the name of a Job of a version. attempt counts all attempts with the version, so each
// attempt has its own Jobs.
func JobName(set, which string, number int64, attempt int32) string {
	return fmt.Sprintf("%s-%s-v%d-%d", set, which, number, attempt)
}

// BuildJob returns a Job of an upgrade. It is created suspended, and is resumed once its UID is in the
// status. A recorded Job that is missing may therefore have run, and is not recreated.
func BuildJob(set *v1alpha1.ExtendedStatefulSet, from *v1alpha1.UpdateJob, which string, number int64, attempt int32) *batchv1.Job {
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{
			Name: JobName(set.Name, which, number, attempt), Namespace: set.Namespace,
			Labels:          Merged(from.Labels, JobLabels(set, number)),
			Annotations:     maps.Clone(from.Annotations),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(set, v1alpha1.GroupVersion.WithKind(v1alpha1.Kind))},
		},
		Spec: *from.Spec.DeepCopy(),
	}
	job.Spec.Suspend, job.Spec.TTLSecondsAfterFinished = ptr.To(true), nil
	return job
}

// JobLabels returns the labels by which the operator finds the Jobs of a version.
func JobLabels(set *v1alpha1.ExtendedStatefulSet, number int64) map[string]string {
	return map[string]string{v1alpha1.LabelSet: set.Name, v1alpha1.LabelVersion: strconv.FormatInt(number, 10)}
}
