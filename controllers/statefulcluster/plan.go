package statefulcluster

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/engine"
)

// plan is what decide wants done, and what it knows about why.
type plan struct {
	engine.Plan
	now time.Time

	// updating is what status.updating must say after the steps.
	updating []v1alpha1.UpdatingMember
	// creating is what status.creating must say after the steps.
	creating []string
	// recorded is true when the steps write status.updating and status.creating,
	// which can be done once on one version of the set.
	recorded bool
	// held are lost members that wait for others to be replaced.
	held []string
	// failing are members that should be replaced and are not, because their template
	// is to blame.
	failing []string
	// look asks for a live world even if the cache shows nothing to do.
	look bool
	// givenUp are the old pods of members that the steps take out of
	// status.updating because the set shrinks.
	givenUp []types.UID
	// dropped are the names that the steps take out of status.updating because claims of the
	// member are gone.
	dropped []string
	// losses are the members that replaceLost replaces.
	losses []loss
	// births are the new members.
	births births
}

// Reasons of actions beside the loss reasons.
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
)

// rules in order of importance.
var rules = []engine.Rule[*facts, plan]{
	{Name: "record the revision", Act: recordRevision, Mode: engine.Leading},
	{Name: "adopt members without an owner", Act: adoptOrphans},
	{Name: "put our labels back", Act: relabel},
	{Name: "keep evicted members", Act: keepEvicted},
	{Name: "give members their claims", Act: createClaims},
	{Name: "retire surplus members", Act: scaleDown},
	// After scaleDown, which gives up members that are not back yet.
	{Name: "bring updated members back", Act: bringBack, Mode: engine.Leading},
	{Name: "replace lost members", Act: replaceLost},
	{Name: "create missing members", Act: createMissing},
	// What disruptions the spec allows; the budget is the set's alone.
	{Name: "keep the disruption budget", Act: keepBudget, Mode: engine.Timeless},
	{Name: "set claims aside", Act: setAside},
	// That a member was Ready once stays true.
	{Name: "mark the revision as good", Act: markReady, Mode: engine.Beside | engine.Timeless},
	{Name: "finish in-place updates", Act: finishInPlace},
	{Name: "retire members that leave their nodes", Act: retireLeaving},
	{Name: "update members", Act: rollOut},
	{Name: "restart ended members", Act: restartEnded},
	{Name: "grow claims", Act: growClaims},
	{Name: "trim the history", Act: trimHistory},
}

// decide says what to do about facts. It is pure: the same facts give the
// same plan.
func decide(f *facts) plan {
	p := plan{now: f.now, updating: f.set.Status.Updating}
	p.Undone = f.undone
	if !f.served() {
		return p // nothing is touched: what runs, runs on
	}
	p.updating = slices.Clone(f.returning)
	p.creating = stillWanted(f)
	p.failing = slices.Clone(f.failing)
	p.births = births{ids: f.fresh, replaced: map[string]bool{}}
	p.lookAgain(f.changes...)
	p.LookAgain(f.causes.Again)
	// An old world may show alive what is going to come back.
	p.look = !f.live && len(p.updating) < len(f.set.Status.Updating)
	engine.Decide(rules, f, &p, &p.Plan)
	return p
}

// wantsLive reports whether the plan must be made again on the live world before
// anything is done.
func (p *plan) wantsLive() bool { return p.look || p.Timed }

// lookAgain makes the plan wake the key at these times. Times that are over change
// nothing.
func (p *plan) lookAgain(times ...time.Time) {
	for _, at := range times {
		p.LookAgain(at.Sub(p.now))
	}
}

// tryLater makes the plan wake the key when a refused write may be tried again.
func (p *plan) tryLater(f *facts, reasons ...string) {
	for _, reason := range reasons {
		if at, refused := f.refusedUntil(reason); refused {
			p.lookAgain(at)
		}
	}
}

// record adds the step that writes status.updating and status.creating, before
// what they name is deleted or created.
func (p *plan) record(f *facts, reason string) {
	set := f.set.DeepCopy()
	set.Status.Updating, set.Status.Creating = p.updating, p.creating
	p.Then(action.Chain{{Verb: action.PatchStatus, Object: set, From: f.set, Reason: reason}})
	p.recorded = true
	p.Last() // it can be done once on one version of the set
}
