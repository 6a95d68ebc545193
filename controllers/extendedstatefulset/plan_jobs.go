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
// on record; and suspends a job that nobody waits for any more.
func runJobs(w *world, p *plan) {
	u, phase := w.books.Update, w.books.Phase
	var running *v1alpha1.JobStatus
	switch {
	case u == nil || u.Returning:
	case phase == v1alpha1.PhasePreJob:
		running = w.runJob(p, preJob, w.set.Spec.UpdateStrategy.PreUpdateJob, u.PreJob)
	case phase == v1alpha1.PhasePostJob:
		running = w.runJob(p, postJob, w.set.Spec.UpdateStrategy.PostUpdateJob, u.PostJob)
	}
	for _, name := range slices.Sorted(maps.Keys(w.jobs)) {
		job := w.jobs[name]
		ended := hasEnded(job, batchv1.JobComplete) || hasEnded(job, batchv1.JobFailed)
		idle := running == nil || running.UID != job.UID
		if idle && !ended && !ptr.Deref(job.Spec.Suspend, false) && job.DeletionTimestamp == nil {
			p.Do(suspend(job, true, "nobody waits for it"))
		}
	}
}

func (w *world) runJob(p *plan, which string, from *v1alpha1.UpdateJob, record *v1alpha1.JobStatus) *v1alpha1.JobStatus {
	if from == nil {
		return nil
	}
	name := jobName(w.set.Name, which, w.books.UpdateVersion, w.books.Update.EarlierAttempts+w.books.Attempts)
	job := w.jobs[name]
	switch {
	case record == nil && job == nil:
		p.Do(action.Chain{{Verb: action.Create, Object: buildJob(w.set, from, which, w.books.UpdateVersion,
			w.books.Update.EarlierAttempts+w.books.Attempts), Reason: reasonJob, Detail: "suspended"}})
	case record == nil || record.Result != "" || job == nil || job.UID != record.UID || job.DeletionTimestamp != nil:
	case ptr.Deref(job.Spec.Suspend, false):
		p.Do(suspend(job, false, "goes"))
	}
	p.WaitFor("", "Job "+name+" ends")
	return record
}

func suspend(job *batchv1.Job, suspended bool, detail string) action.Chain {
	next := job.DeepCopy()
	next.Spec.Suspend = &suspended
	return action.Chain{{Verb: action.Patch, Object: next, From: job, Unchanged: true, Reason: reasonJob, Detail: detail}}
}
