package facts

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/children"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/spec"
)

// PhaseJob is the Job that the phase of an upgrade requires, and its record.
type PhaseJob struct {
	Which  string              // children.PreJob, CanaryJob or PostJob
	From   *v1alpha1.UpdateJob // nil if the phase requires no Job
	Record *v1alpha1.JobStatus // nil before the Job is created
}

// Kueue suspends the Jobs that it manages, and resumes them when quota is available.
const (
	QueueLabel = "kueue.x-k8s.io/queue-name"
	queueName  = "kueue" // part of the names of its field managers
)

// JobOfPhase returns the Job of the present phase.
func JobOfPhase(f *Facts) PhaseJob {
	return JobOfPhaseIn(f.Set, f.Record)
}

// JobOfPhaseIn returns the Job of the phase in the given status.
func JobOfPhaseIn(set *v1alpha1.ExtendedStatefulSet, s *v1alpha1.ExtendedStatefulSetStatus) PhaseJob {
	u, strategy := s.Update, &set.Spec.UpdateStrategy
	if u == nil || u.Returning {
		return PhaseJob{}
	}
	switch s.Phase {
	case v1alpha1.PhasePreJob:
		return PhaseJob{children.PreJob, strategy.PreUpdateJob, u.PreJob}
	case v1alpha1.PhaseCanary:
		return PhaseJob{children.CanaryJob, spec.JobOfCanaries(strategy), u.CanaryJob}
	case v1alpha1.PhasePostJob:
		return PhaseJob{children.PostJob, spec.JobOfAll(strategy), u.PostJob}
	}
	return PhaseJob{}
}

// Due reports whether a Job must be created or started. A Job for canaries is due while they are good.
// If they no longer are, a running Job continues.
func (a PhaseJob) Due(u *v1alpha1.UpdateStatus) bool {
	switch {
	case a.From == nil:
		return false
	case a.Record != nil && a.Record.Result != "":
		return false
	case a.Which == children.CanaryJob:
		return u.GoodAt != nil
	}
	return true
}

// Is reports whether a Job is the recorded one.
func (a PhaseJob) Is(job *batchv1.Job) bool {
	return a.From != nil && a.Record != nil && a.Record.UID == job.UID
}

// IsOnRecord reports whether a Job is the recorded one, and has no recorded result.
func IsOnRecord(job *batchv1.Job, record *v1alpha1.JobStatus) bool {
	return job != nil && record != nil && job.UID == record.UID && record.Result == ""
}

// MustStart reports whether the operator still has to start a Job. It starts each Job once: if the Job
// is suspended later, another client must resume it. A Job with a queue is started by the queue.
func MustStart(job *batchv1.Job) bool {
	return IsSuspended(job) && !wasStarted(job) && queueOf(job) == ""
}

// IsSuspended reports whether a Job is suspended and not terminating.
func IsSuspended(job *batchv1.Job) bool {
	return ptr.Deref(job.Spec.Suspend, false) && job.DeletionTimestamp == nil
}

// wasStarted reports whether the operator has started a Job.
func wasStarted(job *batchv1.Job) bool {
	return job.Annotations[v1alpha1.AnnotationStarted] == v1alpha1.True
}

// MayRun reports whether pods of a Job run or may start.
func MayRun(job *batchv1.Job) bool {
	ended := hasEnded(job, batchv1.JobComplete) || hasEnded(job, batchv1.JobFailed)
	return !ended && !ptr.Deref(job.Spec.Suspend, false) && job.DeletionTimestamp == nil
}

// StoppedAt returns when the operator last suspended a Job that is no longer needed; zero if never.
func StoppedAt(job *batchv1.Job) time.Time {
	at, _ := time.Parse(time.RFC3339, job.Annotations[v1alpha1.AnnotationStopped])
	return at
}

// queueOf returns the queue of a Job; "" if it has none. Kueue may also manage Jobs without the label;
// it then suspends them itself.
func queueOf(job *batchv1.Job) string {
	return job.Labels[QueueLabel]
}

// IsQueued reports whether a queue suspends a Job and will resume it.
func IsQueued(job *batchv1.Job) bool {
	return queueOf(job) != "" || strings.Contains(Suspender(job), queueName)
}

// Suspender returns the field manager that suspended a Job after the operator had started it. It
// returns "" if the operator is the manager, because a webhook or policy changed its write.
func Suspender(job *batchv1.Job) string {
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

// Suspension describes the event that a suspended Job waits for. The text follows "waiting until".
func Suspension(job *batchv1.Job) string {
	queue := queueOf(job)
	switch {
	case queue != "":
		return fmt.Sprintf("Job %s is admitted: queue %s (label %s) keeps it suspended; to see why: kubectl -n %s get workloads",
			job.Name, queue, QueueLabel, job.Namespace)
	case IsQueued(job):
		return fmt.Sprintf("Job %s is admitted: %s keeps it suspended; to see why: kubectl -n %s get workloads",
			job.Name, Suspender(job), job.Namespace)
	}
	by := "a webhook or policy"
	if manager := Suspender(job); manager != "" {
		by = "field manager " + manager
	}
	return fmt.Sprintf("Job %s is resumed: %s suspended it after the operator had started it; to resume it: kubectl -n %s patch job %s --type=merge -p '{\"spec\":{\"suspend\":false}}'",
		job.Name, by, job.Namespace, job.Name)
}

// SuspendedJob returns the Job that blocks the upgrade because another client suspended it, or nil.
func SuspendedJob(f *Facts) *batchv1.Job {
	wanted := JobOfPhase(f)
	if wanted.From == nil || wanted.Record == nil {
		return nil
	}
	job := f.Jobs[wanted.Record.Name]
	if IsOnRecord(job, wanted.Record) && IsSuspended(job) && !MustStart(job) {
		return job
	}
	return nil
}

// JobName returns the name of a Job of the attempt in progress.
func (w *World) JobName(which string, s *v1alpha1.ExtendedStatefulSetStatus) string {
	return children.JobName(w.Set.Name, which, s.UpdateVersion, s.Update.EarlierAttempts+s.Attempts)
}

// VersionOfJob returns the version that a Job belongs to.
func VersionOfJob(job *batchv1.Job) int64 {
	number, _ := strconv.ParseInt(job.Labels[v1alpha1.LabelVersion], 10, 64)
	return number
}

// EndOf returns the result of a Job; "" if it has not ended.
func EndOf(job *batchv1.Job) v1alpha1.JobResult {
	switch {
	case hasEnded(job, batchv1.JobComplete):
		return v1alpha1.JobSucceeded
	case hasEnded(job, batchv1.JobFailed):
		return v1alpha1.JobFailed
	}
	return ""
}

// hasEnded reports whether a Job has the given condition.
func hasEnded(job *batchv1.Job, as batchv1.JobConditionType) bool {
	return slices.ContainsFunc(job.Status.Conditions, func(c batchv1.JobCondition) bool {
		return c.Type == as && c.Status == corev1.ConditionTrue
	})
}
