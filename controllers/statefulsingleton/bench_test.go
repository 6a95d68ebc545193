package statefulsingleton

import (
	"testing"

	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/rules"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/status"
)

// BenchmarkPass measures the decision and the status of a pass for an object with two pods,
// without reads and writes.
func BenchmarkPass(b *testing.B) {
	for _, situation := range []struct {
		name  string
		world *facts.World
	}{
		{"at rest", fixture.WorldOf(fixture.Singleton("db"), fixture.Granted("a", 1), fixture.Waiting("b"))},
		{"a handover", fixture.WorldOf(fixture.Singleton("db"), fixture.Waiting("b"))},
	} {
		b.Run(situation.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				f := facts.Derive(situation.world)
				rules.Decide(f)
				status.Summarize(f)
			}
		})
	}
}
