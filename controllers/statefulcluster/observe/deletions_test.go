package observe_test

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/observe"
)

// cacheWith returns a cache that has only the set ns/db.
func cacheWith(t *testing.T, uid types.UID) client.Reader {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	set := &v1alpha1.StatefulCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "db", UID: uid}}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(set).Build()
}

// endsWatcher returns the handler of pods of an operator whose cache has only the set ns/db, and a
// function that reports whether the operator knows that a pod was deleted.
func endsWatcher(t *testing.T) (toolscache.ResourceEventHandler, func(namespace, name string) bool) {
	r := &observe.Reader{Cache: cacheWith(t, "uid"), Now: func() time.Time { return fixture.Noon }}
	return r.PodHandler(), func(namespace, name string) bool {
		return r.Deletions.Observed(types.NamespacedName{Namespace: namespace, Name: name})
	}
}

// runningMember returns a running pod of the set ns/db.
func runningMember(name string) *corev1.Pod {
	pod := &corev1.Pod{}
	pod.Namespace, pod.Name, pod.Labels = "ns", name, map[string]string{v1alpha1.LabelCluster: "db", v1alpha1.LabelClusterUID: "uid"}
	pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "enge.me/v1alpha1", Kind: "StatefulCluster", Name: "db", UID: "uid", Controller: new(true)}}
	pod.Status.Phase = corev1.PodRunning
	return pod
}

// TestN8EndsOfForgedPods verifies that the deletion of a pod is remembered only if a set in the cache
// controls the pod. Anyone who may create pods can write any label and controller reference.
func TestN8EndsOfForgedPods(t *testing.T) {
	as := func(name string, uid types.UID) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Labels[v1alpha1.LabelCluster], p.Labels[v1alpha1.LabelClusterUID] = name, string(uid)
			p.OwnerReferences[0].Name, p.OwnerReferences[0].UID = name, uid
		}
	}
	for _, row := range []struct {
		name   string
		change func(*corev1.Pod)
		want   bool
	}{
		{"N8 a pod of a set", func(*corev1.Pod) {}, true},
		{"N8 a pod of a set that does not exist", as("nope", "anything"), false},
		{"N8 a pod of a set with another UID", as("db", "anything"), false},
		{"N8 a pod of a set in another namespace", func(p *corev1.Pod) { p.Namespace = "another" }, false},
	} {
		h, knows := endsWatcher(t)
		pod := runningMember("db-a")
		row.change(pod)
		h.OnAdd(pod, false)
		h.OnDelete(pod)
		if got := knows(pod.Namespace, "db-a"); got != row.want {
			t.Errorf("%s: deletion is remembered: %t", row.name, got)
		}
	}
}

// TestN8EndsOfPodsAreBounded verifies that the number of remembered deletions in a namespace is bounded
// however many pods with a reference to a set are deleted, and that those of all members of the largest
// set are remembered.
func TestN8EndsOfPodsAreBounded(t *testing.T) {
	var e observe.Deletions
	pod := runningMember("")
	name := func(i int) string { return fmt.Sprint("db-", i) }
	for i := range 5 * observe.MaxDeletions {
		pod.Name = name(i)
		e.Gone(pod, true, fixture.Noon)
	}
	known := 0
	for i := range 5 * observe.MaxDeletions {
		if e.Observed(types.NamespacedName{Namespace: "ns", Name: name(i)}) {
			known++
		} else if i >= 4*observe.MaxDeletions {
			t.Fatalf("deletion %d is not remembered", i)
		}
	}
	if known > 2*observe.MaxDeletions {
		t.Errorf("%d deletions, %d of them remembered", 5*observe.MaxDeletions, known)
	}
}

// TestN8LeavingPodsAreBounded verifies that nothing is remembered of a pod that is being deleted once it
// is gone, whoever controls it.
func TestN8LeavingPodsAreBounded(t *testing.T) {
	r := &observe.Reader{Cache: cacheWith(t, "another"), Now: func() time.Time { return fixture.Noon }}
	h := r.PodHandler()
	pod := runningMember("db-a")
	pod.DeletionTimestamp = &metav1.Time{Time: fixture.Noon}
	h.OnAdd(pod, false)
	h.OnDelete(pod)
	h.OnAdd(pod, false)
	h.OnDelete(toolscache.DeletedFinalStateUnknown{Obj: pod})
	if len(r.Deletions.Terminating) != 0 {
		t.Errorf("remembered terminating pods are %v", r.Deletions.Terminating)
	}
}

// SC-53: a kubelet reports how a pod ended even if a user deleted it.
func TestWhoDeletedAPodThatEnded(t *testing.T) {
	running := runningMember("db-a")
	as := func(pod *corev1.Pod, change func(*corev1.Pod)) *corev1.Pod {
		pod = pod.DeepCopy()
		change(pod)
		return pod
	}
	deleted := as(running, func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: fixture.Noon} })
	ended := func(pod *corev1.Pod) *corev1.Pod {
		return as(pod, func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded })
	}
	disrupted := as(ended(deleted), func(p *corev1.Pod) {
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue}}
	})
	for _, r := range []struct {
		name   string
		states []*corev1.Pod
		byUser bool
	}{
		{"SC-53 the pod was force-deleted", []*corev1.Pod{running}, true},
		{"SC-53 the pod was deleted and ended", []*corev1.Pod{running, deleted, ended(deleted)}, true},
		{"SC-53 the pod was terminating when the watch started, and ended", []*corev1.Pod{deleted, ended(deleted)}, true},
		{"SC-53 the pod ended before it was deleted", []*corev1.Pod{running, ended(running), ended(deleted)}, false},
		{"SC-53 the pod was disrupted", []*corev1.Pod{running, deleted, disrupted}, false},
		{"SC-53 the pod had the labels of a member and another owner", []*corev1.Pod{as(running, func(p *corev1.Pod) { p.OwnerReferences[0].UID = "other" })}, false},
		{"N3 the pod had the labels of a member and an owner of another API group", []*corev1.Pod{as(running, func(p *corev1.Pod) { p.OwnerReferences[0].APIVersion = "x.example/v1" })}, false},
		{"SC-53 the pod had the labels of a member and no owner", []*corev1.Pod{as(running, func(p *corev1.Pod) { p.OwnerReferences = nil })}, false},
		{"SC-53 the pod had ended when the watch started", []*corev1.Pod{ended(deleted)}, false},
	} {
		h, knows := endsWatcher(t)
		h.OnAdd(r.states[0], false)
		for i, is := range r.states[1:] {
			h.OnUpdate(r.states[i], is)
		}
		h.OnDelete(r.states[len(r.states)-1])
		if got := knows("ns", "db-a"); got != r.byUser {
			t.Errorf("%s: deleted by a user is %t", r.name, got)
		}
	}
}
