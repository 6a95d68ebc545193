package statefulcluster

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/engine"
)

// plan is the result of decide: the steps to carry out, and the reasons for the status.
type plan struct {
	engine.Plan
	now time.Time

	// updating is the value of status.updating after the steps.
	updating []v1alpha1.UpdatingMember
	// creating is the value of status.creating after the steps.
	creating []string
	// recorded is true if the steps write status.updating and status.creating. That is possible
	// once for each version of the set.
	recorded bool
	// held are lost members that wait, for maxConcurrent or because new members are refused.
	held []string
	// failing are members that passed a deadline and are not replaced, because their template may
	// be the cause.
	failing []string
	// look requests a live pass even if the cache shows nothing to do.
	look bool
	// givenUp are the UIDs of the old pods of members that the steps remove from status.updating
	// because the set is scaled down.
	givenUp []types.UID
	// dropped are the names that the steps remove from status.updating because claims of the member
	// are gone.
	dropped []string
	// losses are the members that replaceLost replaces.
	losses []loss
	// births are the new members.
	births births
}

// Reasons of actions, in addition to the loss reasons.
const (
	reasonRevision   = "Revision"
	reasonBudget     = "Budget"
	reasonNames      = "Names"
	reasonMissing    = "Missing"
	reasonReplaced   = "Replacement"
	reasonReturned   = "Returned"
	reasonClaim      = "Claim"
	reasonRetention  = "Retention"
	reasonRetired    = "Retired"
	reasonTrial      = "Trial"
	reasonUpdate     = "Update"
	reasonUpdated    = "Updated"
	reasonResize     = "Resize"
	reasonExpand     = "Expand"
	reasonAdopted    = "Adopted"
	reasonRelabel    = "Relabel"
	reasonRevisionOK = "RevisionReady"
	reasonHistory    = "History"
	reasonForeign    = "Foreign"
)

// rules are sorted by priority.
var rules = []engine.Rule[*facts, plan]{
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

// decide returns the plan for the facts. It has no side effects: the same facts give the same plan.
func decide(f *facts) plan {
	p := plan{now: f.now, updating: f.set.Status.Updating}
	p.Undone = f.undone
	if !f.served() {
		return p // nothing is changed; running pods keep running
	}
	p.updating = slices.Clone(f.returning)
	p.creating = stillWanted(f)
	p.failing = slices.Clone(f.failing)
	p.births = births{ids: f.fresh, replaced: map[string]bool{}}
	p.lookAgain(f.changes...)
	p.LookAgain(f.causes.Again)
	// The cache may show a returning member as still alive.
	p.look = !f.live && len(p.updating) < len(f.set.Status.Updating)
	engine.Decide(rules, f, &p, &p.Plan)
	return p
}

// wantsLive reports whether to decide again on a live read before the plan is carried out.
func (p *plan) wantsLive() bool { return p.look || p.Timed }

// lookAgain requeues the key at these times. Times in the past are ignored.
func (p *plan) lookAgain(times ...time.Time) {
	for _, at := range times {
		p.LookAgain(at.Sub(p.now))
	}
}

// tryLater requeues the key when a write refused for one of these reasons may be retried.
func (p *plan) tryLater(f *facts, reasons ...string) {
	for _, reason := range reasons {
		if at, refused := f.refusedUntil(reason); refused {
			p.lookAgain(at)
		}
	}
}

// record adds the step that writes status.updating and status.creating. It comes before the steps
// that delete or create the pods they name.
func (p *plan) record(f *facts, reason string) {
	set := f.set.DeepCopy()
	set.Status.Updating, set.Status.Creating = p.updating, p.creating
	p.Then(action.Chain{{Verb: action.PatchStatus, Object: set, From: f.set, Reason: reason}})
	p.recorded = true
	p.Last() // possible once for each version of the set
}
