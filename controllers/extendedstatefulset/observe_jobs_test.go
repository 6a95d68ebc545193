package extendedstatefulset

import (
	"fmt"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/children"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/observe"
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
	db, neighbor := plain(), plain()
	db.UID, neighbor.UID, neighbor.Name = "uid", "uid of neighbor", "neighbor"
	return endings{Reader: &observe.Reader{Cache: cacheWith(t, db, neighbor), Now: func() time.Time { return noon }}, t: t, db: db, neighbor: neighbor}
}

// deleted passes the deletion of a complete Job of a set to the handler.
func (e endings) deleted(set *v1alpha1.ExtendedStatefulSet, uid types.UID, change func(*batchv1.Job)) {
	j := children.BuildJob(set, job("any"), children.PreJob, 2, 1)
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
