package pass_test

import (
	"context"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/observe"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/pass"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/consistency"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation"
)

var key = types.NamespacedName{Namespace: "ns", Name: "db"}

// writer writes to a simulated cluster, and counts its steps.
type writer struct {
	*simulation.Cluster
	ran int
}

func (w *writer) Run(_ context.Context, _ types.NamespacedName, steps action.Steps) []action.Outcome {
	outcomes, _ := w.Apply(steps)
	w.ran += len(outcomes)
	return outcomes
}

// reconcilerOf returns a Reconciler that reads a cluster without a delay.
func reconcilerOf(c *simulation.Cluster) (*pass.Reconciler, *writer) {
	w := &writer{Cluster: c}
	return pass.New(&observe.Reader{Cache: c, Live: c, Now: func() time.Time { return c.Now }}, w, &consistency.Tracker{}, events.NewFakeRecorder(1000)), w
}

// TestReconcile checks that passes create the StatefulSet, and then have nothing left to do.
func TestReconcile(t *testing.T) {
	c := simulation.New(fixture.Noon)
	c.Put(fixture.Plain())
	r, w := reconcilerOf(c)
	for range 10 {
		before := w.ran
		if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: key}); err != nil {
			t.Fatal(err)
		}
		if before > 0 && w.ran == before {
			break
		}
	}
	before := w.ran
	if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: key}); err != nil || w.ran != before {
		t.Errorf("the last pass has %d outcomes: %v", w.ran-before, err)
	}
	var child appsv1.StatefulSet
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "db-v1"}, &child); err != nil {
		t.Error(err)
	}
}

func TestAMissingObject(t *testing.T) {
	r, w := reconcilerOf(simulation.New(fixture.Noon))
	if result, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: key}); err != nil || !result.IsZero() || w.ran > 0 {
		t.Errorf("the result is %+v, %v, after %d writes", result, err, w.ran)
	}
}

func TestAnUnreadObject(t *testing.T) {
	c := simulation.New(fixture.Noon)
	set := fixture.Plain()
	set.Spec = v1alpha1.ExtendedStatefulSetSpec{Problem: "it is too large"}
	c.Put(set)
	r, w := reconcilerOf(c)
	if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: key}); err != nil || w.ran != 1 {
		t.Errorf("%d writes: %v", w.ran, err)
	}
	var now v1alpha1.ExtendedStatefulSet
	if err := c.Get(t.Context(), key, &now); err != nil || len(now.Status.Conditions) == 0 {
		t.Errorf("the status is %+v: %v", now.Status, err)
	}
}
