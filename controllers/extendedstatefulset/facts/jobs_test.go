package facts_test

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/fixture"
)

// TestStatesOfAJob checks who has to start a Job, and whether its pods may run.
func TestStatesOfAJob(t *testing.T) {
	suspended := func(j *batchv1.Job) { j.Spec.Suspend = ptr.To(true) }
	terminating := func(j *batchv1.Job) { j.DeletionTimestamp = &metav1.Time{Time: fixture.Noon} }
	ended := func(as batchv1.JobConditionType) func(*batchv1.Job) {
		return func(j *batchv1.Job) {
			j.Status.Conditions = []batchv1.JobCondition{{Type: as, Status: corev1.ConditionTrue}}
		}
	}
	for _, r := range []struct {
		name           string
		changes        []func(*batchv1.Job)
		begins, runs   bool
		end            v1alpha1.JobResult
		queued, waited bool
	}{
		{"a Job that was created", []func(*batchv1.Job){suspended}, true, false, "", false, true},
		{"a Job that was started", []func(*batchv1.Job){fixture.Started, func(j *batchv1.Job) { j.Spec.Suspend = ptr.To(false) }}, false, true, "", false, false},
		{"a Job that was suspended after its start", []func(*batchv1.Job){suspended, fixture.Started}, false, false, "", false, true},
		{"a Job with a queue", []func(*batchv1.Job){suspended, fixture.Queued}, false, false, "", true, true},
		{"a Job that Kueue suspended without a label", []func(*batchv1.Job){suspended, fixture.Started, fixture.ManagedBy("kueue-controller", fixture.SuspendField)}, false, false, "", true, true},
		{"a terminating Job", []func(*batchv1.Job){suspended, terminating}, false, false, "", false, false},
		{"a complete Job", []func(*batchv1.Job){ended(batchv1.JobComplete)}, false, false, v1alpha1.JobSucceeded, false, false},
		{"a failed Job", []func(*batchv1.Job){ended(batchv1.JobFailed)}, false, false, v1alpha1.JobFailed, false, false},
	} {
		job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{}}}
		for _, change := range r.changes {
			change(job)
		}
		if got := facts.MustStart(job); got != r.begins {
			t.Errorf("%s: the operator starts it: %t", r.name, got)
		}
		if got := facts.MayRun(job); got != r.runs {
			t.Errorf("%s: its pods may run: %t", r.name, got)
		}
		if got := facts.EndOf(job); got != r.end {
			t.Errorf("%s: its result is %q", r.name, got)
		}
		if got := facts.IsQueued(job); got != r.queued {
			t.Errorf("%s: a queue resumes it: %t", r.name, got)
		}
		if got := facts.IsSuspended(job); got != r.waited {
			t.Errorf("%s: it is suspended: %t", r.name, got)
		}
	}
}

// TestWhichJobIsDue checks which Job a phase runs, and when.
func TestWhichJobIsDue(t *testing.T) {
	good := &metav1.Time{Time: fixture.Noon}
	for _, r := range []struct {
		name  string
		phase v1alpha1.Phase
		u     *v1alpha1.UpdateStatus
		which string
		due   bool
	}{
		{"before the upgrade", v1alpha1.PhasePreJob, &v1alpha1.UpdateStatus{}, "pre", true},
		{"its result is recorded", v1alpha1.PhasePreJob, &v1alpha1.UpdateStatus{PreJob: &v1alpha1.JobStatus{Result: v1alpha1.JobSucceeded}}, "pre", false},
		{"canaries that are not good", v1alpha1.PhaseCanary, &v1alpha1.UpdateStatus{}, "canary", false},
		{"good canaries", v1alpha1.PhaseCanary, &v1alpha1.UpdateStatus{GoodAt: good}, "canary", true},
		{"a rollback", v1alpha1.PhasePreJob, &v1alpha1.UpdateStatus{Returning: true}, "", false},
		{"promoting", v1alpha1.PhasePromoting, &v1alpha1.UpdateStatus{}, "", false},
	} {
		set := fixture.Plain()
		set.Spec.UpdateStrategy.PreUpdateJob = fixture.Job("x")
		set.Spec.UpdateStrategy.PostUpdateJob = fixture.Job("x")
		set.Spec.UpdateStrategy.PostUpdateJob.When = v1alpha1.WhenCanary
		asked := facts.JobOfPhaseIn(set, &v1alpha1.ExtendedStatefulSetStatus{Phase: r.phase, Update: r.u})
		if asked.Which != r.which || asked.Due(r.u) != r.due {
			t.Errorf("%s: job %q, due: %t", r.name, asked.Which, asked.Due(r.u))
		}
	}
}
