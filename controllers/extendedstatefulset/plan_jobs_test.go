package extendedstatefulset

import (
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/children"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/observe"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/record"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/rules"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/spec"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/status"
)

// beforeUpdate returns an upgrade whose preUpdateJob is recorded and suspended.
func beforeUpdate(changes ...func(*batchv1.Job)) *scene {
	return of(plain()).has(1, children.Span{Start: 0, Replicas: 3}).upgrading(v1alpha1.PhasePreJob, v1alpha1.HandoverCoexist).but(func(w *facts.World) {
		w.Set.Spec.UpdateStrategy.PreUpdateJob = job("any")
		j := children.BuildJob(w.Set, w.Set.Spec.UpdateStrategy.PreUpdateJob, children.PreJob, 2, 1)
		j.UID = "j"
		for _, change := range changes {
			change(j)
		}
		w.Jobs = map[string]*batchv1.Job{j.Name: j}
		w.Set.Status.Update.PreJob = &v1alpha1.JobStatus{Name: j.Name, UID: j.UID}
	})
}

func started(j *batchv1.Job) {
	j.Annotations = children.Merged(j.Annotations, map[string]string{v1alpha1.AnnotationStarted: v1alpha1.True})
}

func queued(j *batchv1.Job) { j.Labels[facts.QueueLabel] = "tests" }

func managedBy(manager, fields string) func(*batchv1.Job) {
	return func(j *batchv1.Job) {
		j.ManagedFields = append(j.ManagedFields, metav1.ManagedFieldsEntry{Manager: manager, FieldsV1: metav1.NewFieldsV1(fields)})
	}
}

const suspendField = `{"f:spec":{"f:suspend":{}}}`

func TestW18AJobIsStartedOnce(t *testing.T) {
	notNeeded := func(ago time.Duration) *scene {
		return beforeUpdate(started, func(j *batchv1.Job) {
			j.Spec.Suspend = ptr.To(false)
			if ago > 0 {
				j.Annotations[v1alpha1.AnnotationStopped] = noon.Add(-ago).Format(time.RFC3339)
			}
		}).but(func(w *facts.World) {
			w.Set.Status.Phase, w.Set.Status.Update.Reason = v1alpha1.PhaseAborted, v1alpha1.ReasonPreJobFailed
		})
	}
	for _, row := range []sentence{
		{"W18 a recorded job is started", beforeUpdate(), "patch job db-pre-v2-1: Job, started\n"},
		{"W18 a job that another client suspended is not started again", beforeUpdate(started, managedBy("kubectl", suspendField)), ""},
		{"W18 a job that a queue admits is not started by the operator", beforeUpdate(queued), ""},
		{"W18 a job that is no longer needed is suspended", notNeeded(0), "patch job db-pre-v2-1: Job, suspended: no longer needed\n"},
		{"W18 a job that another client resumes is not suspended again immediately", notNeeded(spec.StopInterval - time.Second), ""},
		{"W18 a job that another client resumes is suspended again after a minute", notNeeded(spec.StopInterval), "patch job db-pre-v2-1: Job, suspended: no longer needed\n"},
	} {
		t.Run(row.name, row.check)
	}
}

func TestW18ConditionsSayWhoSuspendsAJob(t *testing.T) {
	const ours = `{"f:metadata":{"f:annotations":{"f:` + v1alpha1.AnnotationStarted + `":{}}},"f:spec":{"f:suspend":{}}}`
	const resume = `; to resume it: kubectl -n ns patch job db-pre-v2-1 --type=merge -p '{"spec":{"suspend":false}}'`
	for _, row := range []struct {
		name              string
		scene             *scene
		progress, trouble string
	}{
		{"W18 another client suspends a job", beforeUpdate(started, managedBy("operator", `{"f:spec":{"f:template":{}}}`), managedBy("kubectl-patch", suspendField)),
			"field manager kubectl-patch suspended it", "JobSuspended: the upgrade waits until Job db-pre-v2-1 is resumed: field manager kubectl-patch suspended it after the operator had started it" + resume},
		{"W18 a webhook suspends a job", beforeUpdate(started, managedBy("operator", ours)),
			"a webhook or policy suspended it", "JobSuspended: the upgrade waits until Job db-pre-v2-1 is resumed: a webhook or policy suspended it after the operator had started it" + resume},
		{"W18 a queue with a label suspends a job", beforeUpdate(queued), "waiting until Job db-pre-v2-1 is admitted: queue tests (label kueue.x-k8s.io/queue-name) keeps it suspended; to see why: kubectl -n ns get workloads", "Healthy: no problems detected"},
		{"W18 a queue without a label suspends a job", beforeUpdate(started, managedBy("kueue", suspendField)), "waiting until Job db-pre-v2-1 is admitted: kueue keeps it suspended", "Healthy: no problems detected"},
	} {
		t.Run(row.name, func(t *testing.T) {
			w := row.scene.w
			cut, err := cutJob(w.Jobs["db-pre-v2-1"])
			if err != nil {
				t.Fatal(err)
			}
			w.Jobs["db-pre-v2-1"] = cut.(*batchv1.Job) // as stored in the cache
			f, p := decided(w)
			if c := status.Progressing(f, p); !strings.Contains(c.Message, row.progress) {
				t.Errorf("Progressing: %s", c.Message)
			}
			if c := status.Degraded(f, p); c.Reason+": "+c.Message != row.trouble {
				t.Errorf("Degraded: %s: %s", c.Reason, c.Message)
			}
		})
	}
}

func TestW18ATimeoutSaysThatAJobWasSuspended(t *testing.T) {
	s := beforeUpdate(started).after(10 * time.Minute)
	if got := record.Advance(s.w).Update.Message; !strings.Contains(got, "Job db-pre-v2-1 is suspended") {
		t.Errorf("got message %s", got)
	}
}

// TestW19TheResultOfADeletedJob verifies W19: the watch event of a deleted Job determines its result.
func TestW19TheResultOfADeletedJob(t *testing.T) {
	set := plain()
	set.UID = "uid"
	for _, row := range []struct {
		name   string
		is     batchv1.JobConditionType
		missed bool
		want   v1alpha1.JobResult
	}{
		{"W19 a complete job was deleted", batchv1.JobComplete, false, v1alpha1.JobSucceeded},
		{"W19 a job was complete in the last watch event", batchv1.JobComplete, true, v1alpha1.JobSucceeded},
		{"W19 a failed job was deleted", batchv1.JobFailed, false, v1alpha1.JobFailed},
		{"W19 a running job was deleted", "", false, v1alpha1.JobFailed},
		{"W19 a job was running in the last watch event", "", true, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			j := children.BuildJob(set, job("any"), children.PreJob, 2, 1)
			j.UID = "j"
			if row.is != "" {
				j.Status.Conditions = []batchv1.JobCondition{{Type: row.is, Status: corev1.ConditionTrue}}
			}
			r := &observe.Reader{Cache: cacheWith(t, set), Now: func() time.Time { return noon }}
			r.KeepEnd(t.Context(), j, row.missed)
			if got, known := r.Ends.Get(client.ObjectKeyFromObject(set), "j"); got != row.want || known != (row.want != "") {
				t.Errorf("got result %q, known %t", got, known)
			}
		})
	}
}

// TestW19AMissingJobIsWaitedFor verifies W19: the result of a missing Job is unknown only after
// LostJobTime, because a watch may lag behind a list.
func TestW19AMissingJobIsWaitedFor(t *testing.T) {
	s := beforeUpdate(started)
	s.w.Jobs = nil
	r := &observe.Reader{Live: fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).Build()}
	look := func(after time.Duration) v1alpha1.JobResult {
		s.w.Now, s.w.LostDue = noon.Add(after), time.Time{}
		if err := r.ReadLostJobs(t.Context(), s.w); err != nil {
			t.Fatal(err)
		}
		return s.w.LostJobs["j"]
	}
	if got := look(0); got != "" || !s.w.LostDue.Equal(noon.Add(spec.LostJobTime)) {
		t.Errorf("first result %q, next read at %s", got, s.w.LostDue)
	}
	if got := look(spec.LostJobTime); got != v1alpha1.JobUnknown || !s.w.LostDue.IsZero() {
		t.Errorf("got result %q after lostJobTime", got)
	}
}

// TestW19AJobWithoutItsLabelExists verifies W19: a Job that lost the operator's label is not listed,
// and the watch shows a deletion although the Job exists.
func TestW19AJobWithoutItsLabelExists(t *testing.T) {
	for _, row := range []struct {
		name   string
		change func(*batchv1.Job)
		exists bool
	}{
		{"W19 the job exists", func(*batchv1.Job) {}, true},
		{"W19 another job has the name", func(j *batchv1.Job) { j.UID = "another" }, false},
		{"W19 the job has no controller", func(j *batchv1.Job) { j.OwnerReferences = nil }, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := beforeUpdate(started)
			name := s.w.Set.Status.Update.PreJob.Name
			live := s.w.Jobs[name].DeepCopy()
			s.w.Jobs = map[string]*batchv1.Job{}
			live.Namespace, live.Labels = s.w.Set.Namespace, nil
			r := &observe.Reader{Cache: cacheWith(t, s.w.Set), Now: func() time.Time { return noon }}
			r.KeepEnd(t.Context(), live, false)
			row.change(live)
			r.Live = fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(live).Build()
			if err := r.ReadLostJobs(t.Context(), s.w); err != nil {
				t.Fatal(err)
			}
			job, result := s.w.Jobs[name], s.w.LostJobs["j"]
			_, known := r.Ends.Get(client.ObjectKeyFromObject(s.w.Set), "j")
			if row.exists && (job == nil || result != "" || s.w.LostDue.IsZero() || known) {
				t.Errorf("job %v, result %q, next read at %s, stored %t", job, result, s.w.LostDue, known)
			}
			if !row.exists && (job != nil || result != v1alpha1.JobFailed) {
				t.Errorf("job %v, result %q", job, result)
			}
		})
	}
}

// TestW3AJobThatIsCreatedWithoutItsLabel verifies W3: a policy removes the operator's label when a Job
// is created. The Job is found by its name and recorded, and its start restores the label.
func TestW3AJobThatIsCreatedWithoutItsLabel(t *testing.T) {
	for _, row := range []struct {
		name   string
		change func(*batchv1.Job)
		seen   bool
	}{
		{"W3 the set controls the job", func(*batchv1.Job) {}, true},
		{"W3 the job has no controller", func(j *batchv1.Job) { j.OwnerReferences = nil }, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := beforeUpdate(started)
			name, live := s.w.Set.Status.Update.PreJob.Name, s.w.Jobs[s.w.Set.Status.Update.PreJob.Name].DeepCopy()
			s.w.Jobs, s.w.Set.Status.Update.PreJob = map[string]*batchv1.Job{}, nil
			live.Namespace, live.Labels = s.w.Set.Namespace, nil
			row.change(live)
			r := &observe.Reader{Live: fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(live).Build()}
			if err := r.ReadNewJob(t.Context(), s.w); err != nil {
				t.Fatal(err)
			}
			if seen := s.w.Jobs[name] != nil; seen != row.seen {
				t.Errorf("found: %t", seen)
			}
			if !row.seen {
				return
			}
			begun := rules.Start(asRecorded(s.w), s.w.Jobs[name])[0].Object.(*batchv1.Job)
			if begun.Labels[v1alpha1.LabelSet] != s.w.Set.Name {
				t.Errorf("got labels %v", begun.Labels)
			}
		})
	}
}

func TestW19APersonIsToldOfBothWays(t *testing.T) {
	s := beforeUpdate(started)
	s.w.Jobs, s.w.Set.Status.Update.PreJob.Result = nil, v1alpha1.JobUnknown
	f, p := decided(s.w)
	c := status.Degraded(f, p)
	for _, want := range []string{`-p '{"spec":{"updateStrategy":{"preUpdateJob":{"onFailure":"Continue"}}}}'`, `-p '{"spec":{"updateStrategy":{"retryCount":1}}}'`} {
		if c.Reason != v1alpha1.ReasonJobResultUnknown || !strings.Contains(c.Message, want) {
			t.Errorf("got %s: %s", c.Reason, c.Message)
		}
	}
}

// TestW19AJobIsStartedWithoutATimeToLive verifies W19: a policy sets a TTL on Jobs.
func TestW19AJobIsStartedWithoutATimeToLive(t *testing.T) {
	s := beforeUpdate(func(j *batchv1.Job) { j.Spec.TTLSecondsAfterFinished = ptr.To(int32(0)) })
	_, p := decided(s.w)
	if j, ok := p.Steps[0][0][0].Object.(*batchv1.Job); !ok || j.Spec.TTLSecondsAfterFinished != nil {
		t.Errorf("got actions %v", p.Steps.Strings())
	}
}
