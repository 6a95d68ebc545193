package replicated

import (
	"context"

	"github.com/stateful-operator/stateful-operator/scorecard/promises/kit"
	"github.com/stateful-operator/stateful-operator/test/faults/testimony"
)

// Scenarios are actions of users on a ReplicatedStatefulSet during which a leader is frozen.
var Scenarios = []kit.Scenario{
	action("create", onCreation),
	action("failover", withLedger(3, func(ctx context.Context, r *replica) {
		old := r.primary(ctx)
		at := testimony.Now()
		r.killServer(ctx, old)
		r.newPrimary(ctx, at)
	})),
	action("switchover", withLedger(3, func(ctx context.Context, r *replica) {
		r.switchTo(ctx, "rss-frozen-2")
	})),
	action("scale", withLedger(4, func(ctx context.Context, r *replica) {
		r.resize(ctx, 3)
	})),
}

// action returns a scenario of this kind.
func action(name string, begin kit.Beginning) kit.Scenario {
	return kit.Scenario{Name: "ReplicatedStatefulSet " + name, Kind: "ReplicatedStatefulSet", Begin: begin}
}

// onCreation tests the creation of a ReplicatedStatefulSet.
func onCreation(_ context.Context, c *kit.Cluster) (run, judge kit.Step) {
	var r *replica
	return func(ctx context.Context) { r = createLedger(ctx, c, "frozen", 3) }, func(ctx context.Context) { r.judge(ctx) }
}

// withLedger tests an existing ReplicatedStatefulSet that is written to.
func withLedger(replicas int32, act func(context.Context, *replica)) kit.Beginning {
	return func(ctx context.Context, c *kit.Cluster) (run, judge kit.Step) {
		r := createLedger(ctx, c, "frozen", replicas)
		return func(ctx context.Context) {
			act(ctx, r)
			r.goesOnWriting(ctx)
			r.whole(ctx)
		}, func(ctx context.Context) { r.judge(ctx) }
	}
}
