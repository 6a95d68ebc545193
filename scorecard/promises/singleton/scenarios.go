package singleton

import (
	"context"

	"github.com/stateful-operator/stateful-operator/scorecard/promises/kit"
	"github.com/stateful-operator/stateful-operator/test/faults/testimony"
)

// Scenarios are actions of users on a StatefulSingleton during which a leader is frozen.
var Scenarios = []kit.Scenario{
	action("first pod", withApplication(false, startFirst)),
	action("handover", withApplication(true, func(ctx context.Context, a *application) {
		a.handover(ctx, "deletion", func(old testimony.Run) { a.delete(ctx, old) })
	})),
}

// action returns a scenario of this kind.
func action(name string, begin kit.Beginning) kit.Scenario {
	return kit.Scenario{Name: "StatefulSingleton " + name, Kind: "StatefulSingleton", Begin: begin}
}

// withApplication tests a StatefulSingleton. If started is true, a Deployment with a running pod
// exists before.
func withApplication(started bool, act func(context.Context, *application)) kit.Beginning {
	return func(ctx context.Context, c *kit.Cluster) (run, judge kit.Step) {
		a := newApplication(c, "frozen")
		a.hold(ctx)
		if started {
			startFirst(ctx, a)
		}
		return func(ctx context.Context) { act(ctx, a) }, func(ctx context.Context) {
			run := a.one(ctx)
			a.active(ctx, run)
			a.ready(ctx, run)
		}
	}
}

// startFirst creates the pods of an application, and waits until one runs.
func startFirst(ctx context.Context, a *application) {
	a.deploy(ctx, 1, surge())
	run := a.one(ctx)
	a.active(ctx, run)
	a.ready(ctx, run)
}
