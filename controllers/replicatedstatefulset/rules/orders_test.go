package rules_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/order"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/fixture"
)

const (
	overIt = ". To retry, give the order a new id"
	noted  = "patch status of replicatedstatefulset db: Learned"
)

var (
	observed = fixture.With(func(w *facts.World) { w.Set.Status.ObservedGeneration, w.Set.Status.Phase = 2, v1alpha1.PhaseRunning })
	paused2  = fixture.With(func(w *facts.World) { w.Set.Spec.Paused = true })
)

func generation(is, seen int64) fixture.Thing {
	return fixture.With(func(w *facts.World) { w.Set.Generation, w.Set.Status.ObservedGeneration = is, seen })
}

// grantedSince sets the age of all grants, so that it differs from the grant in a started order.
func grantedSince(age time.Duration) fixture.Thing {
	return fixture.With(func(w *facts.World) {
		for i := range w.Set.Status.Grants {
			w.Set.Status.Grants[i].Since = metav1.NewMicroTime(fixture.Ago(age))
		}
	})
}

// TestOrdersAreBounded tests that the last 16 orders of each kind are remembered, the newest first.
func TestOrdersAreBounded(t *testing.T) {
	w := fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Primary(), fixture.Pod(1).Secondary(), fixture.Pod(2).Secondary())
	fixture.SeedingFrom("rss-db-1", v1alpha1.OrderDone).Into(w)
	for i := range 40 {
		fixture.InSpec(v1alpha1.OrderSwitchoverTo, "rss-db-1", fmt.Sprintf("n%d", i)).Into(w)
		f := facts.Derive(w)
		w.Set.Status.Orders = f.Record.Orders.WithResult(f.Now, f.Record.Orders.Open(v1alpha1.OrderSwitchoverTo), v1alpha1.OrderDone, "")
	}
	var ids []string
	for _, x := range w.Set.Status.Orders {
		ids = append(ids, x.ID)
	}
	if len(ids) != order.Most+1 || ids[0] != "n39" || ids[15] != "n24" || !slices.Contains(ids, "a") {
		t.Errorf("the recorded orders are %v", ids)
	}
}
