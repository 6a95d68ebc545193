package facts

import (
	"slices"
	"time"

	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
)

// Reasons of actions, in addition to the loss reasons.
const (
	ReasonRevision   = "Revision"
	ReasonBudget     = "Budget"
	ReasonNames      = "Names"
	ReasonMissing    = "Missing"
	ReasonReplaced   = "Replacement"
	ReasonReturned   = "Returned"
	ReasonClaim      = "Claim"
	ReasonRetention  = "Retention"
	ReasonRetired    = "Retired"
	ReasonTrial      = "Trial"
	ReasonUpdate     = "Update"
	ReasonUpdated    = "Updated"
	ReasonResize     = "Resize"
	ReasonExpand     = "Expand"
	ReasonAdopted    = "Adopted"
	ReasonRelabel    = "Relabel"
	ReasonRevisionOK = "RevisionReady"
	ReasonHistory    = "History"
	ReasonForeign    = "Foreign"
)

// CreateReasons are the reasons of the writes that create new members.
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
