package promises

import (
	"context"

	"github.com/stateful-operator/stateful-operator/test/faults/testimony"
)

// singletonScenarios are actions of users on a StatefulSingleton during which a leader is frozen.
var singletonScenarios = []scenario{
	singletonAction("first pod", singletonScenario(false, startFirst)),
	singletonAction("handover", singletonScenario(true, func(ctx context.Context, a *application) {
		a.handover(ctx, "deletion", func(old testimony.Run) { a.delete(ctx, old) })
	})),
}

// singletonAction returns a scenario of this kind.
func singletonAction(name string, begin beginning) scenario {
	return scenario{Name: "StatefulSingleton " + name, Kind: "StatefulSingleton", Begin: begin}
}

// singletonScenario tests a StatefulSingleton. If started is true, a Deployment with a running pod
// exists before.
func singletonScenario(started bool, act func(context.Context, *application)) beginning {
	return func(ctx context.Context, c *Cluster) (run, judge step) {
		a := c.application("frozen")
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
