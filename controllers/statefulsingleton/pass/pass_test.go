package pass_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/observe"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/pass"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/spec"
)

// recorded records the writes, and makes none.
type recorded struct{ steps action.Steps }

func (r *recorded) Run(_ context.Context, _ types.NamespacedName, steps action.Steps) (outcomes []action.Outcome) {
	r.steps = append(r.steps, steps...)
	for _, step := range steps {
		for _, chain := range step {
			for _, a := range chain {
				outcomes = append(outcomes, action.Outcome{Action: a})
			}
		}
	}
	return outcomes
}

// broken is a reader whose reads fail.
type broken struct{ client.Reader }

func (broken) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return errors.New("no response")
}

// TestReconcile checks the requeue delay and the writes of a pass.
func TestReconcile(t *testing.T) {
	object := &fixture.Singleton("db").MadeAt(0).StatefulSingleton
	for _, r := range []struct {
		name   string
		live   client.Reader
		writes bool
		waits  bool
		fails  bool
	}{
		{"a new object", fixture.Only(object), true, true, false},
		{"a deleted object, for whose pods is searched again", fixture.Only(), false, true, false},
		{"an API server that does not respond", broken{fixture.Only()}, false, false, true},
	} {
		t.Run(r.name, func(t *testing.T) {
			hand := &recorded{}
			read := &observe.Reader{Cache: fixture.Only(), Live: r.live, Guard: observe.NewGuard(nil, "", nil), Now: func() time.Time { return fixture.Noon }}
			result, err := pass.New(read, hand, events.NewFakeRecorder(10)).Reconcile(context.Background(), reconcile.Request{NamespacedName: fixture.Key})
			if (len(hand.steps) > 0) != r.writes || (result.RequeueAfter > 0) != r.waits || (err != nil) != r.fails {
				t.Errorf("result %v, error %v, writes %v", result, err, hand.steps)
			}
		})
	}
}

// TestReconcileUndecoded checks that an order in a spec that could not be decoded when the object
// was created does not take effect after the correction.
func TestReconcileUndecoded(t *testing.T) {
	created := &fixture.Singleton("db").StatefulSingleton
	created.Generation, created.Status.ObservedGeneration = 1, -1
	created.Spec = v1.StatefulSingletonSpec{Problem: "spec.maxTransitionTime: not a number"}
	hand := &recorded{}
	read := &observe.Reader{Cache: fixture.Only(), Live: fixture.Only(created), Guard: observe.NewGuard(nil, "", nil), Now: func() time.Time { return fixture.Noon }}
	if _, err := pass.New(read, hand, events.NewFakeRecorder(10)).Reconcile(context.Background(), reconcile.Request{NamespacedName: fixture.Key}); err != nil || len(hand.steps) != 1 {
		t.Fatalf("error %v, writes %v", err, hand.steps)
	}
	corrected := hand.steps[0][0][0].Object.(*v1.StatefulSingleton)
	if corrected.Status.ObservedGeneration != 1 {
		t.Errorf("tools that wait for the object do not see that it is Stalled: %v", corrected.Status)
	}
	corrected.Spec = fixture.Singleton("db").Spec
	corrected.Spec.Release, corrected.Generation = &v1.ReleaseOrder{ID: "a"}, 2
	if (spec.ReleaseOrder{Object: corrected}).IsOrdered() {
		t.Error("an order that the object was created with takes effect")
	}
}
