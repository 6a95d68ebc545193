package statefulcluster

import (
	"testing"

	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/rules"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/status"
)

// BenchmarkPass measures the decision and the status of a pass over a set of three, without reads
// and writes.
func BenchmarkPass(b *testing.B) {
	for _, situation := range []struct {
		name  string
		world *facts.World
	}{
		{"set at rest", fixture.Seen(fixture.Set("db"), fixture.Pod("a").On("n1").Ready(), fixture.Pod("b").On("n2").Ready(), fixture.Pod("c").On("n3").Ready())},
		{"set with a lost node", fixture.Seen(fixture.Set("db"), fixture.Pod("a").On("n1").Ready().NodeGone(), fixture.Pod("b").On("n2").Ready(), fixture.Pod("c").On("n3").Ready())},
	} {
		b.Run(situation.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				f := facts.Derive(situation.world)
				p := rules.Decide(f)
				status.Summarize(f, &p, status.Results{})
			}
		})
	}
}
