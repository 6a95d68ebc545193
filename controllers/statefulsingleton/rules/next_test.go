package rules_test

import (
	"testing"

	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/rules"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/spec"
)

func TestSeveralWait(t *testing.T) {
	fixture.Check(t, []fixture.Row{
		{"only a pod whose gate runs starts if several wait", fixture.WorldOf(fixture.Held(), fixture.Waiting("c").Stuck("ContainerCreating").Age(9), fixture.Waiting("b")), []string{fixture.GrantB}},
		{"no pod starts if several wait and no gate runs", fixture.WorldOf(fixture.Held(), fixture.Waiting("c").Stuck("ContainerCreating").Age(9), fixture.Waiting("b").Stuck("ContainerCreating")), nil},
		{"a pod of an older revision waits for a new pod of the newest revision", fixture.WorldOf(fixture.Held(), fixture.Waiting("c").Of("d").Stuck("ContainerCreating").Age(0), fixture.Waiting("b").Of("d").Old()), nil},
		{"a pod of an older revision starts if the newest does not reach its gate in time", fixture.WorldOf(fixture.Held(), fixture.Waiting("c").Of("d").Stuck("ContainerCreating").Age(1), fixture.Waiting("b").Of("d").Old()), []string{fixture.GrantB}},
	})
	if p := rules.Decide(facts.Derive(fixture.WorldOf(fixture.Held(), fixture.Waiting("c").Of("d").Stuck("ContainerCreating").Age(0), fixture.Waiting("b").Of("d").Old()))); p.Wait != spec.NewestPatience {
		t.Errorf("requeued after %s, want %s", p.Wait, spec.NewestPatience)
	}
}
