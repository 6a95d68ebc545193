package statefulsingleton

import (
	"context"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/stateful-operator/stateful-operator/controllers/internal/engine"
)

// TestObjectsAreLookedAtWhenTheirGuardChanges checks that objects at rest are requeued when
// the policy changes, because they get no watch event of it.
func TestObjectsAreLookedAtWhenTheirGuardChanges(t *testing.T) {
	g := &Guard{turned: make(chan event.GenericEvent, 1)}
	gone, changed := engine.Notice{Reason: "PolicyNotInstalled", Message: "gone"}, engine.Notice{Reason: "PolicyNotInstalled", Message: "changed"}
	for _, row := range []struct {
		sentence string
		problem  engine.Notice
		told     int
	}{
		{"the policy exists when the operator starts", engine.Notice{}, 0},
		{"the policy still exists", engine.Notice{}, 0},
		{"the policy is deleted", gone, 1},
		{"the policy is still missing", gone, 0},
		{"the policy is changed", changed, 1},
		{"the policy is restored", engine.Notice{}, 1},
	} {
		g.note(row.problem)
		if g.missing() != row.problem || len(g.turned) != row.told {
			t.Errorf("%s: problem %v with %d events", row.sentence, g.missing(), len(g.turned))
		}
		for len(g.turned) > 0 {
			<-g.turned
		}
	}
	g.note(gone)
	g.note(changed) // the first event was not read yet
	if len(g.turned) != 1 {
		t.Errorf("%d events, want 1", len(g.turned))
	}
	_, cached := crowd(t, 3, 1, 0)
	r := newReconciler(&reader{cache: cached}, nil, nil)
	if woken := r.everyone(context.Background(), nil); len(woken) != 3 {
		t.Errorf("objects %v are requeued", woken)
	}
}
