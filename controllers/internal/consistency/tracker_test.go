package consistency

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var key = types.NamespacedName{Namespace: "ns", Name: "set"}

// shows is a fake cache that returns one pod, not found, or an error.
type shows struct {
	client.Reader
	pod *corev1.Pod
	err error
}

func (s shows) Get(_ context.Context, name client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	switch {
	case s.err != nil:
		return s.err
	case s.pod == nil || s.pod.Name != name.Name:
		return apierrors.NewNotFound(corev1.Resource("pods"), name.Name)
	}
	s.pod.DeepCopyInto(into.(*corev1.Pod))
	return nil
}

func pod(uid types.UID, version string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "ns", UID: uid, ResourceVersion: version}}
}

func going(uid types.UID, version string) *corev1.Pod {
	p, now := pod(uid, version), metav1.Now()
	p.DeletionTimestamp = &now
	return p
}

func behind(t *testing.T, tracker *Tracker, cache shows) bool {
	t.Helper()
	is, err := tracker.Behind(context.Background(), key, cache, func(client.Object) client.Object { return &corev1.Pod{} })
	if err != nil {
		t.Fatal(err)
	}
	return is
}

func TestBehind(t *testing.T) {
	wrote := func(tr *Tracker) { tr.Wrote(key, pod("u", "10")) }
	deleted := func(tr *Tracker) { tr.Deleted(key, pod("u", "10")) }
	freed := func(tr *Tracker) { tr.Wrote(key, going("u", "10")) }
	for _, r := range []struct {
		name string
		did  func(*Tracker)
		pod  *corev1.Pod
		want bool
	}{
		{"nothing was written", func(*Tracker) {}, nil, false},
		{"a write that the cache does not show yet", wrote, nil, true},
		{"the cache shows an older version", wrote, pod("u", "1"), true},
		{"version 9 is older than version 10", wrote, pod("u", "9"), true},
		{"the cache shows the written version", wrote, pod("u", "10"), false},
		{"the cache shows a later version", wrote, pod("u", "100"), false},
		{"the cache shows another object of the same name", wrote, pod("v", "100"), true},
		{"the cache shows a deleted object without a deletionTimestamp", deleted, pod("u", "10"), true},
		{"the cache shows a deleted object as terminating", deleted, going("u", "11"), false},
		{"a deleted object is missing", deleted, nil, false},
		{"a deleted object was replaced by an object of the same name", deleted, pod("v", "12"), false},
		{"a deleted object lost its last finalizer and is missing", freed, nil, false},
		{"a deleted object lost its last finalizer and was replaced", freed, pod("v", "12"), false},
		{"a deleted object lost its last finalizer and the cache still shows it", freed, going("u", "9"), true},
		{"only the last write of an object counts", func(tr *Tracker) { wrote(tr); deleted(tr) }, nil, false},
		{"a write of another key", func(tr *Tracker) { tr.Wrote(types.NamespacedName{Name: "other"}, pod("u", "10")) }, nil, false},
		{"an object was created and deleted between two reads", func(tr *Tracker) { wrote(tr); tr.Gone(key, pod("u", "12")) }, nil, false},
		{"an object that was terminating when it was written is missing", func(tr *Tracker) { tr.Wrote(key, going("u", "10")) }, nil, false},
		{"an object that was terminating when it was written was replaced", func(tr *Tracker) { tr.Wrote(key, going("u", "10")) }, pod("v", "12"), false},
		{"a terminating object is shown as written", func(tr *Tracker) { tr.Wrote(key, going("u", "10")) }, going("u", "9"), true},
		{"the replacement was deleted", func(tr *Tracker) { wrote(tr); tr.Gone(key, pod("v", "9")) }, nil, true},
		{"the key was removed", func(tr *Tracker) { wrote(tr); tr.Forget(key) }, nil, false},
	} {
		tracker := &Tracker{}
		r.did(tracker)
		if got := behind(t, tracker, shows{pod: r.pod}); got != r.want {
			t.Errorf("%s: stale is %t", r.name, got)
		}
	}
}

func TestWhatWasSeenIsForgotten(t *testing.T) {
	tracker := &Tracker{}
	tracker.Wrote(key, pod("u", "10"))
	if behind(t, tracker, shows{pod: pod("u", "10")}) || behind(t, tracker, shows{}) {
		t.Error("a write that the cache showed before is pending again")
	}
	if len(tracker.writes) != 0 {
		t.Errorf("entries are kept: %v", tracker.writes)
	}
}

func TestPatienceEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tracker := &Tracker{}
		tracker.Wrote(key, pod("u", "10"))
		<-time.After(Patience - 1)
		if !behind(t, tracker, shows{}) {
			t.Error("a nanosecond too early, the write is no longer pending")
		}
		<-time.After(1)
		if behind(t, tracker, shows{}) {
			t.Error("a write that the cache never shows blocks the key forever")
		}
	})
}

func TestACacheThatFails(t *testing.T) {
	tracker, broken := &Tracker{}, errors.New("broken")
	tracker.Wrote(key, pod("u", "10"))
	_, err := tracker.Behind(context.Background(), key, shows{err: broken}, func(client.Object) client.Object { return &corev1.Pod{} })
	if !errors.Is(err, broken) {
		t.Errorf("result %v", err)
	}
	if !behind(t, tracker, shows{}) {
		t.Error("the write was dropped")
	}
}
