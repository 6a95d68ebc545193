package replicatedstatefulset

import (
	"testing"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/rules"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/status"
)

// BenchmarkPass measures the decision and the status of a pass for a set of three, without reads
// and writes.
func BenchmarkPass(b *testing.B) {
	for _, situation := range []struct {
		name  string
		world func() *facts.World
	}{
		{"at rest", func() *facts.World {
			return fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Primary().Sequence("9"), fixture.Pod(1).Secondary().Sequence("9"), fixture.Pod(2).Secondary().Sequence("9"))
		}},
		{"in failover", func() *facts.World {
			return fixture.WorldOf(fixture.SetOf(3, 1), fixture.Pod(0).Crashed(), fixture.Pod(1).Secondary().Sequence("3"), fixture.Pod(2).Secondary().Sequence("9"))
		}},
	} {
		b.Run(situation.name, func(b *testing.B) {
			w := situation.world()
			var s v1alpha1.ReplicatedStatefulSetStatus
			b.ReportAllocs()
			for b.Loop() {
				p := rules.Decide(w)
				s = status.Summarize(&p)
			}
			_ = s
		})
	}
}
