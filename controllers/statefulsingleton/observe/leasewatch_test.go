package observe

import (
	"context"
	"slices"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/event"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
)

func TestLeaseWatch(t *testing.T) {
	now := time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
	pods := &PodWatch{Requests: make(chan event.GenericEvent, 9)}
	pods.root, pods.end = context.WithCancel(context.Background())
	defer pods.end()
	l := NewLeaseWatch(func() time.Time { return now }, pods)
	key := types.NamespacedName{Namespace: "ns", Name: "db"}
	lease := func(version, holder string) *coordinationv1.Lease {
		made := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "db.singleton", ResourceVersion: version,
			Labels: map[string]string{v1.LabelSingleton: "db"}}, Spec: coordinationv1.LeaseSpec{LeaseDurationSeconds: ptr.To(int32(10))}}
		if holder != "" {
			made.Spec.HolderIdentity = &holder
		}
		return made
	}
	passes := func(what string, want int) {
		t.Helper()
		got := len(pods.Requests)
		for range got {
			<-pods.Requests
		}
		if got != want {
			t.Errorf("%s: %d passes, want %d", what, got, want)
		}
	}
	due := func(after time.Duration, want bool) {
		t.Helper()
		now = now.Add(after)
		if got := slices.Contains(l.due(), key); got != want {
			t.Errorf("%s later it is due: %t", after, got)
		}
	}

	l.see(lease("1", ""))
	passes("the first version", 1)
	due(time.Hour, false) // without a holder
	l.see(lease("2", "a"))
	passes("another holder", 1)
	due(4*time.Second, false)
	l.see(lease("3", "a"))
	passes("a renewal", 0)
	due(4*time.Second, false)
	l.see(lease("3", "a")) // a resync
	due(time.Second, true)
	due(4*time.Second, false)
	due(time.Second, true)
	if got := l.seenAt(key, "3"); now.Sub(got) != 10*time.Second {
		t.Errorf("version 3 was seen %s ago, want 10s", now.Sub(got))
	}
	if got := l.seenAt(key, "2"); !got.IsZero() {
		t.Errorf("an old version was seen at %s", got)
	}
	l.forget(lease("3", "a"))
	passes("a deletion", 1)
	due(time.Hour, false)
}

func TestLeaseSince(t *testing.T) {
	start := time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
	at := func(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }
	var mem Remembered
	for _, row := range []struct {
		version   string
		now, want int
	}{
		{"", 0, 0}, {"", 5, 0}, // it is missing
		{"1", 6, 6}, {"1", 9, 6}, {"2", 10, 10}, {"2", 30, 10}, {"", 31, 31},
	} {
		if got := mem.leaseSince(row.version, at(row.now)); !got.Equal(at(row.want)) {
			t.Errorf("version %q at %d s is known since %s", row.version, row.now, got.Sub(start))
		}
	}
}
