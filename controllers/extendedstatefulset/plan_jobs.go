package extendedstatefulset

import (
	"maps"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/utils/ptr"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
)

// runJobs makes the job of the present phase, suspended; lets it go once its UID is
// on record; and suspends a job that nothing waits for any more.
func runJobs(w *world, p *plan) {
	u, strategy := w.record.Update, &w.set.Spec.UpdateStrategy
	var running *v1alpha1.JobStatus
	switch {
	case u == nil || u.Returning:
	case w.record.Phase == v1alpha1.PhasePreJob && strategy.PreUpdateJob != nil:
		running = u.PreJob
		runJob(w, p, preJob, strategy.PreUpdateJob, running)
	case w.record.Phase == v1alpha1.PhasePostJob && strategy.PostUpdateJob != nil:
		running = u.PostJob
		runJob(w, p, postJob, strategy.PostUpdateJob, running)
	}
	for _, name := range slices.Sorted(maps.Keys(w.jobs)) {
		job := w.jobs[name]
		waitedFor := running != nil && running.UID == job.UID
		if !waitedFor && mayRun(job) {
			p.Do(suspend(job, true, "suspended: no longer needed"))
		}
	}
}

// isOnRecord reports whether a job is the one on record, and its result is not known.
func isOnRecord(job *batchv1.Job, record *v1alpha1.JobStatus) bool {
	return job != nil && record != nil && job.UID == record.UID && record.Result == ""
}

// mayBegin reports whether a job is suspended and not being deleted.
func mayBegin(job *batchv1.Job) bool {
	return ptr.Deref(job.Spec.Suspend, false) && job.DeletionTimestamp == nil
}

// mayRun reports whether the pods of a job run or may begin to.
func mayRun(job *batchv1.Job) bool {
	ended := hasEnded(job, batchv1.JobComplete) || hasEnded(job, batchv1.JobFailed)
	return !ended && !ptr.Deref(job.Spec.Suspend, false) && job.DeletionTimestamp == nil
}

// runJob makes a job, or lets it go if it is the one on record.
func runJob(w *world, p *plan, which string, from *v1alpha1.UpdateJob, record *v1alpha1.JobStatus) {
	name := w.jobName(which, w.record)
	job := w.jobs[name]
	switch {
	case record == nil && job == nil:
		p.Do(action.Chain{{Verb: action.Create, Object: buildJob(w.set, from, which, w.record.UpdateVersion,
			w.record.Update.EarlierAttempts+w.record.Attempts), Reason: reasonJob, Detail: "suspended"}})
	case isOnRecord(job, record) && mayBegin(job):
		p.Do(suspend(job, false, "started"))
	}
	p.waitFor("Job " + name + " ends")
}

func suspend(job *batchv1.Job, suspended bool, detail string) action.Chain {
	next := job.DeepCopy()
	next.Spec.Suspend = &suspended
	return action.Chain{{
		Verb:      action.Patch,
		Object:    next,
		From:      job,
		Unchanged: true,
		Reason:    reasonJob,
		Detail:    detail,
	}}
}
