package replicatedstatefulset

import (
	"testing"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/facts"
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
			return worldOf(setOf(3, 1), pod(0).primary().sequence("9"), pod(1).secondary().sequence("9"), pod(2).secondary().sequence("9"))
		}},
		{"in failover", func() *facts.World {
			return worldOf(setOf(3, 1), pod(0).crashed(), pod(1).secondary().sequence("3"), pod(2).secondary().sequence("9"))
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
