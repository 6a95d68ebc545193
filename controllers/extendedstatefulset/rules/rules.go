package rules

import (
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/internal/engine"
)

// rules are the rules in the order in which they run. All are Leading: the rules do not compete, because
// what must not be done at the same time is decided by one rule (keepChildren) or by the record.
// keepRecord stops the pass if the record must be written first.
var rules = []engine.Rule[*facts.Facts, Plan]{
	{Name: "keep the owner references on configuration", Act: keepTracking, Mode: engine.Leading},
	{Name: "keep the record", Act: keepRecord, Mode: engine.Leading},
	{Name: "keep the claims", Act: keepClaims, Mode: engine.Leading},
	{Name: "keep the Services", Act: keepServices, Mode: engine.Leading},
	{Name: "remove labels from pods that belong to no version", Act: RemoveLabels, Mode: engine.Leading},
	{Name: "keep the disruption budgets", Act: keepBudgets, Mode: engine.Leading},
	{Name: "run the jobs", Act: runJobs, Mode: engine.Leading},
	{Name: "keep the versions", Act: keepChildren, Mode: engine.Leading},
	{Name: "replace pods without claims", Act: replaceUnassigned, Mode: engine.Leading},
	{Name: "delete surplus pods", Act: deleteSurplus, Mode: engine.Leading},
	{Name: "clean up", Act: cleanUp, Mode: engine.Leading},
	{Name: "follow the active/passive probes", Act: FollowProbes, Mode: engine.Leading},
}

// Decide returns the plan for the facts. It is pure: the same facts give the same plan.
func Decide(f *facts.Facts) Plan {
	p := Plan{Plan: engine.Plan{Undone: f.Undone}}
	applied := rules
	if f.Ignored() {
		applied = rules[:1] // only the owner references, because they block the deletion
	}
	engine.Decide(applied, f, &p, &p.Plan)
	requeueAtDeadlines(&p, f)
	return p
}
