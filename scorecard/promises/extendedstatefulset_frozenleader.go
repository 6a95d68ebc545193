package promises

import (
	"context"
)

// extendedScenarios are actions of users on an ExtendedStatefulSet during which a leader is frozen.
var extendedScenarios = []scenario{
	extendedAction("create", extendedScenario(0, onClaims)),
	extendedAction("upgrade with a separate canary", extendedScenario(2, coexist, canaries(1), minReady(1))),
	extendedAction("upgrade with a canary by ordinal", extendedScenario(2, onClaims, canaries(1), minReady(1))),
	extendedAction("upgrade with jobs", extendedScenario(2, coexist, withJobs)),
	extendedAction("upgrade of active and passive pods", extendedScenario(2, coexist, probedActive(true, 3, "test ! -e /tmp/passive"))),
	extendedAction("upgrade in zones", zonesScenario),
}

// extendedAction returns a scenario of this kind.
func extendedAction(name string, begin beginning) scenario {
	return scenario{Name: "ExtendedStatefulSet " + name, Kind: "ExtendedStatefulSet", Begin: begin}
}

// extendedScenario tests the upgrade of an ExtendedStatefulSet. With 0 replicas, the action is to
// create it with 2.
func extendedScenario(replicas int32, shape ...extendedChange) beginning {
	return func(ctx context.Context, c *Cluster) (run, judge step) {
		x := c.extended("frozen", max(replicas, 2), append(shape, patiently)...)
		if replicas == 0 {
			return x.create, func(ctx context.Context) { x.serves(ctx, 1) }
		}
		x.create(ctx)
		return func(ctx context.Context) {
			x.edit(ctx, inVersion("2"))
			x.serves(ctx, 2)
		}, func(ctx context.Context) { x.serves(ctx, 2) }
	}
}

// zonesScenario tests a set in two zones, which are upgraded one after another.
func zonesScenario(ctx context.Context, c *Cluster) (run, judge step) {
	_, label := c.zoned(ctx, 2)
	return extendedScenario(1, coexist, inZones(label, zoneName(0), zoneName(1)))(ctx, c)
}
