package simtest

import (
	"fmt"
	"strings"

	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation"
)

// Test is the test that fails with a story, usually *testing.T.
type Test interface {
	Helper()
	Fatalf(format string, args ...any)
}

// Verdict are the violated invariants of a simulation.
type Verdict struct {
	cluster *simulation.Cluster
	broken  []string
}

// VerdictOf returns the verdict about a cluster.
func VerdictOf(c *simulation.Cluster) Verdict { return Verdict{cluster: c} }

// Breaks records a violated invariant. The story continues until Check.
func (v *Verdict) Breaks(format string, args ...any) {
	v.broken = append(v.broken, fmt.Sprintf(format, args...))
}

// Check fails the test if an invariant was violated.
func (v *Verdict) Check(t Test) {
	t.Helper()
	if len(v.broken) > 0 {
		v.Fatal(t, strings.Join(v.broken, "\n"))
	}
}

// Fatal fails the test, and prints the last lines of the story.
func (v *Verdict) Fatal(t Test, why string) {
	t.Helper()
	const most = 150
	t.Fatalf("%s\nend of the story:\n%s", why, strings.Join(v.cluster.Story[max(0, len(v.cluster.Story)-most):], "\n"))
}
