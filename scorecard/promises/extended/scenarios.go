package extended

import (
	"context"

	"github.com/stateful-operator/stateful-operator/scorecard/promises/kit"
)

// Scenarios are actions of users on an ExtendedStatefulSet during which a leader is frozen.
var Scenarios = []kit.Scenario{
	action("create", withSet(0, onClaims)),
	action("upgrade with a separate canary", withSet(2, coexist, canaries(1), minReady(1))),
	action("upgrade with a canary by ordinal", withSet(2, onClaims, canaries(1), minReady(1))),
	action("upgrade with jobs", withSet(2, coexist, withJobs)),
	action("upgrade of active and passive pods", withSet(2, coexist, probedActive(true, 3, "test ! -e /tmp/passive"))),
	action("upgrade in zones", zonesScenario),
}

// action returns a scenario of this kind.
func action(name string, begin kit.Beginning) kit.Scenario {
	return kit.Scenario{Name: "ExtendedStatefulSet " + name, Kind: "ExtendedStatefulSet", Begin: begin}
}

// withSet tests the upgrade of an ExtendedStatefulSet. With 0 replicas, the action is to
// create it with 2.
func withSet(replicas int32, shape ...specChange) kit.Beginning {
	return func(ctx context.Context, c *kit.Cluster) (run, judge kit.Step) {
		x := newFixture(c, "frozen", max(replicas, 2), append(shape, patiently)...)
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
func zonesScenario(ctx context.Context, c *kit.Cluster) (run, judge kit.Step) {
	_, label := zoned(ctx, c, 2)
	return withSet(1, coexist, inZones(label, zoneName(0), zoneName(1)))(ctx, c)
}
