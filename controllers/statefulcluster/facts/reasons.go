package facts

import (
	"slices"
	"time"

	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
)

// Reasons of actions. The deletion of the pod of a lost member has the reason of the loss.
const (
	ReasonRevision   = "Revision"      // create the revision of the spec, or make it the newest
	ReasonBudget     = "Budget"        // create or patch the PodDisruptionBudget
	ReasonNames      = "Names"         // record the names of new members in status.creating
	ReasonMissing    = "Missing"       // create the pod of a new member in an empty slot
	ReasonReplaced   = "Replacement"   // create the pod of a new member in the slot of a lost one
	ReasonReturned   = "Returned"      // recreate the pod of a returning member
	ReasonClaim      = "Claim"         // create a claim, or adopt a given one
	ReasonRetention  = "Retention"     // change the retained label or the owner reference of a claim
	ReasonRetired    = "Retired"       // delete the pod of a retired member
	ReasonTrial      = "Trial"         // create the new pod in a dry run before pods are deleted for an update
	ReasonUpdate     = "Update"        // record members in status.updating, and delete their pods
	ReasonUpdated    = "Updated"       // patch a pod in place, or complete that
	ReasonResize     = "Resize"        // resize a pod in place
	ReasonExpand     = "Expand"        // expand a claim
	ReasonAdopted    = "Adopted"       // restore the owner reference of a pod
	ReasonRelabel    = "Relabel"       // restore the operator's labels
	ReasonRevisionOK = "RevisionReady" // annotate a revision that works
	ReasonHistory    = "History"       // delete an old revision
	ReasonForeign    = "Foreign"       // remove the operator's labels from a pod that is not a member
)

// CreateReasons are the reasons of the writes that create new members, with the record of their names,
// without which no pod is created.
var CreateReasons = []string{ReasonNames, ReasonMissing, ReasonReplaced}

// RefusedNow reports whether a write for that reason was refused recently.
func (w *World) RefusedNow(reason string) bool {
	_, refused := w.RefusedUntil(reason)
	return refused
}

// RefusedUntil returns the time at which a recently refused write may be retried.
func (w *World) RefusedUntil(reason string) (at time.Time, refused bool) {
	r, known := w.Refused[reason]
	return r.Until, known && r.Until.After(w.Now)
}

// CreatesNew reports whether the action creates the pod of a new member.
func CreatesNew(o action.Outcome) bool {
	return o.Verb == action.Create && (o.Reason == ReasonMissing || o.Reason == ReasonReplaced)
}

// CreatesRefused reports whether the creation of a new member was refused recently, for any reason.
// The cause applies to all new members.
func (w *World) CreatesRefused() bool { return slices.ContainsFunc(CreateReasons, w.RefusedNow) }
