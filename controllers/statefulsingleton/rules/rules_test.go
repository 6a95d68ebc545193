package rules_test

import (
	"testing"

	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/rules"
)

// TestPriorities checks which rule acts first if several could.
func TestPriorities(t *testing.T) {
	for _, r := range []struct {
		w    *facts.World
		want string
	}{
		{fixture.WorldOf(nil, fixture.Waiting("a")), "release the pods of a deleted object"},
		{fixture.WorldOf(fixture.Held(), fixture.Granted("a", 1).OnNode(fixture.OutOfIt), fixture.Waiting("b")), "delete pods on machines that are off"},
		{fixture.WorldOf(fixture.Singleton("db"), fixture.Granted("a", 1), fixture.Waiting("b")), "adopt a running pod"},
		{fixture.WorldOf(fixture.Singleton("db").Held("a", 3), fixture.Waiting("a"), fixture.Waiting("b")), "complete the grant"},
		{fixture.WorldOf(fixture.Held(), fixture.Waiting("b")), "grant the next pod"},
		{fixture.WorldOf(fixture.Held(), fixture.Granted("a", 1).Of("d").Old(), fixture.Waiting("b").Of("d")), "delete a superseded pod"},
		{fixture.WorldOf(fixture.Held(), fixture.Granted("a", 1)), ""},
	} {
		if p := rules.Decide(facts.Derive(r.w)); p.Rule != r.want {
			t.Errorf("rule %q acts first with %q, want %q", p.Rule, p.Steps.Strings(), r.want)
		}
	}
}

// TestTheReasonForADelayIsReadAgain checks that the plan requeues the key for the events that
// may have the reason why a pod does not run.
func TestTheReasonForADelayIsReadAgain(t *testing.T) {
	w := fixture.WorldOf(fixture.Held(), fixture.Granted("a", 1))
	if p := rules.Decide(facts.Derive(w)); p.Wait != 0 {
		t.Errorf("at rest, requeued after %s", p.Wait)
	}
	w.Delay.Again = 7
	if p := rules.Decide(facts.Derive(w)); p.Wait != 7 {
		t.Errorf("requeued after %s", p.Wait)
	}
}
