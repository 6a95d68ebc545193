package rules

import (
	"maps"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/utils/ptr"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/children"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/spec"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
)

// runJobs creates the Job of the present phase suspended, and starts it once its UID is recorded. It
// suspends Jobs that are no longer needed.
func runJobs(f *facts.Facts, p *Plan) {
	wanted := facts.JobOfPhase(f)
	if wanted.Due(f.Record.Update) {
		runJob(f, p, wanted)
	}
	if wanted.From != nil && wanted.Record != nil && wanted.Record.Result == v1alpha1.JobUnknown {
		p.waitFor("the result of Job " + wanted.Record.Name + " is known, see condition Degraded")
	}
	for _, name := range slices.Sorted(maps.Keys(f.Jobs)) {
		job := f.Jobs[name]
		if wanted.Is(job) || !facts.MayRun(job) {
			continue
		}
		if wait := facts.StoppedAt(job).Add(spec.StopInterval).Sub(f.Now); wait > 0 { // other clients resume it
			p.LookAgain(wait)
			continue
		}
		p.Do(stop(job, f.Now))
	}
}

// runJob creates a Job, or starts it if it is the recorded one.
func runJob(f *facts.Facts, p *Plan, a facts.PhaseJob) {
	name := f.JobName(a.Which, f.Record)
	job := f.Jobs[name]
	switch {
	case a.Record == nil && job == nil:
		p.Do(action.Chain{{Verb: action.Create, Object: children.BuildJob(f.Set, a.From, a.Which, f.Record.UpdateVersion,
			f.Record.Update.EarlierAttempts+f.Record.Attempts), Reason: reasonJob, Detail: "suspended"}})
		p.LookAgain(spec.LostJobTime) // there is no event if a policy removes the label of the Job
	case facts.IsOnRecord(job, a.Record) && facts.MustStart(job):
		p.Do(Start(f, job))
	case facts.IsOnRecord(job, a.Record) && facts.IsSuspended(job):
		p.waitFor(facts.Suspension(job))
		return
	}
	p.waitFor("Job " + name + " ends")
}

// Start resumes a Job and marks it as started, in one write, so that a started Job is never started
// again. It removes a TTL that a policy has set, so that the Job exists until its result is recorded.
// It also restores the operator's labels.
func Start(f *facts.Facts, job *batchv1.Job) action.Chain {
	next := job.DeepCopy()
	next.Spec.Suspend, next.Spec.TTLSecondsAfterFinished = ptr.To(false), nil // a policy may have set a TTL
	next.Annotations = children.Merged(next.Annotations, map[string]string{v1alpha1.AnnotationStarted: v1alpha1.True})
	next.Labels = children.Merged(next.Labels, children.JobLabels(f.Set, f.Record.UpdateVersion))
	return patchJob(job, next, "started")
}

// stop suspends a Job that is no longer needed, and records the time.
func stop(job *batchv1.Job, now time.Time) action.Chain {
	next := job.DeepCopy()
	next.Spec.Suspend = ptr.To(true)
	next.Annotations = children.Merged(next.Annotations, map[string]string{v1alpha1.AnnotationStopped: now.UTC().Format(time.RFC3339)})
	return patchJob(job, next, "suspended: no longer needed")
}

// patchJob returns the patch of a Job.
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
