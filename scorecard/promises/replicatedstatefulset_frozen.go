package promises

import (
	"context"

	"github.com/stateful-operator/stateful-operator/test/faults/testimony"
)

// ledgerScenarios are actions of users on a ReplicatedStatefulSet during which a leader is frozen.
var ledgerScenarios = []scenario{
	ledgerAction("create", createLedger),
	ledgerAction("failover", ledgerScenario(3, func(ctx context.Context, r *replica) {
		old := r.primary(ctx)
		at := testimony.Now()
		r.killServer(ctx, old)
		r.newPrimary(ctx, at)
	})),
	ledgerAction("switchover", ledgerScenario(3, func(ctx context.Context, r *replica) {
		r.switchTo(ctx, "rss-frozen-2")
	})),
	ledgerAction("scale", ledgerScenario(4, func(ctx context.Context, r *replica) {
		r.resize(ctx, 3)
	})),
}

// ledgerAction returns a scenario of this kind.
func ledgerAction(name string, begin beginning) scenario {
	return scenario{Name: "ReplicatedStatefulSet " + name, Kind: "ReplicatedStatefulSet", Begin: begin}
}

// createLedger tests the creation of a ReplicatedStatefulSet.
func createLedger(_ context.Context, c *Cluster) (run, judge step) {
	var r *replica
	return func(ctx context.Context) { r = c.ledger(ctx, "frozen", 3) }, func(ctx context.Context) { r.judge(ctx) }
}

// ledgerScenario tests an existing ReplicatedStatefulSet that is written to.
func ledgerScenario(replicas int32, act func(context.Context, *replica)) beginning {
	return func(ctx context.Context, c *Cluster) (run, judge step) {
		r := c.ledger(ctx, "frozen", replicas)
		return func(ctx context.Context) {
			act(ctx, r)
			r.goesOnWriting(ctx)
			r.whole(ctx)
		}, func(ctx context.Context) { r.judge(ctx) }
	}
}
