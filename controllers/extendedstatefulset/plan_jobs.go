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

// jobOfCanaries returns the Job that checks the canaries of the first zone, or nil.
func jobOfCanaries(s *v1alpha1.UpdateStrategy) *v1alpha1.UpdateJob {
	moments := []v1alpha1.When{v1alpha1.WhenCanary, v1alpha1.WhenBoth}
	if job := s.PostUpdateJob; job != nil && slices.Contains(moments, job.When) {
		return job
	}
	return nil
}

// jobOfAll returns the Job that runs when a version has all its pods, or nil.
func jobOfAll(s *v1alpha1.UpdateStrategy) *v1alpha1.UpdateJob {
	if job := s.PostUpdateJob; job != nil && job.When != v1alpha1.WhenCanary {
		return job
	}
	return nil
}

// askedJob is a Job of an attempt, and its record.
type askedJob struct {
	which  string
	from   *v1alpha1.UpdateJob // nil if there is no Job
	record *v1alpha1.JobStatus
}

// askedNow returns the Job of the present phase.
func askedNow(f *facts) askedJob {
	return askedIn(f.set, f.record)
}

// askedIn returns the Job of the phase in the given status.
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

// due reports whether a Job must be created or started. A Job for canaries is due while they are good.
// If they no longer are, a running Job continues.
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

// is reports whether a Job is the recorded one.
func (a askedJob) is(job *batchv1.Job) bool {
	return a.from != nil && a.record != nil && a.record.UID == job.UID
}

// runJobs creates the Job of the present phase suspended, and starts it once its UID is recorded. It
// suspends Jobs that are no longer needed.
func runJobs(f *facts, p *plan) {
	asked := askedNow(f)
	if asked.due(f.record.Update) {
		runJob(f, p, asked)
	}
	if asked.from != nil && asked.record != nil && asked.record.Result == v1alpha1.JobUnknown {
		p.waitFor("the result of Job " + asked.record.Name + " is known, see condition Degraded")
	}
	for _, name := range slices.Sorted(maps.Keys(f.jobs)) {
		job := f.jobs[name]
		if asked.is(job) || !mayRun(job) {
			continue
		}
		if wait := stoppedAt(job).Add(stopInterval).Sub(f.now); wait > 0 { // other clients resume it
			p.LookAgain(wait)
			continue
		}
		p.Do(stop(job, f.now))
	}
}

// isOnRecord reports whether a Job is the recorded one, and has no recorded result.
func isOnRecord(job *batchv1.Job, record *v1alpha1.JobStatus) bool {
	return job != nil && record != nil && job.UID == record.UID && record.Result == ""
}

// mayBegin reports whether the operator still has to start a Job. It starts each Job once: if the Job
// is suspended later, or a queue admits it, another client must resume it.
func mayBegin(job *batchv1.Job) bool {
	return isSuspended(job) && !wasStarted(job) && queueOf(job) == ""
}

// isSuspended reports whether a Job is suspended and not terminating.
func isSuspended(job *batchv1.Job) bool {
	return ptr.Deref(job.Spec.Suspend, false) && job.DeletionTimestamp == nil
}

// wasStarted reports whether the operator has started a Job.
func wasStarted(job *batchv1.Job) bool {
	return job.Annotations[v1alpha1.AnnotationStarted] == v1alpha1.True
}

// mayRun reports whether pods of a Job run or may start.
func mayRun(job *batchv1.Job) bool {
	ended := hasEnded(job, batchv1.JobComplete) || hasEnded(job, batchv1.JobFailed)
	return !ended && !ptr.Deref(job.Spec.Suspend, false) && job.DeletionTimestamp == nil
}

// runJob creates a Job, or starts it if it is the recorded one.
func runJob(f *facts, p *plan, a askedJob) {
	name := f.jobName(a.which, f.record)
	job := f.jobs[name]
	switch {
	case a.record == nil && job == nil:
		p.Do(action.Chain{{Verb: action.Create, Object: buildJob(f.set, a.from, a.which, f.record.UpdateVersion,
			f.record.Update.EarlierAttempts+f.record.Attempts), Reason: reasonJob, Detail: "suspended"}})
		p.LookAgain(lostJobTime) // there is no event if a policy removes the label of the Job
	case isOnRecord(job, a.record) && mayBegin(job):
		p.Do(start(f, job))
	case isOnRecord(job, a.record) && isSuspended(job):
		p.waitFor(suspension(job))
		return
	}
	p.waitFor("Job " + name + " ends")
}

// start resumes a Job and marks it as started, in one write, so that a started Job is never started
// again. It removes a TTL that a policy has set, so that the Job exists until its result is recorded.
// It also restores the operator's labels.
func start(f *facts, job *batchv1.Job) action.Chain {
	next := job.DeepCopy()
	next.Spec.Suspend, next.Spec.TTLSecondsAfterFinished = ptr.To(false), nil // a policy may have set a TTL
	next.Annotations = merged(next.Annotations, map[string]string{v1alpha1.AnnotationStarted: v1alpha1.True})
	next.Labels = merged(next.Labels, jobLabels(f.set, f.record.UpdateVersion))
	return patchJob(job, next, "started")
}

// stop suspends a Job that is no longer needed, and records the time.
func stop(job *batchv1.Job, now time.Time) action.Chain {
	next := job.DeepCopy()
	next.Spec.Suspend = ptr.To(true)
	next.Annotations = merged(next.Annotations, map[string]string{v1alpha1.AnnotationStopped: now.UTC().Format(time.RFC3339)})
	return patchJob(job, next, "suspended: no longer needed")
}

// stoppedAt returns when the operator last suspended a Job that is no longer needed; zero if never.
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

// Kueue suspends the Jobs that it manages, and resumes them when quota is available.
const (
	queueLabel = "kueue.x-k8s.io/queue-name"
	queueName  = "kueue"
)

// queueOf returns the queue of a Job; "" if it has none. Kueue may also manage Jobs without the label;
// it then suspends them itself.
func queueOf(job *batchv1.Job) string {
	return job.Labels[queueLabel]
}

// isQueued reports whether a queue suspends a Job and will resume it.
func isQueued(job *batchv1.Job) bool {
	return queueOf(job) != "" || strings.Contains(suspender(job), queueName)
}

// suspender returns the field manager that suspended a Job after the operator had started it. It
// returns "" if the operator is the manager, because a webhook or policy changed its write.
func suspender(job *batchv1.Job) string {
	for _, f := range job.ManagedFields {
		if ownsField(f, "suspend") && !ownsField(f, v1alpha1.AnnotationStarted) {
			return f.Manager
		}
	}
	return ""
}

// ownsField reports whether a field manager owns the field with the given name.
func ownsField(f metav1.ManagedFieldsEntry, name string) bool {
	return f.FieldsV1 != nil && bytes.Contains(f.FieldsV1.GetRawBytes(), []byte(`"f:`+name+`"`))
}

// cutJob is a cache transform that keeps only one field manager of a Job: the one that suspended it.
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

// suspension describes the event that a suspended Job waits for.
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

// suspendedJob returns the Job that blocks the upgrade because another client suspended it, or nil.
func suspendedJob(f *facts) *batchv1.Job {
	asked := askedNow(f)
	if asked.from == nil || asked.record == nil {
		return nil
	}
	job := f.jobs[asked.record.Name]
	if isOnRecord(job, asked.record) && isSuspended(job) && !mayBegin(job) {
		return job
	}
	return nil
}

// jobHeld reports a suspended Job that no queue will resume.
func jobHeld(f *facts, _ *plan) notice {
	job := suspendedJob(f)
	if job == nil || isQueued(job) {
		return notice{}
	}
	return notice{Reason: v1alpha1.ReasonJobSuspended, Message: "the upgrade waits until " + suspension(job)}
}

// jobUnknown reports a Job whose result is unknown, and the two ways to continue.
func jobUnknown(f *facts, _ *plan) notice {
	a := askedNow(f)
	if a.from == nil || a.record == nil || a.record.Result != v1alpha1.JobUnknown {
		return notice{}
	}
	field := "postUpdateJob"
	if a.which == preJob {
		field = "preUpdateJob"
	}
	patch := func(strategy string) string {
		return fmt.Sprintf(`kubectl -n %s patch ests %s --type=merge -p '{"spec":{"updateStrategy":{%s}}}'`, f.set.Namespace, f.set.Name, strategy)
	}
	return notice{Reason: v1alpha1.ReasonJobResultUnknown, Message: fmt.Sprintf(
		"Job %s was deleted before the operator observed its result, so it may have succeeded or failed. To continue as if it had succeeded: %s. To run it again: %s",
		a.record.Name, patch(fmt.Sprintf(`"%s":{"onFailure":"Continue"}`, field)), patch(fmt.Sprintf(`"retryCount":%d`, f.record.Attempts)))}
}
