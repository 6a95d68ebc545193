package statefulsingleton

import "testing"

// BenchmarkPass measures the decision and the status of a pass for an object with two pods,
// without reads and writes.
func BenchmarkPass(b *testing.B) {
	for _, situation := range []struct {
		name  string
		world *world
	}{
		{"at rest", worldOf(singleton("db"), granted("a", 1), waiting("b"))},
		{"a handover", worldOf(singleton("db"), waiting("b"))},
	} {
		b.Run(situation.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				f := derive(situation.world)
				decide(f)
				summarize(f)
			}
		})
	}
}
