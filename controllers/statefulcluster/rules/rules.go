package rules

import (
	"slices"

	"github.com/stateful-operator/stateful-operator/controllers/internal/engine"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/facts"
)

// rules are sorted by priority.
var rules = []engine.Rule[*facts.Facts, Plan]{
	{Name: "record the revision", Act: recordRevision, Mode: engine.Leading},
	{Name: "adopt orphaned members", Act: adoptOrphans},
	{Name: "restore the operator's labels", Act: relabel},
	{Name: "keep evicted members", Act: keepEvicted},
	{Name: "create missing claims", Act: createClaims},
	{Name: "retire surplus members", Act: scaleDown},
	// After scaleDown, which removes members that are still returning.
	{Name: "recreate updated members", Act: bringBack, Mode: engine.Leading},
	{Name: "replace lost members", Act: replaceLost},
	{Name: "create missing members", Act: createMissing},
	// Timeless: the spec determines the allowed disruptions, and the set owns its budget.
	{Name: "reconcile the disruption budget", Act: keepBudget, Mode: engine.Timeless},
	{Name: "retain or delete claims of former members", Act: setAside},
	// Timeless: a member that was Ready once stays proof that the revision works.
	{Name: "mark the revision as ready", Act: markReady, Mode: engine.Beside | engine.Timeless},
	// Beside: no other rule makes such a pod a member.
	{Name: "remove labels from pods that are not members", Act: removeLabels, Mode: engine.Beside},
	{Name: "finish in-place updates", Act: finishInPlace},
	{Name: "retire members on cordoned nodes", Act: retireLeaving},
	{Name: "update members", Act: rollOut},
	{Name: "restart ended members", Act: restartEnded},
	{Name: "expand claims", Act: growClaims},
	{Name: "trim the revision history", Act: trimHistory},
}

// Decide returns the plan for the facts. It has no side effects: the same facts give the same plan.
func Decide(f *facts.Facts) Plan {
	p := Plan{now: f.Now, Updating: f.Set.Status.Updating}
	p.Undone = f.Undone
	if !f.Served() {
		return p // nothing is changed; running pods keep running
	}
	p.Updating = slices.Clone(f.Returning)
	p.Creating = facts.StillWanted(f)
	p.Failing = slices.Clone(f.Failing)
	p.newMembers = newMembers{ids: f.Fresh, replaced: map[string]bool{}}
	p.RequeueAt(f.Changes...)
	p.LookAgain(f.Causes.Again)
	// The cache may show a returning member as still alive.
	p.Look = !f.Live && len(p.Updating) < len(f.Set.Status.Updating)
	engine.Decide(rules, f, &p, &p.Plan)
	return p
}
