package replicatedstatefulset

import (
	"time"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
)

// A member that runs is not taken down to be recreated if the API server would refuse its new
// pod: it would be missing for good. The API server is asked by a dry run
// right before each stop and delete of an update. A success is not remembered, since a policy
// or quota may have changed since.

// refusedTrial is a dry run that the API server refused, in its words, and when.
type refusedTrial struct {
	text string
	at   time.Time
}

// isRecent reports whether the same would be refused again.
func (t refusedTrial) isRecent(now time.Time) bool {
	return t.text != "" && now.Before(t.at.Add(trialPause))
}

// trialOf asks whether the API server would create the pod of a member from the present
// template, once the pod that it has now is gone.
func trialOf(f *facts, m *member) action.Chain {
	return action.Chain{{
		Verb: action.Try, Object: buildPod(f.stateful, m.ordinal), From: m.pod,
		Reason: reasonTrial, Detail: "before it is taken down to be recreated",
	}}
}

// tryLater wakes the key when a member may be taken down again, if a dry run succeeds then.
func (p *plan) tryLater(f *facts) { p.LookAgain(f.trial.at.Add(trialPause).Sub(f.now)) }

// recreationRefused returns the refusal of the last dry run, while members are out of date.
func recreationRefused(f *facts) notice {
	outdated := f.among(func(m *member) bool { return !m.upToDate })
	if f.trial.text == "" || len(outdated) == 0 {
		return notice{}
	}
	return notice{
		Reason: v1alpha1.ReasonWriteRefused,
		Message: "no member is taken down for the update, because the API server would not create its new pod; " +
			"correct the template, or what refuses it: " + f.trial.text,
	}
}
