// Package replicated contains the promises of ReplicatedStatefulSet.
package replicated

import (
	"context"

	"github.com/stateful-operator/stateful-operator/scorecard/promises/kit"
)

// Promises lists the promises of this kind. Promises with ledgers also fail if an acknowledged
// entry is lost, or if the ledgers' journals show two primaries at the same time.
var Promises = []kit.Promise{
	{Name: "RS-32 RS-33 RS-42 the walk-through of the original", Site: kit.OperatorSite, Run: walkThrough}, // it stops the operator for a while
	kit.Beside("W7 obstacles of a member are reported with the command that helps", reportsObstacles),
	kit.Beside("RS-4 RS-61 containers get their names and Secrets, and one of them the commands", findsItself),
	kit.Scribed(ledgers("RS-34 a primary that fails is succeeded, and returns", failover)),
	kit.Core(ledgers("RS-36 after lights out the newest copy is started first", lightsOut)),
	kit.Long(kit.Scribed(ledgers("RS-33 RS-57 roles are handed over before a member is removed", handOvers))),
	ledgers("RS-96 RS-97 a changed Secret restarts all members in order, and a missing one restarts none", changedSecret),
	kit.Scribed(ledgers("RS-37 RS-38 RS-39 RS-46 stopped in order, and back from zero", toZeroAndBack)),
	ledgers("RS-40 a member that stays Pending does not block others", pendingForEver),
	kit.Scribed(ledgers("RS-45 RS-47 a paused set is not changed", pausedSet)),
	kit.Scribed(ledgers("V12 a demote and a stop without effect are not sent forever", idleCommands)),
	ledgers("RS-89 RS-90 a primary is parked and not changed", parkedPrimary),
	ledgers("RS-99 RS-110 resources change in place, or else a member is recreated", sizedMembers),
	ledgers("V13 an unresponsive primary does not count as serving", mutePrimary),
	ledgers("RS-32 RS-42 the original's manifest, and 7 to 2 to 7 members in a failover", originalManifest),
	ledgers("RS-14 if the newest cannot be seeded, no older one is seeded", newestCannotBeSeeded),
	kit.Long(ledgers("RS-33 RS-37 RS-46 RS-57 deliberate operations of users on Redis", redis)),
	ledgers("RS-149 RS-150 a member leaves before it is removed, and joins again if it stays", leaves),
	kit.Long(ledgers("RS-141 PostgreSQL in 25 lines loses no acknowledged row", lives(postgreSQL))),
	kit.Long(ledgers("RS-151 etcd in 25 lines loses no acknowledged entry, and forgets members that are removed", livesTogether(etcd))),
	kit.Long(ledgers("RS-152 MariaDB Galera in 25 lines loses no acknowledged row", livesTogether(mariaDB))),
	kit.Long(ledgers("RS-157 RabbitMQ in 25 lines loses no confirmed message, and forgets members that are removed", livesTogether(rabbitMQ))),
	kit.Long(ledgers("RS-145 Redis in 25 lines loses no write for which WAIT has returned", lives(redisInLines))),
	kit.Long(kit.Promise{Name: "RS-147 no acknowledged row of PostgreSQL is lost over random faults", Site: kit.NodeSite, Faults: true, Run: soakOf(postgreSQL)}),
	kit.Long(kit.Promise{Name: "RS-148 no acknowledged write of Redis is lost over random faults", Site: kit.NodeSite, Faults: true, Run: soakOf(redisInLines)}),
	kit.Long(kit.Promise{Name: "RS-153 no acknowledged entry of etcd is lost over random faults", Site: kit.NodeSite, Faults: true, Run: soakOf(etcd)}),
	kit.Long(kit.Promise{Name: "RS-154 no acknowledged row of MariaDB Galera is lost over random faults", Site: kit.NodeSite, Faults: true, Run: soakOf(mariaDB)}),
	kit.Long(kit.Promise{Name: "RS-158 no confirmed message of RabbitMQ is lost over random faults", Site: kit.NodeSite, Faults: true, Run: soakOf(rabbitMQ)}),
	kit.Long(ledgers("RS-155 a failover that would lose more than maxLoss restarts the former primary", limitsLoss)),
	kit.Long(ledgers("RS-162 fencing by a Lease is switched on and off while PostgreSQL runs", switchesFencing)),
	kit.Beside("RS-142 a Secret of spec.application that is missing or lacks a key is reported", lacksAKey),
	{Name: "RS-143 an init container brings the agent if a Node does not support image volumes", Site: kit.NodeSite, Faults: true, Run: copiesAgent},
	{Name: "RS-143 an upgrade of the operator restarts nothing, and the next rollout brings its agent", Site: kit.OperatorSite, Faults: true, Run: keepsAgent},
	{Name: "RS-159 RS-160 a secondary of PostgreSQL takes over from a lost node by a Lease", Site: kit.NodeSite, Faults: true, Run: failsOver},
	{Name: "RS-161 a primary with a Lease ends if the API server is away for long, and starts again", Site: kit.NodeSite, Faults: true, Run: withoutAPIServer},
	kit.Core(kit.Promise{Name: "RS-41 a primary on a lost node has no rival", Site: kit.NodeSite, Faults: true, Run: lostPrimary}),
	{Name: "W9 W12 a failover waits for an unreachable member, and recreates it when that is allowed", Site: kit.NodeSite, Faults: true, Run: unansweredSecondary},
	kit.Beside("W11 two of three members that are not Ready are reported, and may be evicted", unreadySecondaries),
	{Name: "RS-35 the majority is lost, and the others continue to run", Site: kit.NodeSite, Faults: true, Run: majorityLost},
	kit.Core(ledgers("RS-80 RS-67 an eviction of the primary without a cordon loses no data", evictPrimary)),
	ledgers("RS-102 RS-103 an order in a manifest that is applied repeatedly is executed once", applyOrders),
	ledgers("RS-94 RS-95 a deleted pod of the primary loses no data if its preStop hook sleeps", deletePrimary),
	{Name: "RS-64 RS-67 a drain of the primary's node loses no data", Site: kit.NodeSite, Faults: true, Run: drainPrimary},
	kit.Long(kit.Promise{Name: "RS-64 RS-67 all nodes are drained in turn under load", Site: kit.NodeSite, Faults: true, Run: drainAll}),
	kit.Core(kit.Promise{Name: "RS-43 the operator is killed while a set is created, seeded, and paused", Site: kit.OperatorSite, Faults: true, Run: operatorDiesInStates}),
	{Name: "RS-43 RS-56 no entry is lost over random faults", Site: kit.NodeSite, Faults: true, Run: soak},
}

func ledgers(name string, keep func(context.Context, *kit.Cluster)) kit.Promise {
	return kit.Promise{Name: name, Faults: true, Site: kit.SharedSite, Run: keep}
}
