package statefulcluster

import (
	"testing"

	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/facts"
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
		{"set at rest", seen(set("db"), pod("a").on("n1").ready(), pod("b").on("n2").ready(), pod("c").on("n3").ready())},
		{"set with a lost node", seen(set("db"), pod("a").on("n1").ready().nodeGone(), pod("b").on("n2").ready(), pod("c").on("n3").ready())},
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
