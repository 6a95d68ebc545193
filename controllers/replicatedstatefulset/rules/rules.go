package rules

import (
	"github.com/stateful-operator/stateful-operator/controllers/internal/engine"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/facts"
)

// rules are in order of importance: first the record, then safety, then the tasks. Of the rules
// without mode Beside, at most one acts in a pass: the first one that has something to do. So a
// change of the record is stored before any decision uses it.
var rules = []engine.Rule[*facts.Facts, Plan]{
	{Name: "release pods of an unmanaged set", Act: releaseAll},
	{Name: "store the record", Act: keepRecord},
	{Name: "record the agent of the application", Act: pinAgent},
	{Name: "take over Leases that have expired", Act: takeOverLeases, Mode: engine.Beside},
	{Name: "name the holders of Leases", Act: nameHolders, Mode: engine.Beside},
	{Name: "release Leases", Act: releaseLeases, Mode: engine.Beside},
	{Name: "release pods that have stopped", Act: removePodFinalizers, Mode: engine.Beside},
	{Name: "protect pods that may run", Act: addPodFinalizers, Mode: engine.Beside},
	{Name: "restore the labels of pods", Act: restoreLabels, Mode: engine.Beside},
	{Name: "update the role labels", Act: updateRoleLabels, Mode: engine.Beside},
	{Name: "query the status of members", Act: askStatus, Mode: engine.Beside},
	{Name: "add the finalizer to the object", Act: addObjectFinalizer},
	{Name: "create and repair children", Act: keepChildren, Mode: engine.Beside},
	{Name: "create and delete Leases", Act: keepLeases, Mode: engine.Beside},
	{Name: "remove labels from pods that are not members", Act: removeLabels, Mode: engine.Beside},
	{Name: "expand claims", Act: growClaims, Mode: engine.Beside},
	{Name: "delete pods on machines that are off", Act: deleteFenced},
	{Name: "resolve commands with unknown outcome", Act: resolveCommands},
	{Name: "stop failed members", Act: stopFailed},
	{Name: "stop terminating primaries", Act: stopTerminating},
	{Name: "restart members that have left", Act: restartRejoining},
	{Name: "finish the deletion", Act: finishDeletion},
	{Name: "scale", Act: scale},
	{Name: "complete orders", Act: endOrders},
	{Name: "stop surplus primaries", Act: stopSurplus},
	{Name: "recreate outdated pods without a running member", Act: recreateIdle},
	{Name: "start the first primary", Act: startFirst},
	{Name: "start another primary", Act: startPrimary},
	{Name: "start a secondary", Act: startSecondary},
	{Name: "switch over to the ordered member", Act: switchOver},
	{Name: "park a primary", Act: parkPrimary},
	{Name: "hand over primaries that leave their Node", Act: drainPrimary},
	{Name: "finish updates in place", Act: finishInPlace},
	{Name: "update a pod", Act: update},
	{Name: "reopen the eviction budget", Act: openBudget, Mode: engine.Beside},
}

// Decide returns the plan for a world. It is pure: the same world gives the same plan.
func Decide(w *facts.World) Plan {
	f := facts.Derive(w)
	p := Plan{On: f, Record: f.Record, Asked: map[string]bool{}}
	p.Undone = f.Undone
	engine.Decide(rules, f, &p, &p.Plan)
	p.lookAgainFor(f)
	return p
}
