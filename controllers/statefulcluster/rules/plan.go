package rules

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/engine"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/facts"
)

// Plan is the result of Decide: the steps to carry out, and the reasons for the status.
type Plan struct {
	engine.Plan
	now time.Time

	// Updating is the value of status.updating after the steps.
	Updating []v1alpha1.UpdatingMember
	// Creating is the value of status.creating after the steps.
	Creating []string
	// Recorded is true if the steps write status.updating and status.creating. A plan can do that
	// only once, because the write is refused if the set has changed since it was read.
	Recorded bool
	// Held are lost members that wait, for maxConcurrent or because new members are refused.
	Held []string
	// Failing are members that passed a deadline and are not replaced, because their template may
	// be the cause.
	Failing []string
	// Look requests a live pass even if the cache shows nothing to do.
	Look bool
	// GivenUp are the UIDs of the old pods of members that the steps remove from status.updating
	// because the set is scaled down.
	GivenUp []types.UID
	// Dropped are the names that the steps remove from status.updating because claims of the member
	// are gone.
	Dropped []string
	// Losses are the lost members whose pods the steps delete, or for which they create new members.
	Losses []facts.Loss
	// newMembers tracks the new members that the steps create.
	newMembers newMembers
}

// WantsLive reports whether to decide again on a live read before the plan is carried out.
func (p *Plan) WantsLive() bool { return p.Look || p.Timed }

// RequeueAt requeues the key at these times. Times in the past are ignored.
func (p *Plan) RequeueAt(times ...time.Time) {
	for _, at := range times {
		p.LookAgain(at.Sub(p.now))
	}
}

// tryLater requeues the key when a write refused for one of these reasons may be retried.
func (p *Plan) tryLater(f *facts.Facts, reasons ...string) {
	for _, reason := range reasons {
		if at, refused := f.RefusedUntil(reason); refused {
			p.RequeueAt(at)
		}
	}
}

// record adds the step that writes status.updating and status.creating. It comes before the steps
// that delete or create the pods they name.
func (p *Plan) record(f *facts.Facts, reason string) {
	set := f.Set.DeepCopy()
	set.Status.Updating, set.Status.Creating = p.Updating, p.Creating
	p.Then(action.Chain{{Verb: action.PatchStatus, Object: set, From: f.Set, Reason: reason}})
	p.Recorded = true
	p.Last() // a later rule cannot write the record again
}
