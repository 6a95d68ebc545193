package observe_test

import (
	"context"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/leasewatch"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/children"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/observe"
)

// forbidden is an API server that refuses to read Leases.
type forbidden struct{ client.Reader }

func (f forbidden) Get(ctx context.Context, key client.ObjectKey, into client.Object, opts ...client.GetOption) error {
	if _, ok := into.(*coordinationv1.Lease); ok {
		return apierrors.NewForbidden(schema.GroupResource{Resource: "leases"}, key.Name, nil)
	}
	return f.Reader.Get(ctx, key, into, opts...)
}

func observeLease(t *testing.T, live client.Reader) *facts.World {
	t.Helper()
	now := fixture.Noon
	r := &observe.Reader{Cache: fixture.InCache{}, Live: live, Guard: &observe.Guard{Namespace: "operator"}, Now: func() time.Time {
		now = now.Add(time.Second)
		return now
	}}
	w, err := r.Observe(context.Background(), fixture.Key)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func TestTheLeaseIsRead(t *testing.T) {
	s := fixture.WorldOf(fixture.HeldByLease()).Object
	s.Namespace = fixture.Key.Namespace
	lease, role, binding := children.BuildLease(s), children.BuildLeaseRole(s), children.BuildLeaseRoleBinding(s, nil)
	lease.ResourceVersion = "7"

	w := observeLease(t, fixture.Only(s, lease, role, binding))
	if w.Lease == nil || w.Role == nil || w.RoleBinding == nil || w.LeaseProblem.Message != "" {
		t.Fatalf("read %v, %v and %v, problem %q", w.Lease, w.Role, w.RoleBinding, w.LeaseProblem.Message)
	}
	if !w.LeaseSince.After(w.Now) {
		t.Errorf("the time since when it is known, %s, is before the read", w.LeaseSince)
	}
	if w = observeLease(t, fixture.Only(s)); w.Lease != nil || w.LeaseSince.IsZero() {
		t.Errorf("a missing Lease is %v, known since %s", w.Lease, w.LeaseSince)
	}
	w = observeLease(t, forbidden{fixture.Only(s, lease)})
	if w.Lease != nil || w.LeaseProblem.Reason != v1.ReasonFencingNotPermitted || !strings.Contains(w.LeaseProblem.Message, "--serviceaccount=operator:") {
		t.Errorf("without the right to read it: %v, %+v", w.Lease, w.LeaseProblem)
	}
	for name, change := range map[string]func(map[string]string){
		"another client": func(l map[string]string) { delete(l, v1.LabelManagedBy) },
		"another object": func(l map[string]string) { l[v1.LabelSingleton] = "other" },
	} {
		foreign := lease.DeepCopy()
		change(foreign.Labels)
		if w = observeLease(t, fixture.Only(s, foreign)); w.Lease != nil || !strings.Contains(w.LeaseProblem.Message, "delete it: kubectl -n "+s.Namespace+" delete lease db.singleton") {
			t.Errorf("a Lease of %s is %v, problem %q", name, w.Lease, w.LeaseProblem.Message)
		}
	}
}

// TestARoleBindingOfAnotherRole reads one that the operator replaces, and one of another client with its labels.
func TestARoleBindingOfAnotherRole(t *testing.T) {
	s := fixture.WorldOf(fixture.HeldByLease()).Object
	s.Namespace = fixture.Key.Namespace
	binding := children.BuildLeaseRoleBinding(s, nil)
	binding.RoleRef.Name = "other"
	if w := observeLease(t, fixture.Only(s, binding)); w.RoleBinding == nil || w.LeaseProblem.Message != "" {
		t.Errorf("an own one is %v, problem %q", w.RoleBinding, w.LeaseProblem.Message)
	}
	binding.OwnerReferences = nil
	if w := observeLease(t, fixture.Only(s, binding)); w.RoleBinding != nil || !strings.HasPrefix(w.LeaseProblem.Message, "RoleBinding db.singleton was not created by the operator") {
		t.Errorf("one without an owner is %v, problem %q", w.RoleBinding, w.LeaseProblem.Message)
	}
	binding.RoleRef.Name = binding.Name
	if w := observeLease(t, fixture.Only(s, binding)); w.RoleBinding == nil || w.LeaseProblem.Message != "" {
		t.Errorf("one without an owner, of the right Role, is %v, problem %q", w.RoleBinding, w.LeaseProblem.Message)
	}
}

// TestTheLeasesOfANamespaceAreWatchedWhileTheyAreUsed switches fencing off after a pass.
func TestTheLeasesOfANamespaceAreWatchedWhileTheyAreUsed(t *testing.T) {
	s := fixture.WorldOf(fixture.HeldByLease()).Object
	s.Namespace = fixture.Key.Namespace
	ends := 0
	open := func(context.Context, cache.Options, toolscache.ResourceEventHandler, ...client.Object) (context.CancelFunc, error) {
		return func() { ends++ }, nil
	}
	r := &observe.Reader{Cache: fixture.InCache{}, Live: fixture.Only(s), Guard: &observe.Guard{Namespace: "operator"}, Now: time.Now,
		Leases: leasewatch.New(time.Now, v1.LabelSingleton, open, nil)}
	for want := range 2 {
		if _, err := r.Observe(t.Context(), fixture.Key); err != nil || ends != want {
			t.Errorf("%d watches have ended, want %d; error %v", ends, want, err)
		}
		s.Spec.Fencing.Mode, s.Status.Holder.Lease = v1.FencingProof, ""
		r.Live = fixture.Only(s)
	}
}

// TestALeaseThatOnlyPodsUseIsWatchedOnce observes a pod with an agent whose object has mode Proof.
func TestALeaseThatOnlyPodsUseIsWatchedOnce(t *testing.T) {
	s := fixture.WorldOf(fixture.Held()).Object
	s.Namespace = fixture.Key.Namespace
	pod := fixture.Injected(t, &fixture.Pod().Pod, fixture.Singleton("db").Leased())
	pod.UID = "uid-of-a"
	opens := 0
	open := func(context.Context, cache.Options, toolscache.ResourceEventHandler, ...client.Object) (context.CancelFunc, error) {
		opens++
		return func() {}, nil
	}
	r := &observe.Reader{Cache: fixture.InCache{Reader: fixture.Only()}, Live: fixture.Only(s, pod), Guard: &observe.Guard{Namespace: "operator"}, Now: time.Now,
		Leases: leasewatch.New(time.Now, v1.LabelSingleton, open, nil)}
	for range 3 {
		w, err := r.Observe(t.Context(), fixture.Key)
		if err != nil {
			t.Fatal(err)
		}
		if !w.UsesLease() || opens != 1 {
			t.Errorf("the Lease is used: %t, and the watch was opened %d times", w.UsesLease(), opens)
		}
	}
}
