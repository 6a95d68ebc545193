package singleton

import (
	"context"

	"github.com/stateful-operator/stateful-operator/scorecard/promises/kit"
	"github.com/stateful-operator/stateful-operator/test/faults/testimony"
)

// Restored is a StatefulSingleton that is restored from a backup.
type Restored struct {
	a *application
	// before is the program that ran at the time of the backup.
	before testimony.Run
}

// ToRestore creates a StatefulSingleton with a running program and a standby.
func ToRestore(ctx context.Context, c *kit.Cluster) *Restored {
	a, _ := startApplication(ctx, c, 2, "mail")
	return &Restored{a, a.one(ctx)}
}

// ComesBack waits until another program runs and is reported.
func (b *Restored) ComesBack(ctx context.Context) {
	b.a.active(ctx, b.a.one(ctx, b.before))
}
