package replicatedstatefulset

import (
	"time"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
)

// A running member is not stopped to be recreated if the API server would reject its new pod,
// because the member would then stay missing. A dry run right before each stop and delete of an
// update tests this. A success is not remembered, because a policy or quota may change.

// refusedTrial is a dry run that the API server refused: the error message, and the time.
type refusedTrial struct {
	text string
	at   time.Time
}

// isRecent reports whether the refusal is recent enough that no new dry run is made.
func (t refusedTrial) isRecent(now time.Time) bool {
	return t.text != "" && now.Before(t.at.Add(trialPause))
}

// trialOf returns the dry run of the create of a member's pod from the current template, as if the
// current pod were gone.
func trialOf(f *facts, m *member) action.Chain {
	return action.Chain{{
		Verb: action.Try, Object: buildPod(f.stateful, m.ordinal), From: m.pod,
		Reason: reasonTrial, Detail: "dry run before the pod is recreated",
	}}
}

// tryLater requeues the set for when a member may be stopped again, if a dry run succeeds then.
func (p *plan) tryLater(f *facts) { p.LookAgain(f.trial.at.Add(trialPause).Sub(f.now)) }

// recreationRefused returns the refusal of the last dry run, while members are outdated.
func recreationRefused(f *facts) notice {
	outdated := f.among(func(m *member) bool { return !m.upToDate })
	if f.trial.text == "" || len(outdated) == 0 {
		return notice{}
	}
	return notice{
		Reason: v1alpha1.ReasonWriteRefused,
		Message: "no member is stopped for the update, because the API server would not create its new pod; " +
			"correct the template, or the policy or quota that refuses it: " + f.trial.text,
	}
}
