package observe_test

import (
	"fmt"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/children"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/observe"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/rules"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/spec"
)

// cacheWith returns a cache that has only these sets.
func cacheWith(t *testing.T, sets ...*v1alpha1.ExtendedStatefulSet) client.Reader {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	cached := fake.NewClientBuilder().WithScheme(scheme)
	for _, set := range sets {
		cached = cached.WithObjects(set.DeepCopy())
	}
	return cached.Build()
}

// endings is an operator that sees Jobs being deleted. Its cache has the sets db and neighbor.
type endings struct {
	*observe.Reader
	t            *testing.T
	db, neighbor *v1alpha1.ExtendedStatefulSet
}

func newEndings(t *testing.T) endings {
	db, neighbor := fixture.Plain(), fixture.Plain()
	db.UID, neighbor.UID, neighbor.Name = "uid", "uid of neighbor", "neighbor"
	return endings{Reader: &observe.Reader{Cache: cacheWith(t, db, neighbor), Now: func() time.Time { return fixture.Noon }}, t: t, db: db, neighbor: neighbor}
}

// deleted passes the deletion of a complete Job of a set to the handler.
func (e endings) deleted(set *v1alpha1.ExtendedStatefulSet, uid types.UID, change func(*batchv1.Job)) {
	j := children.BuildJob(set, fixture.Job("any"), children.PreJob, 2, 1)
	j.UID = uid
	j.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}}
	change(j)
	observe.JobHandler{EventHandler: handler.Funcs{}, R: e.Reader}.Delete(e.t.Context(), event.DeleteEvent{Object: j}, nil)
}

// knows reports whether the end of a Job of that object is stored.
func (e endings) knows(name string, uid types.UID) bool {
	_, known := e.Ends.Get(types.NamespacedName{Namespace: e.db.Namespace, Name: name}, uid)
	return known
}

func asBuilt(*batchv1.Job) {}

// TestN8EndsOfForgedJobs verifies that the end of a Job is stored only if an object in the cache controls
// the Job. Anyone who may create Jobs can write any controller reference.
func TestN8EndsOfForgedJobs(t *testing.T) {
	for _, row := range []struct {
		name   string
		change func(*batchv1.Job)
		want   bool
	}{
		{"N8 the operator's own", asBuilt, true},
		{"N8 an object that does not exist", func(j *batchv1.Job) { j.OwnerReferences[0].Name = "nope" }, false},
		{"N8 an object of another namespace", func(j *batchv1.Job) { j.Namespace = "another" }, false},
		{"N8 another group", func(j *batchv1.Job) { j.OwnerReferences[0].APIVersion = "x.example/v1" }, false},
		{"N8 another kind", func(j *batchv1.Job) { j.OwnerReferences[0].Kind = "StatefulSet" }, false},
		{"N8 another UID", func(j *batchv1.Job) { j.OwnerReferences[0].UID = "anything" }, false},
		{"N8 no controller", func(j *batchv1.Job) { j.OwnerReferences[0].Controller = nil }, false},
		{"N8 no owner", func(j *batchv1.Job) { j.OwnerReferences = nil }, false},
	} {
		e := newEndings(t)
		var of client.ObjectKey
		e.deleted(e.db, "j", func(j *batchv1.Job) {
			row.change(j)
			of = client.ObjectKey{Namespace: j.Namespace, Name: e.db.Name}
			if len(j.OwnerReferences) > 0 {
				of.Name = j.OwnerReferences[0].Name
			}
		})
		if _, known := e.Ends.Get(of, "j"); known != row.want {
			t.Errorf("%s: stored: %t", row.name, known)
		}
	}
}

// TestN8EndsOfJobsAreBounded verifies that few ends are stored for an object however many Jobs with its
// reference are deleted: the newest, and none of another object is dropped for them.
func TestN8EndsOfJobsAreBounded(t *testing.T) {
	e := newEndings(t)
	e.deleted(e.neighbor, "of neighbor", asBuilt)
	const all = 1000
	for i := range all {
		e.deleted(e.db, types.UID(fmt.Sprint(i)), asBuilt)
	}
	stored := 0
	for i := range all {
		if e.knows("db", types.UID(fmt.Sprint(i))) {
			stored++
		} else if i >= all-observe.MaxEnds {
			t.Errorf("of %d results, number %d is not stored", all, i)
		}
	}
	if stored > 2*observe.MaxEnds {
		t.Errorf("of %d results, %d are stored", all, stored)
	}
	if !e.knows("neighbor", "of neighbor") {
		t.Error("the result of a Job of another object is not stored")
	}
}

// TestN8EndsOfADeletedObject verifies that nothing is stored for objects that were deleted.
func TestN8EndsOfADeletedObject(t *testing.T) {
	e := newEndings(t)
	e.deleted(e.db, "j", asBuilt)
	e.Forget(t.Context(), client.ObjectKeyFromObject(e.db))
	if e.knows("db", "j") {
		t.Error("the result is stored")
	}
}

// TestW19TheResultOfADeletedJob verifies W19: the watch event of a deleted Job determines its result.
func TestW19TheResultOfADeletedJob(t *testing.T) {
	set := fixture.Plain()
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
			j := children.BuildJob(set, fixture.Job("any"), children.PreJob, 2, 1)
			j.UID = "j"
			if row.is != "" {
				j.Status.Conditions = []batchv1.JobCondition{{Type: row.is, Status: corev1.ConditionTrue}}
			}
			r := &observe.Reader{Cache: cacheWith(t, set), Now: func() time.Time { return fixture.Noon }}
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
	s := fixture.BeforeUpdate(fixture.Started)
	s.W.Jobs = nil
	r := &observe.Reader{Live: fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).Build()}
	look := func(after time.Duration) v1alpha1.JobResult {
		s.W.Now, s.W.LostDue = fixture.Noon.Add(after), time.Time{}
		if err := r.ReadLostJobs(t.Context(), s.W); err != nil {
			t.Fatal(err)
		}
		return s.W.LostJobs["j"]
	}
	if got := look(0); got != "" || !s.W.LostDue.Equal(fixture.Noon.Add(spec.LostJobTime)) {
		t.Errorf("first result %q, next read at %s", got, s.W.LostDue)
	}
	if got := look(spec.LostJobTime); got != v1alpha1.JobUnknown || !s.W.LostDue.IsZero() {
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
			s := fixture.BeforeUpdate(fixture.Started)
			name := s.W.Set.Status.Update.PreJob.Name
			live := s.W.Jobs[name].DeepCopy()
			s.W.Jobs = map[string]*batchv1.Job{}
			live.Namespace, live.Labels = s.W.Set.Namespace, nil
			r := &observe.Reader{Cache: cacheWith(t, s.W.Set), Now: func() time.Time { return fixture.Noon }}
			r.KeepEnd(t.Context(), live, false)
			row.change(live)
			r.Live = fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(live).Build()
			if err := r.ReadLostJobs(t.Context(), s.W); err != nil {
				t.Fatal(err)
			}
			job, result := s.W.Jobs[name], s.W.LostJobs["j"]
			_, known := r.Ends.Get(client.ObjectKeyFromObject(s.W.Set), "j")
			if row.exists && (job == nil || result != "" || s.W.LostDue.IsZero() || known) {
				t.Errorf("job %v, result %q, next read at %s, stored %t", job, result, s.W.LostDue, known)
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
			s := fixture.BeforeUpdate(fixture.Started)
			name, live := s.W.Set.Status.Update.PreJob.Name, s.W.Jobs[s.W.Set.Status.Update.PreJob.Name].DeepCopy()
			s.W.Jobs, s.W.Set.Status.Update.PreJob = map[string]*batchv1.Job{}, nil
			live.Namespace, live.Labels = s.W.Set.Namespace, nil
			row.change(live)
			r := &observe.Reader{Live: fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(live).Build()}
			if err := r.ReadNewJob(t.Context(), s.W); err != nil {
				t.Fatal(err)
			}
			if seen := s.W.Jobs[name] != nil; seen != row.seen {
				t.Errorf("found: %t", seen)
			}
			if !row.seen {
				return
			}
			begun := rules.Start(fixture.AsRecorded(s.W), s.W.Jobs[name])[0].Object.(*batchv1.Job)
			if begun.Labels[v1alpha1.LabelSet] != s.W.Set.Name {
				t.Errorf("got labels %v", begun.Labels)
			}
		})
	}
}
