package promises

import (
	"context"

	"github.com/stateful-operator/stateful-operator/test/faults/testimony"
)

// restoredSingleton is a StatefulSingleton that is restored from a backup.
type restoredSingleton struct {
	a *application
	// before is the program that ran at the time of the backup.
	before testimony.Run
}

// singletonToRestore creates a StatefulSingleton with a running program and a standby.
func (c *Cluster) singletonToRestore(ctx context.Context) *restoredSingleton {
	a, _ := c.running(ctx, 2, "mail")
	return &restoredSingleton{a, a.one(ctx)}
}

// ComesBack waits until another program runs and is reported.
func (b *restoredSingleton) ComesBack(ctx context.Context) {
	b.a.active(ctx, b.a.one(ctx, b.before))
}
