package extendedstatefulset

import (
	"maps"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/utils/ptr"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
)

// jobOfCanaries is the job that is asked about the first canaries; nil if none is.
func jobOfCanaries(s *v1alpha1.UpdateStrategy) *v1alpha1.UpdateJob {
	moments := []v1alpha1.When{v1alpha1.WhenCanary, v1alpha1.WhenBoth}
	if job := s.PostUpdateJob; job != nil && slices.Contains(moments, job.When) {
		return job
	}
	return nil
}

// jobOfAll is the job that is asked when a version has all its pods; nil if none is.
func jobOfAll(s *v1alpha1.UpdateStrategy) *v1alpha1.UpdateJob {
	if job := s.PostUpdateJob; job != nil && job.When != v1alpha1.WhenCanary {
		return job
	}
	return nil
}

// askedJob is a job that an attempt asks, and what is on record of it.
type askedJob struct {
	which  string
	from   *v1alpha1.UpdateJob // nil if none is asked
	record *v1alpha1.JobStatus
}

// askedNow is the job of the present phase.
func askedNow(w *world) askedJob {
	u, strategy := w.record.Update, &w.set.Spec.UpdateStrategy
	if u == nil || u.Returning {
		return askedJob{}
	}
	switch w.record.Phase {
	case v1alpha1.PhasePreJob:
		return askedJob{preJob, strategy.PreUpdateJob, u.PreJob}
	case v1alpha1.PhaseCanary:
		return askedJob{canaryJob, jobOfCanaries(strategy), u.CanaryJob}
	case v1alpha1.PhasePostJob:
		return askedJob{postJob, jobOfAll(strategy), u.PostJob}
	}
	return askedJob{}
}

// due reports whether a job is to be made, or to be let go: one about canaries when they
// are good. If they are not any more, one that runs runs on.
func (a askedJob) due(u *v1alpha1.UpdateStatus) bool {
	switch {
	case a.from == nil:
		return false
	case a.record != nil && a.record.Result != "":
		return false
	case a.which == canaryJob:
		return u.GoodAt != nil
	}
	return true
}

// is reports whether a job is the one on record.
func (a askedJob) is(job *batchv1.Job) bool {
	return a.from != nil && a.record != nil && a.record.UID == job.UID
}

// runJobs makes the job of the present phase, suspended; lets it go once its UID is
// on record; and suspends a job that nothing waits for any more.
func runJobs(w *world, p *plan) {
	asked := askedNow(w)
	if asked.due(w.record.Update) {
		runJob(w, p, asked)
	}
	for _, name := range slices.Sorted(maps.Keys(w.jobs)) {
		job := w.jobs[name]
		if !asked.is(job) && mayRun(job) {
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
func runJob(w *world, p *plan, a askedJob) {
	name := w.jobName(a.which, w.record)
	job := w.jobs[name]
	switch {
	case a.record == nil && job == nil:
		p.Do(action.Chain{{Verb: action.Create, Object: buildJob(w.set, a.from, a.which, w.record.UpdateVersion,
			w.record.Update.EarlierAttempts+w.record.Attempts), Reason: reasonJob, Detail: "suspended"}})
	case isOnRecord(job, a.record) && mayBegin(job):
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
