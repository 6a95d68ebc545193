package observe_test

import (
	"context"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
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
		if w = observeLease(t, fixture.Only(s, foreign)); w.Lease != nil || !strings.Contains(w.LeaseProblem.Message, "delete it") {
			t.Errorf("a Lease of %s is %v, problem %q", name, w.Lease, w.LeaseProblem.Message)
		}
	}
}
