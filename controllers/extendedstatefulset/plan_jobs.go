package extendedstatefulset

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/slim"
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

// askedNow returns the job of the present phase.
func askedNow(w *world) askedJob {
	return askedIn(w.set, w.record)
}

// askedIn returns the job of the phase that a status of the set has.
func askedIn(set *v1alpha1.ExtendedStatefulSet, s *v1alpha1.ExtendedStatefulSetStatus) askedJob {
	u, strategy := s.Update, &set.Spec.UpdateStrategy
	if u == nil || u.Returning {
		return askedJob{}
	}
	switch s.Phase {
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
	if asked.from != nil && asked.record != nil && asked.record.Result == v1alpha1.JobUnknown {
		p.waitFor("the result of Job " + asked.record.Name + " is known, see condition Degraded")
	}
	for _, name := range slices.Sorted(maps.Keys(w.jobs)) {
		job := w.jobs[name]
		if asked.is(job) || !mayRun(job) {
			continue
		}
		if wait := stoppedAt(job).Add(stopInterval).Sub(w.now); wait > 0 { // others resume it
			p.LookAgain(wait)
			continue
		}
		p.Do(stop(job, w.now))
	}
}

// isOnRecord reports whether a job is the one on record, and its result is not known.
func isOnRecord(job *batchv1.Job, record *v1alpha1.JobStatus) bool {
	return job != nil && record != nil && job.UID == record.UID && record.Result == ""
}

// mayBegin reports whether the operator has yet to start a job. It does so once: if the job
// is suspended later, or admitted by a queue, another client resumes it.
func mayBegin(job *batchv1.Job) bool {
	return isSuspended(job) && !wasStarted(job) && queueOf(job) == ""
}

// isSuspended reports whether a job is suspended and not being deleted.
func isSuspended(job *batchv1.Job) bool {
	return ptr.Deref(job.Spec.Suspend, false) && job.DeletionTimestamp == nil
}

// wasStarted reports whether the operator has started a job.
func wasStarted(job *batchv1.Job) bool {
	return job.Annotations[v1alpha1.AnnotationStarted] == v1alpha1.True
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
		p.LookAgain(lostJobTime) // no event comes of a job whose label a policy removes
	case isOnRecord(job, a.record) && mayBegin(job):
		p.Do(start(w, job))
	case isOnRecord(job, a.record) && isSuspended(job):
		p.waitFor(suspension(job))
		return
	}
	p.waitFor("Job " + name + " ends")
}

// start resumes a job, and notes on it that it was started. Both are one write: a job that
// was started is never started again. A time to live that a policy has set is removed, so that
// the job stays until its result is on record. Our labels that it has removed are put back.
func start(w *world, job *batchv1.Job) action.Chain {
	next := job.DeepCopy()
	next.Spec.Suspend, next.Spec.TTLSecondsAfterFinished = ptr.To(false), nil // a policy may have set one
	next.Annotations = merged(next.Annotations, map[string]string{v1alpha1.AnnotationStarted: v1alpha1.True})
	next.Labels = merged(next.Labels, jobLabels(w.set, w.record.UpdateVersion))
	return patchJob(job, next, "started")
}

// stop suspends a job that is no longer needed, and notes when.
func stop(job *batchv1.Job, now time.Time) action.Chain {
	next := job.DeepCopy()
	next.Spec.Suspend = ptr.To(true)
	next.Annotations = merged(next.Annotations, map[string]string{v1alpha1.AnnotationStopped: now.UTC().Format(time.RFC3339)})
	return patchJob(job, next, "suspended: no longer needed")
}

// stoppedAt returns when the operator last suspended a job that is no longer needed; zero if
// it never did.
func stoppedAt(job *batchv1.Job) time.Time {
	at, _ := time.Parse(time.RFC3339, job.Annotations[v1alpha1.AnnotationStopped])
	return at
}

func patchJob(from, to *batchv1.Job, detail string) action.Chain {
	return action.Chain{{
		Verb:      action.Patch,
		Object:    to,
		From:      from,
		Unchanged: true,
		Reason:    reasonJob,
		Detail:    detail,
	}}
}

// Kueue suspends the Jobs that it manages, and resumes them when there is quota.
const (
	queueLabel = "kueue.x-k8s.io/queue-name"
	queueName  = "kueue"
)

// queueOf returns the queue that admits a job; "" if it is in none. Kueue may also manage
// jobs without the label: then it has suspended the job.
func queueOf(job *batchv1.Job) string {
	return job.Labels[queueLabel]
}

// isQueued reports whether a job is suspended by a queue, which resumes it.
func isQueued(job *batchv1.Job) bool {
	return queueOf(job) != "" || strings.Contains(suspender(job), queueName)
}

// suspender returns the field manager that suspended a job that the operator had started; ""
// if it is the operator itself, whose write a webhook or policy changed.
func suspender(job *batchv1.Job) string {
	for _, f := range job.ManagedFields {
		if ownsField(f, "suspend") && !ownsField(f, v1alpha1.AnnotationStarted) {
			return f.Manager
		}
	}
	return ""
}

// ownsField reports whether a manager owns a field of that name.
func ownsField(f metav1.ManagedFieldsEntry, name string) bool {
	return f.FieldsV1 != nil && bytes.Contains(f.FieldsV1.GetRawBytes(), []byte(`"f:`+name+`"`))
}

// cutJob is a cache transform that keeps of the managers of a Job the one that suspended it.
func cutJob(obj any) (any, error) {
	job, ok := obj.(*batchv1.Job)
	if !ok {
		return slim.Child(obj)
	}
	by := suspender(job)
	cut, err := slim.Child(job)
	if kept, isJob := cut.(*batchv1.Job); isJob && by != "" {
		kept.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: by, FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:suspend":{}}}`)}}
	}
	return cut, err
}

// suspension says what a job waits for that is suspended.
func suspension(job *batchv1.Job) string {
	queue := queueOf(job)
	switch {
	case queue != "":
		return fmt.Sprintf("Job %s is admitted: queue %s (label %s) keeps it suspended; to see why: kubectl -n %s get workloads",
			job.Name, queue, queueLabel, job.Namespace)
	case isQueued(job):
		return fmt.Sprintf("Job %s is admitted: %s keeps it suspended; to see why: kubectl -n %s get workloads",
			job.Name, suspender(job), job.Namespace)
	}
	by := "a webhook or policy"
	if manager := suspender(job); manager != "" {
		by = "field manager " + manager
	}
	return fmt.Sprintf("Job %s is resumed: %s suspended it after the operator had started it; to resume it: kubectl -n %s patch job %s --type=merge -p '{\"spec\":{\"suspend\":false}}'",
		job.Name, by, job.Namespace, job.Name)
}

// suspendedJob returns the Job that the upgrade waits for while another client keeps it
// suspended; nil if none is.
func suspendedJob(w *world) *batchv1.Job {
	asked := askedNow(w)
	if asked.from == nil || asked.record == nil {
		return nil
	}
	job := w.jobs[asked.record.Name]
	if isOnRecord(job, asked.record) && isSuspended(job) && !mayBegin(job) {
		return job
	}
	return nil
}

// jobHeld reports a Job that is suspended and that no queue resumes.
func jobHeld(w *world, _ *plan) notice {
	job := suspendedJob(w)
	if job == nil || isQueued(job) {
		return notice{}
	}
	return notice{Reason: v1alpha1.ReasonJobSuspended, Message: "the upgrade waits until " + suspension(job)}
}

// jobUnknown reports a job whose result is unknown, and the two ways to go on.
func jobUnknown(w *world, _ *plan) notice {
	a := askedNow(w)
	if a.from == nil || a.record == nil || a.record.Result != v1alpha1.JobUnknown {
		return notice{}
	}
	field := "postUpdateJob"
	if a.which == preJob {
		field = "preUpdateJob"
	}
	patch := func(strategy string) string {
		return fmt.Sprintf(`kubectl -n %s patch ests %s --type=merge -p '{"spec":{"updateStrategy":{%s}}}'`, w.set.Namespace, w.set.Name, strategy)
	}
	return notice{Reason: v1alpha1.ReasonJobResultUnknown, Message: fmt.Sprintf(
		"Job %s was deleted before the operator saw its result, so it may have succeeded or failed. To go on as if it had succeeded: %s. To run it once more: %s",
		a.record.Name, patch(fmt.Sprintf(`"%s":{"onFailure":"Continue"}`, field)), patch(fmt.Sprintf(`"retryCount":%d`, w.record.Attempts)))}
}
