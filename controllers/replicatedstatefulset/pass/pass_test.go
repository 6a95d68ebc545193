package pass

import (
	"context"
	"errors"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/consistency"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podexec"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation/objects"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/observe"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/spec"
)

// board is an empty Board.
type board struct{}

func (board) Of(types.NamespacedName, types.UID) (*podexec.Command, []podexec.Result) {
	return nil, nil
}

func (board) Keep(types.NamespacedName, ...types.UID) {}

// hand applies steps to a cluster.
type hand struct{ *simulation.Cluster }

func (h hand) Run(_ context.Context, _ types.NamespacedName, steps action.Steps) []action.Outcome {
	outcomes, _ := h.Apply(steps)
	return outcomes
}

// request is a request for the sets of the fixtures.
var request = reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "ns", Name: "db"}}

// reconcilerOf returns a Reconciler of a cluster, whose cache is always current.
func reconcilerOf(c *simulation.Cluster) *Reconciler {
	reader := &observe.Reader{Cache: c, Live: c, Nodes: c, Board: board{}, Now: func() time.Time { return c.Now }}
	return New(reader, hand{c}, &consistency.Tracker{}, nil)
}

func TestAPassCreatesTheChildren(t *testing.T) {
	c := simulation.New(fixture.Noon)
	c.Put(fixture.SetOf(3, 1))
	r := reconcilerOf(c)
	for range 5 {
		if _, err := r.Reconcile(t.Context(), request); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Get(t.Context(), types.NamespacedName{Namespace: "ns", Name: "rss-db"}, &appsv1.StatefulSet{}); err != nil {
		t.Error(err)
	}
	set := &v1alpha1.ReplicatedStatefulSet{}
	if err := c.Get(t.Context(), request.NamespacedName, set); err != nil || len(set.Status.Conditions) == 0 {
		t.Errorf("the pass does not report: %v, %v", set.Status, err)
	}
}

func TestAFailedWriteIsRetried(t *testing.T) {
	c := simulation.New(fixture.Noon)
	c.Put(fixture.SetOf(3, 1))
	broken := errors.New("broken")
	c.Interfere = func(int, action.Action) (before, after error) { return broken, nil }
	if _, err := reconcilerOf(c).Reconcile(t.Context(), request); !errors.Is(err, broken) {
		t.Errorf("the pass ends with %v", err)
	}
}

// TestPodsOfADeletedSetAreReleased tests that only the pods of members lose the finalizer.
func TestPodsOfADeletedSetAreReleased(t *testing.T) {
	c := simulation.New(fixture.Noon)
	for name, labels := range map[string]map[string]string{"rss-db-0": spec.OwnLabels(fixture.SetOf(1, 1)), "rss-db-x": spec.OwnLabels(fixture.SetOf(1, 1)), "rss-db-1": nil} {
		c.Put(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, Labels: labels, Finalizers: []string{v1alpha1.FinalizerMember}}})
	}
	if _, err := reconcilerOf(c).Reconcile(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]int{"rss-db-0": 0, "rss-db-x": 1, "rss-db-1": 1} {
		p := c.All[objects.Key{Kind: "Pod", Namespace: "ns", Name: name}]
		if got := len(p.GetFinalizers()); got != want {
			t.Errorf("%s has %d finalizers", name, got)
		}
	}
}

func TestWrittenObjectsInTheCache(t *testing.T) {
	for _, obj := range []client.Object{&corev1.Pod{}, &corev1.Service{}, &appsv1.StatefulSet{}, &corev1.PersistentVolumeClaim{}, &v1alpha1.ReplicatedStatefulSet{}} {
		if got := asCached(obj); objects.KindOf(got) != objects.KindOf(obj) {
			t.Errorf("%T is cached as %T", obj, got)
		}
	}
	if _, isSet := asCached(&coordinationv1.Lease{}).(*v1alpha1.ReplicatedStatefulSet); !isSet {
		t.Error("an object that is not in the cache has a type")
	}
}
