package rules_test

import (
	"testing"

	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/rules"
)

// TestPriorities checks which rule acts first if several could.
func TestPriorities(t *testing.T) {
	unrecorded := fixture.With(func(w *facts.World) { w.Set.Status.Grants = nil })
	for _, r := range []struct {
		name   string
		things []fixture.Thing
		want   string
	}{
		{"at rest", []fixture.Thing{fixture.Pod(0).Primary(), fixture.Pod(1).Secondary()}, ""},
		{"a new observation", []fixture.Thing{fixture.Pod(0).Primary(), fixture.Pod(1).Idle(), unrecorded}, "store the record"},
		{"a pod on a machine that is off", []fixture.Thing{fixture.Pod(0).Primary(), fixture.Pod(1).Secondary().OnNode(fixture.Out)}, "delete pods on machines that are off"},
		{"a secondary is missing", []fixture.Thing{fixture.Pod(0).Primary(), fixture.Pod(1).Idle()}, "start a secondary"},
		{"an outdated pod", []fixture.Thing{fixture.Pod(0).Primary(), fixture.Pod(1).Secondary().Outdated()}, "update a pod"},
		{"an outdated pod without a running member", []fixture.Thing{fixture.Pod(0).Primary(), fixture.Pod(1).Idle().Outdated()}, "recreate outdated pods without a running member"},
		{"two primaries", []fixture.Thing{fixture.Pod(0).Primary(), fixture.Pod(1).Primary()}, "stop surplus primaries"},
	} {
		p := rules.Decide(fixture.WorldOf(fixture.SetOf(2, 1), r.things...))
		if p.Rule != r.want {
			t.Errorf("%s: rule %q acts first with %q, want %q", r.name, p.Rule, fixture.Gist(&p), r.want)
		}
	}
}
