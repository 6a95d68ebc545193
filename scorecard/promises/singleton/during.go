package singleton

import (
	"context"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/scorecard/promises/kit"
	"github.com/stateful-operator/stateful-operator/test/faults/testimony"
)

// HandoverDuring keeps a handover of a StatefulSingleton in progress during do: the old program
// ends only afterwards. It fails if the next program started before that, if two programs
// overlapped, or if none runs at the end.
func HandoverDuring(ctx context.Context, c *kit.Cluster, what string, do func() error) error {
	return c.Kept(func(c *kit.Cluster) {
		kit.Witnessed(func(ctx context.Context, c *kit.Cluster) {
			a, d := startApplication(ctx, c, 1, "during", endsByFile, grace(3600))
			old := a.one(ctx)
			a.active(ctx, old)
			a.rollOut(ctx, d)
			a.says(ctx, "that a handover is in progress", func(s *v1.StatefulSingleton) bool { return s.Status.Phase == v1.PhaseTransitioning })
			c.During(what+", during a handover", func() { c.Check(do()) })
			c.During("the handover did not wait for the end of "+what, func() { a.stays(old) })
			next := a.handover(ctx, "the end of the old program", func(testimony.Run) { a.end() })
			a.active(ctx, next)
			a.rolledOut(ctx, d)
		})(ctx, c)
	})
}
