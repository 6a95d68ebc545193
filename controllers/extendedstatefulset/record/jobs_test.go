package record_test

import (
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/children"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/record"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/spec"
)

func TestE39AJobIsAskedAboutTheCanaries(t *testing.T) {
	const canary, both, all, yes, no = v1alpha1.WhenCanary, v1alpha1.WhenBoth, v1alpha1.WhenAllPods, v1alpha1.JobSucceeded, v1alpha1.JobFailed
	notYet := func(w *facts.World) { w.Set.Status.Update.GoodAt = nil }
	ready := func() *fixture.Scene { return triedBeside().But(automatic) }
	for _, row := range []fixture.Sentence{
		{"no job is created before the canaries are good", triedBeside(0).But(automatic).But(fixture.AskedAt(canary, "none")).But(notYet), ""},
		{"good canaries are recorded before the job is created", ready().But(fixture.AskedAt(canary, "none")).But(notYet), "record: Canary, version 1 to 2, attempt 1, canaries are good"},
		{"the job is created when the canaries are good", ready().But(fixture.AskedAt(canary, "none")), "create job db-canary-v2-1: Job, suspended\n"},
		{"the job is created for the canaries with when Both", ready().But(fixture.AskedAt(both, "none")), "create job db-canary-v2-1: Job, suspended\n"},
		{"no job is created for the canaries with when AllPods", ready().But(fixture.AskedAt(all, "none")).But(notYet), goesOn},
		{"no job is created for the canaries without when", ready().But(fixture.AskedAt("", "none")).But(notYet), goesOn},
		{"nothing is changed while the job runs", ready().But(fixture.AskedAt(canary, "")).After(9 * time.Minute), ""},
		{"the job is limited by updateWatchTime", ready().But(fixture.AskedAt(canary, "")).After(10*time.Minute + spec.MaxProbation), "record: Stale, version 1 to 2, attempt 1, UpdateTimeout, db-canary-v2-1 is known"},
		{"the upgrade continues if the job succeeds", ready().But(fixture.AskedAt(canary, yes)), goesOn + ", db-canary-v2-1 Succeeded"},
		{"the version is stale if the job fails", ready().But(fixture.AskedAt(canary, no)), "record: Stale, version 1 to 2, attempt 1, PostUpdateJobFailed, db-canary-v2-1 Failed"},
		{"the upgrade continues if the job fails with onFailure Continue", ready().But(fixture.AskedAt(canary, no)).But(func(w *facts.World) {
			w.Set.Spec.UpdateStrategy.PostUpdateJob.OnFailure = v1alpha1.OnFailureContinue
		}), goesOn + ", db-canary-v2-1 Failed"},
		{"W19 a job that was deleted before it ended has failed", ready().But(fixture.AskedAt(canary, "")).But(lost("j", no)),
			"record: Stale, version 1 to 2, attempt 1, PostUpdateJobFailed, db-canary-v2-1 Failed"},
		{"W19 the result of a missing job is unknown", ready().But(fixture.AskedAt(canary, "")).But(lost("j", v1alpha1.JobUnknown)),
			"record: Canary, version 1 to 2, attempt 1, canaries are good, db-canary-v2-1 Unknown"},
		{"the version is stale if the job fails after the canaries failed", triedBeside(0).But(fixture.AskedAt(canary, no)),
			"record: Stale, version 1 to 2, attempt 1, PostUpdateJobFailed, db-canary-v2-1 Failed"},
		{"the upgrade waits if the job succeeds after the canaries failed", triedBeside(0).But(fixture.AskedAt(canary, yes)), mended + ", db-canary-v2-1 Succeeded"},
		{"the job continues if the canaries fail", triedBeside(0).But(fixture.AskedAt(canary, "")).But(notYet), ""},
		{"the job is suspended if postUpdateJob is removed", triedBeside(0).But(fixture.AskedAt(canary, "")).But(notYet).But(func(w *facts.World) { w.Set.Spec.UpdateStrategy.PostUpdateJob = nil }),
			"patch job db-canary-v2-1: Job, suspended: no longer needed\n"},
		{"the upgrade waits for approval after the job succeeded", triedBeside().But(fixture.AskedAt(canary, yes)), waits + ", db-canary-v2-1 Succeeded"},
		{"an approved upgrade waits for the job", triedBeside().But(fixture.Approved).But(fixture.AskedAt(canary, "none")), "create job db-canary-v2-1: Job, suspended\n"},
		{"a job that is added while the upgrade waits for approval runs, and its time counts", triedBeside().But(fixture.AskedAt(canary, "none")).But(fixture.Held(0)).After(time.Hour), "record: Canary, version 1 to 2, attempt 1, canaries are good"},
		{"the upgrade continues if the job ran in another zone", triedBeside().But(automatic).But(fixture.AskedAt(canary, "")).But(notYet).But(func(w *facts.World) {
			w.Jobs, w.Set.Status.Update.CanaryJob.Result = nil, yes
		}), goesOn + ", db-canary-v2-1 Succeeded"},
		{"the job does not run again for all pods with when Canary", fixture.Of(fixture.Plain()).Has(1, children.Span{Start: 0, Replicas: 3}).Upgrading(v1alpha1.PhasePromoting, v1alpha1.HandoverCoexist).Has(2, children.Span{Start: 0, Replicas: 3}).
			But(fixture.AskedAt(canary, "none")).But(notYet), "record: CleaningUp, version 2"},
		{"the job runs again for all pods with when Both", fixture.Of(fixture.Plain()).Has(1, children.Span{Start: 0, Replicas: 3}).Upgrading(v1alpha1.PhasePostJob, v1alpha1.HandoverCoexist).Has(2, children.Span{Start: 0, Replicas: 3}).
			But(fixture.AskedAt(both, "none")).But(notYet), "create job db-post-v2-1: Job, suspended\n"},
	} {
		t.Run(row.Name, func(t *testing.T) { fixture.CheckSentence(t, row) })
	}
}

func TestW18ATimeoutSaysThatAJobWasSuspended(t *testing.T) {
	s := fixture.BeforeUpdate(fixture.Started).After(10 * time.Minute)
	if got := record.Advance(s.W).Update.Message; !strings.Contains(got, "Job db-pre-v2-1 is suspended") {
		t.Errorf("got message %s", got)
	}
}

// TestJobOfRecord verifies E25: a Job counts as having run once its UID is recorded, and only the Job
// with this UID counts.
func TestJobOfRecord(t *testing.T) {
	complete := batchv1.JobStatus{Conditions: []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}}}
	before := func(record *v1alpha1.JobStatus, job *batchv1.Job) *fixture.Scene {
		return fixture.Of(fixture.Plain()).Has(1, children.Span{Start: 0, Replicas: 3}).Upgrading(v1alpha1.PhasePreJob, v1alpha1.HandoverCoexist).But(func(w *facts.World) {
			w.Set.Spec.UpdateStrategy.PreUpdateJob = &v1alpha1.UpdateJob{}
			w.Set.Status.Update.PreJob = record
			job.Name, job.Status = "db-pre-v2-1", complete
			w.Jobs = map[string]*batchv1.Job{job.Name: job}
		})
	}
	record := &v1alpha1.JobStatus{Name: "db-pre-v2-1", UID: "a"}
	unknown := &v1alpha1.JobStatus{Name: "db-pre-v2-1", UID: "a", Result: v1alpha1.JobUnknown}
	for _, row := range []fixture.Sentence{
		{"an existing job is recorded", before(nil, &batchv1.Job{ObjectMeta: metav1.ObjectMeta{UID: "a"}}), "record: PreJob, version 1 to 2, attempt 1, db-pre-v2-1 is known"},
		{"a terminating job is not recorded", before(nil, &batchv1.Job{ObjectMeta: metav1.ObjectMeta{UID: "a", DeletionTimestamp: ptr.To(metav1.NewTime(fixture.Noon))}}), ""},
		{"the result of the recorded job applies", before(record.DeepCopy(), &batchv1.Job{ObjectMeta: metav1.ObjectMeta{UID: "a"}}), "record: Canary, version 1 to 2, attempt 1, db-pre-v2-1 Succeeded"},
		{"the result of another job with the same name is ignored", before(record.DeepCopy(), &batchv1.Job{ObjectMeta: metav1.ObjectMeta{UID: "b"}}).But(lost("a", v1alpha1.JobUnknown)),
			"record: PreJob, version 1 to 2, attempt 1, db-pre-v2-1 Unknown"},
		{"W19 a missing job without a watch event is waited for", before(record.DeepCopy(), &batchv1.Job{}).But(func(w *facts.World) { w.Jobs = nil }), ""},
		{"W19 a job that was complete when it was deleted has succeeded", before(record.DeepCopy(), &batchv1.Job{}).But(lost("a", v1alpha1.JobSucceeded)),
			"record: Canary, version 1 to 2, attempt 1, db-pre-v2-1 Succeeded"},
		{"W19 a job that was deleted before it was complete has failed", before(record.DeepCopy(), &batchv1.Job{}).But(lost("a", v1alpha1.JobFailed)),
			"record: Aborted, version 1 to 2, attempt 1, PreUpdateJobFailed, db-pre-v2-1 Failed"},
		{"W19 a missing job has an unknown result", before(record.DeepCopy(), &batchv1.Job{}).But(lost("a", v1alpha1.JobUnknown)),
			"record: PreJob, version 1 to 2, attempt 1, db-pre-v2-1 Unknown"},
		{"W19 an upgrade waits while the result of a job is unknown", before(unknown.DeepCopy(), &batchv1.Job{}).But(lost("a", v1alpha1.JobUnknown)), ""},
		{"W19 an upgrade with an unknown result is aborted after updateWatchTime", before(unknown.DeepCopy(), &batchv1.Job{}).But(lost("a", v1alpha1.JobUnknown)).After(10 * time.Minute),
			"record: Aborted, version 1 to 2, attempt 1, PreUpdateJobFailed, db-pre-v2-1 Unknown"},
		{"W19 an upgrade with an unknown result continues with onFailure Continue", before(unknown.DeepCopy(), &batchv1.Job{}).But(lost("a", v1alpha1.JobUnknown)).But(func(w *facts.World) {
			w.Set.Spec.UpdateStrategy.PreUpdateJob.OnFailure = v1alpha1.OnFailureContinue
		}), "record: Canary, version 1 to 2, attempt 1, db-pre-v2-1 Unknown"},
		{"W19 an upgrade with an unknown result begins the next attempt if one is left", before(unknown.DeepCopy(), &batchv1.Job{}).But(lost("a", v1alpha1.JobUnknown)).But(func(w *facts.World) {
			w.Set.Spec.UpdateStrategy.RetryCount = 1
		}), "record: PreJob, version 1 to 2, attempt 2"},
	} {
		t.Run(row.Name, func(t *testing.T) { fixture.CheckSentence(t, row) })
	}
}
