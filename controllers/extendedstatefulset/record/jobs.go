package record

import (
	"fmt"

	batchv1 "k8s.io/api/batch/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/facts"
)

// job follows a Job of the attempt, and returns the result that applies to the upgrade: with onFailure
// Continue, a failed Job counts as succeeded. The UID of a Job is recorded before the Job is started,
// so a missing recorded Job counts as having run.
func (r *recorder) job(which string, from *v1alpha1.UpdateJob, record **v1alpha1.JobStatus) v1alpha1.JobResult {
	name := r.w.JobName(which, r.ExtendedStatefulSetStatus)
	job := r.w.Jobs[name]
	if *record == nil {
		if job != nil && job.DeletionTimestamp == nil {
			*record = &v1alpha1.JobStatus{Name: name, UID: job.UID}
		}
		return ""
	}
	if (*record).Result == "" {
		(*record).Result = resultOf(r.w, job, *record)
	}
	switch result := (*record).Result; {
	case result == "" || from == nil:
		return result
	case from.OnFailure == v1alpha1.OnFailureContinue:
		return v1alpha1.JobSucceeded
	case result == v1alpha1.JobUnknown && r.Attempts <= r.w.Set.Spec.UpdateStrategy.RetryCount:
		r.repeatJob(record)
		return ""
	default:
		return result
	}
}

// repeatJob begins another attempt with the present StatefulSets, because the result of the Job is
// unknown. A Job runs at most once for an attempt, so the next attempt has its own Job.
func (r *recorder) repeatJob(record **v1alpha1.JobStatus) {
	now := r.now()
	r.Attempts, r.Update.StartedAt, *record = r.Attempts+1, &now, nil
}

// unfinished returns a text about a Job without a result; "" if there is none.
func unfinished(w *facts.World, record *v1alpha1.JobStatus) string {
	if record == nil {
		return ""
	}
	if record.Result == v1alpha1.JobUnknown {
		return fmt.Sprintf("; Job %s was deleted before the operator observed its result", record.Name)
	}
	if record.Result != "" {
		return ""
	}
	if job := w.Jobs[record.Name]; facts.IsOnRecord(job, record) && facts.IsSuspended(job) {
		return fmt.Sprintf("; Job %s is suspended", job.Name)
	}
	return fmt.Sprintf("; Job %s has not ended", record.Name)
}

// resultOf returns the result of a recorded Job; "" until it is determined.
func resultOf(w *facts.World, job *batchv1.Job, record *v1alpha1.JobStatus) v1alpha1.JobResult {
	if job == nil || job.UID != record.UID {
		return w.LostJobs[record.UID]
	}
	return facts.EndOf(job)
}
