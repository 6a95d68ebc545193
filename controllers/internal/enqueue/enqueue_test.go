package enqueue

import (
	"context"
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// heard is a fake queue that records calls.
type heard struct {
	priorityqueue.PriorityQueue[reconcile.Request]
	noted []string
}

func (h *heard) Add(r reconcile.Request) { h.noted = append(h.noted, r.String()+" now") }
func (h *heard) AddWithOpts(o priorityqueue.AddOpts, r ...reconcile.Request) {
	if o.After == 0 {
		h.Add(r[0])
		return
	}
	h.noted = append(h.noted, fmt.Sprintf("%s after %s, priority %d", r[0], o.After, *o.Priority))
}

func child(version string, going bool) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "ns", ResourceVersion: version, Labels: map[string]string{"of": "set"}}}
	if going {
		p.DeletionTimestamp = ptr.To(metav1.Now())
	}
	return p
}

// unowned returns the child with another owner or none.
func unowned(version, owner string) *corev1.Pod {
	p := child(version, false)
	p.Labels["of"] = owner
	return p
}

func TestChildren(t *testing.T) {
	var gone []string
	ctx, children := context.Background(), Children(Label("of"), func(key types.NamespacedName, obj client.Object) {
		gone = append(gone, key.String()+" lacks "+obj.GetName())
	})
	stranger := &corev1.Pod{}
	for _, r := range []struct {
		name   string
		events func(*heard)
		want   []string
	}{
		{"a new child is delayed to batch events", func(q *heard) { children.Create(ctx, event.CreateEvent{Object: child("1", false)}, q) }, []string{"ns/set after 50ms, priority -1"}},
		{"a changed child is delayed to batch events", func(q *heard) {
			children.Update(ctx, event.UpdateEvent{ObjectOld: child("1", false), ObjectNew: child("2", false)}, q)
		}, []string{"ns/set after 50ms, priority -1"}},
		{"a child that starts terminating wakes its key immediately", func(q *heard) {
			children.Update(ctx, event.UpdateEvent{ObjectOld: child("1", false), ObjectNew: child("2", true)}, q)
		}, []string{"ns/set now"}},
		{"a child that is still terminating is delayed to batch events", func(q *heard) {
			children.Update(ctx, event.UpdateEvent{ObjectOld: child("1", true), ObjectNew: child("2", true)}, q)
		}, []string{"ns/set after 50ms, priority -1"}},
		{"a deleted child wakes its key immediately", func(q *heard) { children.Delete(ctx, event.DeleteEvent{Object: child("1", true)}, q) }, []string{"ns/set now"}},
		{"W5 a child without its former owner wakes the former key immediately", func(q *heard) {
			children.Update(ctx, event.UpdateEvent{ObjectOld: child("1", false), ObjectNew: unowned("2", "")}, q)
		}, []string{"ns/set now"}},
		{"W5 a child with another owner wakes both keys", func(q *heard) {
			children.Update(ctx, event.UpdateEvent{ObjectOld: child("1", false), ObjectNew: unowned("2", "other")}, q)
		}, []string{"ns/other after 50ms, priority -1", "ns/set now"}},
		{"a resync wakes no key", func(q *heard) {
			children.Update(ctx, event.UpdateEvent{ObjectOld: child("1", false), ObjectNew: child("1", false)}, q)
		}, nil},
		{"a child of another controller wakes no key", func(q *heard) {
			children.Create(ctx, event.CreateEvent{Object: stranger}, q)
			children.Delete(ctx, event.DeleteEvent{Object: stranger}, q)
		}, nil},
	} {
		q := &heard{}
		r.events(q)
		if !slices.Equal(q.noted, r.want) {
			t.Errorf("%s: %q, want %q", r.name, q.noted, r.want)
		}
	}
	if !slices.Equal(gone, []string{"ns/set lacks a"}) {
		t.Errorf("the lacking children are %q", gone)
	}
}

func TestControllerOrLabel(t *testing.T) {
	find := ControllerOrLabel("StatefulCluster", "of")
	labelled := child("1", false)
	if got := find(labelled); got != "set" {
		t.Errorf("without a controller the owner is %q, want the one of the label", got)
	}
	labelled.OwnerReferences = []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "web", Controller: ptr.To(true)}}
	if got := find(labelled); got != "" {
		t.Errorf("with a controller of another kind the owner is %q, want none", got)
	}
}

func TestController(t *testing.T) {
	owned := func(kind string, controls bool) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{{Kind: kind, Name: "set", Controller: &controls}}}}
	}
	for _, r := range []struct {
		name string
		pod  *corev1.Pod
		want string
	}{
		{"its controller", owned("StatefulCluster", true), "set"},
		{"an owner that is not the controller", owned("StatefulCluster", false), ""},
		{"a controller of another kind", owned("ReplicaSet", true), ""},
		{"nobody's", &corev1.Pod{}, ""},
	} {
		if got := Controller("StatefulCluster")(r.pod); got != r.want {
			t.Errorf("%s: %q, want %q", r.name, got, r.want)
		}
	}
}
