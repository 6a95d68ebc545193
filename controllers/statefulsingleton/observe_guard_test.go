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
		{"it is there when the operator begins", engine.Notice{}, 0},
		{"it is there still", engine.Notice{}, 0},
		{"it goes", gone, 1},
		{"it is gone still", gone, 0},
		{"it is another one", changed, 1},
		{"it is back", engine.Notice{}, 1},
	} {
		g.note(row.problem)
		if g.missing() != row.problem || len(g.turned) != row.told {
			t.Errorf("%s: %v is missed, and told %d times", row.sentence, g.missing(), len(g.turned))
		}
		for len(g.turned) > 0 {
			<-g.turned
		}
	}
	g.note(gone)
	g.note(changed) // the first event was not read yet
	if len(g.turned) != 1 {
		t.Errorf("told %d times", len(g.turned))
	}
	_, cached := crowd(t, 3, 1, 0)
	r := &Reconciler{Cache: cached}
	if woken := r.everyone(context.Background(), nil); len(woken) != 3 {
		t.Errorf("%v are looked at", woken)
	}
}
