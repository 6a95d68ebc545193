package observe_test

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/fencing"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/children"
)

// newRights returns a set whose only member is primary, with the rights on its Lease as wanted, and a function that
// returns how often the Role was read since its last call.
func newRights(t *testing.T) (l *leased, reads func() int) {
	t.Helper()
	l = newLeased(t)
	l.set.Status.Grants = []v1alpha1.Grant{{Pod: l.pod.Name, UID: l.pod.UID, LeaseEpoch: 4}}
	l.lease.Spec.HolderIdentity = ptr.To(fencing.Identity(l.pod))
	l.existing = []client.Object{children.BuildLeaseRole(l.set, []string{l.pod.Name}), children.BuildLeaseRoleBinding(l.set, []string{"default"})}
	n := 0
	l.funcs.Get = func(ctx context.Context, c client.WithWatch, key client.ObjectKey, into client.Object, opts ...client.GetOption) error {
		if _, isRole := into.(*rbacv1.Role); isRole {
			n++
		}
		return c.Get(ctx, key, into, opts...)
	}
	return l, func() int {
		defer func() { n = 0 }()
		return n
	}
}

// TestWhenRightsAreRead reads them in live passes only if they may not be as wanted, or if a member may need them.
func TestWhenRightsAreRead(t *testing.T) {
	for name, r := range map[string]struct {
		change func(*leased)
		late   time.Duration // before the second pass
		want   int           // reads in the second pass
	}{
		"they are as wanted":     {func(*leased) {}, 0, 0},
		"ten minutes later":      {func(*leased) {}, 10 * time.Minute, 1},
		"a Lease is not renewed": {func(*leased) {}, 20 * time.Second, 1},
		"a start is due":         {func(l *leased) { l.set.Status.Grants = nil }, 0, 1},
		"the Role lacks a Lease": {func(l *leased) { l.existing[0].(*rbacv1.Role).Rules[0].ResourceNames = nil }, 0, 1},
		"an account is missing":  {func(l *leased) { l.existing[1].(*rbacv1.RoleBinding).Subjects = nil }, 0, 1},
		"another Role is bound":  {func(l *leased) { l.existing[1].(*rbacv1.RoleBinding).RoleRef.Name = "other" }, 0, 1},
		"no RoleBinding":         {func(l *leased) { l.existing = l.existing[:1] }, 0, 1},
		"of another owner":       {func(l *leased) { l.existing[0].SetOwnerReferences(nil) }, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			l, reads := newRights(t)
			r.change(l)
			look := l.reader(t, true)
			if w := look(); !w.Fencing.ReadRights || reads() != 1 {
				t.Fatalf("the first pass reads %+v", w.Fencing)
			}
			l.late = r.late
			w := look()
			if n := reads(); n != r.want || w.Fencing.ReadRights != (n > 0) || w.Fencing.Role == nil {
				t.Errorf("the second pass reads the Role %d times, want %d; %+v", n, r.want, w.Fencing)
			}
		})
	}
}

// TestRightsAreReadWhenOthersAreWanted changes the service account of the pod between two passes.
func TestRightsAreReadWhenOthersAreWanted(t *testing.T) {
	l, reads := newRights(t)
	other := false
	l.funcs.List = func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
		err := c.List(ctx, list, opts...)
		if pods, isPods := list.(*corev1.PodList); isPods && other {
			pods.Items[0].Spec.ServiceAccountName = "other"
		}
		return err
	}
	look := l.reader(t, true)
	look()
	reads()
	other = true
	if w := look(); !w.Fencing.RightsAreDue || reads() != 1 {
		t.Errorf("the pass reads %+v", w.Fencing)
	}
}

// TestForeignRightsStayReported checks that a pass that does not read the Role reports it as the last one that did.
func TestForeignRightsStayReported(t *testing.T) {
	l, _ := newRights(t)
	l.existing[0].SetOwnerReferences(nil)
	live := true
	look := l.readerOf(t, &live)
	for range 2 {
		w := look()
		if described, _ := w.Foreign(); described != "Role rss-db.member" {
			t.Errorf("live %t: foreign is %q", live, described)
		}
		live = false
	}
	l.late = time.Minute
	if w := look(); !w.Fencing.RightsAreDue {
		t.Error("they are not read again after a minute")
	}
}

// TestRightsAreDueWhileTheyMayBeMissing checks that a cached pass asks for a live one while a Lease is not renewed, but
// not in each pass.
func TestRightsAreDueWhileTheyMayBeMissing(t *testing.T) {
	l, reads := newRights(t)
	live := true
	look := l.readerOf(t, &live)
	look()
	for _, step := range []struct {
		name       string
		late       time.Duration // -1 s stops the clock
		live, want bool
	}{
		{"the Lease is renewed", 0, false, false},
		{"it is not", 20 * time.Second, false, true},
		{"the rights are read", -time.Second, true, true},
		{"they were just read", -time.Second, false, false},
		{"they were read before", 20 * time.Second, false, true},
	} {
		l.late, live = step.late, step.live
		if w := look(); w.Fencing.RightsAreDue != step.want {
			t.Errorf("%s: they are due: %t", step.name, w.Fencing.RightsAreDue)
		}
	}
	if n := reads(); n != 2 {
		t.Errorf("the Role was read %d times, want 2", n)
	}
}
