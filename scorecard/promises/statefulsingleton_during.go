package promises

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/test/faults/testimony"
)

// HandoverDuring holds a handover of a StatefulSingleton open while something is
// done: the old program does not end until that is over. It fails where the next
// program started before, where two ran together, or where none does at the end.
func HandoverDuring(ctx context.Context, c *Cluster, what string, do func() error) error {
	return witnessed(func(ctx context.Context, c *Cluster) error {
		const mayEnd = "may-end"
		a, err := c.application("during", behave("WITNESS_STOP_FILE", mayEnd), grace(3600))
		if err != nil {
			return err
		}
		if err := a.hold(ctx); err != nil {
			return err
		}
		d, err := a.deploy(ctx, 1, surge())
		if err != nil {
			return err
		}
		old, err := a.one(ctx)
		if err != nil {
			return err
		}
		if err := errors.Join(a.active(ctx, old), a.rollOut(ctx, d)); err != nil {
			return err
		}
		transitioning := func(s *v1.StatefulSingleton) bool { return s.Status.Phase == v1.PhaseTransitioning }
		if _, err := a.says(ctx, "that a handover goes on", transitioning); err != nil {
			return err
		}
		if err := do(); err != nil {
			return fmt.Errorf("%s, during a handover: %w", what, err)
		}
		if err := a.stays(old); err != nil {
			return fmt.Errorf("the handover did not wait for the end of %s: %w", what, err)
		}
		next, err := a.handover(ctx, "the end of the old program", func(testimony.Run) error {
			return os.WriteFile(filepath.Join(a.folder.Dir(), mayEnd), nil, 0o644)
		})
		if err != nil {
			return err
		}
		return errors.Join(a.active(ctx, next), a.rolledOut(ctx, d))
	})(ctx, c)
}
