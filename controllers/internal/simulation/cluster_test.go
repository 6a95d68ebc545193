package simulation

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
)

var noon = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)

func pod(image string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "ns", Labels: map[string]string{"app": "db"}},
		Spec: corev1.PodSpec{NodeName: "n1", Containers: []corev1.Container{{Name: "main", Image: image}}, Volumes: []corev1.Volume{{Name: "data",
			VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "claim"}}}}}}
}

func newCluster() *Cluster {
	c := New(noon)
	c.Put(pod("one"))
	c.Put(&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "claim", Namespace: "ns"}})
	return c
}

func read[T client.Object](t *testing.T, c *Cluster, into T, name string) T {
	t.Helper()
	if err := c.Get(context.Background(), client.ObjectKey{Namespace: "ns", Name: name}, into); err != nil {
		t.Fatal(err)
	}
	return into
}

func (c *Cluster) tell(a action.Action) string {
	outcomes, alive := c.Apply(action.Steps{{{a}}})
	switch {
	case !alive:
		return "killed"
	case outcomes[0].Err != nil:
		return string(apierrors.ReasonForError(outcomes[0].Err))
	}
	return "done"
}

func TestWhatIsRefused(t *testing.T) {
	c := newCluster()
	have := read(t, c, &corev1.Pod{}, "a")
	namesake := have.DeepCopy()
	namesake.UID = "other"
	stale := have.DeepCopy()
	stale.ResourceVersion = "0"
	changed := func(from *corev1.Pod, change func(*corev1.Pod)) action.Action {
		to := from.DeepCopy()
		change(to)
		return action.Action{Verb: action.Patch, Object: to, From: from}
	}
	image := func(p *corev1.Pod) { p.Spec.Containers[0].Image = "two" }
	cpus := func(p *corev1.Pod) {
		p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{"cpu": resource.MustParse("1")}
	}
	resize := changed(have, cpus)
	resize.Verb = action.Resize
	status := changed(stale, func(p *corev1.Pod) { p.Status.Phase = corev1.PodRunning })
	status.Verb = action.PatchStatus
	owned := pod("one")
	owned.OwnerReferences = []metav1.OwnerReference{{UID: "x", Controller: new(true)}}
	missing := pod("one")
	missing.Name = "b"
	for _, r := range []struct {
		name   string
		action action.Action
		want   string
	}{
		{"creating the same object again", action.Action{Verb: action.Create, Object: pod("one")}, "done"},
		{"dry-run creating an existing object", action.Action{Verb: action.Try, Object: owned}, "done"},
		{"creating an object that another client created", action.Action{Verb: action.Create, Object: owned}, "AlreadyExists"},
		{"patching an object of the same name", changed(namesake, image), "Conflict"},
		{"patching a missing object", changed(missing, image), "NotFound"},
		{"patching resources", changed(have, cpus), "Invalid"},
		{"resizing resources", resize, "done"},
		{"patching an image", changed(have, image), "done"},
		{"writing a status with an older resourceVersion", status, "Conflict"},
		{"deleting an object of the same name", action.Action{Verb: action.Delete, Object: namesake}, "Conflict"},
		{"deleting an object that was modified", action.Action{Verb: action.Delete, Object: stale}, "Conflict"},
	} {
		if got := c.tell(r.action); got != r.want {
			t.Errorf("%s: %s, want %s", r.name, got, r.want)
		}
	}
}

func TestPatchesMerge(t *testing.T) {
	c := newCluster()
	old := read(t, c, &corev1.Pod{}, "a")
	touched := old.DeepCopy()
	touched.Labels["others"] = "own"
	touched.Status.Phase = corev1.PodRunning
	c.Put(touched)
	mine := old.DeepCopy()
	mine.Labels = map[string]string{"mine": "1"}
	if got := c.tell(action.Action{Verb: action.Patch, Object: mine, From: old}); got != "done" {
		t.Fatal(got)
	}
	now := read(t, c, &corev1.Pod{}, "a")
	if now.Labels["others"] != "own" || now.Labels["mine"] != "1" || now.Labels["app"] != "" || now.Status.Phase != corev1.PodRunning {
		t.Errorf("labels %v, status %v", now.Labels, now.Status.Phase)
	}
	version := now.ResourceVersion
	c.tell(action.Action{Verb: action.Patch, Object: now, From: now})
	if again := read(t, c, &corev1.Pod{}, "a"); again.ResourceVersion != version {
		t.Error("an empty patch changes the object")
	}
}

func TestDeletesTakeTheirTime(t *testing.T) {
	c := newCluster()
	claim := read(t, c, &corev1.PersistentVolumeClaim{}, "claim")
	c.tell(action.Action{Verb: action.Delete, Object: claim})
	c.tell(action.Action{Verb: action.Delete, Object: read(t, c, &corev1.Pod{}, "a")})
	going := read(t, c, &corev1.Pod{}, "a")
	if going.DeletionTimestamp == nil || read(t, c, &corev1.PersistentVolumeClaim{}, "claim").DeletionTimestamp == nil {
		t.Fatal("the pod or claim is not removed")
	}
	c.Remove(going)
	if len(c.All) > 0 {
		t.Errorf("still there: %v", c.All)
	}
}

func TestSnapshotsStayBehind(t *testing.T) {
	c := newCluster()
	then := c.Snapshot(func(o client.Object) client.Object { o.SetLabels(nil); return o })
	c.Remove(read(t, c, &corev1.Pod{}, "a"))
	var list corev1.PodList
	if err := then.List(context.Background(), &list); err != nil || len(list.Items) != 1 || list.Items[0].Labels != nil {
		t.Errorf("the snapshot shows %v", list.Items)
	}
	if err := c.List(context.Background(), &list); err != nil || len(list.Items) != 0 {
		t.Errorf("the cluster shows %v", list.Items)
	}
}

func TestInterference(t *testing.T) {
	c := newCluster()
	broken := errors.New("broken")
	script := map[int][2]error{1: {broken, nil}, 2: {nil, broken}, 3: {ErrKilled, nil}}
	c.Interfere = func(n int, _ action.Action) (before, after error) { return script[n][0], script[n][1] }
	create := action.Action{Verb: action.Create, Object: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "b", Namespace: "ns"}}, Reason: "Missing"}
	got := []string{c.tell(create)}
	exists := c.Get(context.Background(), client.ObjectKey{Namespace: "ns", Name: "b"}, &corev1.Pod{}) == nil
	got = append(got, c.tell(create))
	now := c.Get(context.Background(), client.ObjectKey{Namespace: "ns", Name: "b"}, &corev1.Pod{}) == nil
	got = append(got, c.tell(create))
	if !slices.Equal(got, []string{"", "", "killed"}) || exists || !now {
		t.Errorf("%q; after the first %t, after the second %t", got, exists, now)
	}
	want := []string{"! broken: create pod b: Missing", "  create pod b: Missing", "! broken after it", "! killed: create pod b: Missing"}
	if !slices.Equal(c.Story, want) {
		t.Errorf("story %q", c.Story)
	}
}
