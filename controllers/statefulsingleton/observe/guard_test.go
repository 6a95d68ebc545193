package observe_test

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/stateful-operator/stateful-operator/controllers/internal/engine"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/observe"
)

// TestChangesOfTheGuardAreReported checks that each change of the policy causes one event.
func TestChangesOfTheGuardAreReported(t *testing.T) {
	g := &observe.Guard{Turned: make(chan event.GenericEvent, 1)}
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
		g.Note(row.problem)
		if g.Missing() != row.problem || len(g.Turned) != row.told {
			t.Errorf("%s: problem %v with %d events", row.sentence, g.Missing(), len(g.Turned))
		}
		for len(g.Turned) > 0 {
			<-g.Turned
		}
	}
	g.Note(gone)
	g.Note(changed) // the first event was not read yet
	if len(g.Turned) != 1 {
		t.Errorf("%d events, want 1", len(g.Turned))
	}
}
