package replicatedstatefulset

import (
	"fmt"
	"time"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
)

// The first primary is chosen when every running member has answered status: one that has not may
// be primary, or have newer data. A member on a Ready Node that never answers blocks that choice
// until its container has ended.

// awaitStatus waits for members to answer status before the first primary is chosen. The message
// begins with the text of the parameter what. It recreates a member that has been unresponsive for
// longer than spec.failover.recreateUnresponsiveAfter.
func awaitStatus(f *facts, p *plan, what string, missing []*member) {
	text := what + ": " + namesOf(missing) + whySilent(missing)
	b := blockingOf(f, missing)
	if b.member == nil {
		p.WaitFor(v1alpha1.ReasonSeeding, text)
		return
	}
	p.WaitFor(v1alpha1.ReasonSeeding, text+b.remedy())
	if b.timeout() == 0 || b.whyKept() != "" {
		return
	}
	heard := f.among(b.hasAnswered)
	p.askVersions(f, heard)
	if left := b.recreateAt().Sub(f.now); left > 0 {
		p.LookAgain(left)
		return
	}
	if f.trial.isRecent(f.now) {
		p.tryLater(f)
		return
	}
	if b.hasMajority(heard) {
		p.Do(append(trialOf(f, b.member), remove(b.member, reasonUnresponsive, fmt.Sprintf(
			"status has not responded since %s, and a primary is missing", b.askedAt.UTC().Format(time.RFC3339),
		))...))
	}
}

// isUnresponsive reports whether the member runs, and status has not answered recently.
func (m *member) isUnresponsive() bool { return m.reachable() && (m.notAnswering || m.unresponsive()) }

// blocking is an unresponsive member that blocks the choice of the first primary.
type blocking struct {
	*facts
	*member
}

// blockingOf returns the first unresponsive member of missing, preferably one that the operator may
// recreate. It returns an empty value if all are merely slow.
func blockingOf(f *facts, missing []*member) (found blocking) {
	for _, m := range missing {
		b := blocking{facts: f, member: m}
		switch {
		case !m.isUnresponsive():
		case b.whyKept() == "":
			return b
		case found.member == nil:
			found = b
		}
	}
	return found
}

// timeout returns spec.failover.recreateUnresponsiveAfter, or 0 if it is not set. Its min is
// returnsWithin, so that no member is recreated while members that ended with the primary may still
// return.
func (b blocking) timeout() time.Duration {
	if b.set.Spec.Failover == nil {
		return 0
	}
	return durationOr(b.set.Spec.Failover.RecreateUnresponsiveAfter, 0, returnsWithin, maxWindow)
}

// recreateAt returns the earliest time to recreate the member. Only time in which an operator could
// observe the cluster counts.
func (b blocking) recreateAt() time.Time {
	since := b.lossAt
	if b.askedAt.After(since) {
		since = b.askedAt
	}
	return b.watch.Deadline(since, b.timeout())
}

// whyKept states why the operator does not recreate the member, whatever the timeout. It is "" if
// it may.
func (b blocking) whyKept() string {
	switch {
	case len(b.set.Spec.Pod.VolumeClaimTemplates) == 0:
		return "it has no claim, and its data would be lost"
	case b.granted:
		return "it may be primary"
	case b.parked:
		return "it is in spec.maintenance"
	}
	return ""
}

// hasAnswered reports whether a member can be started or promoted, and has answered status since
// the loss of the last primary.
func (b blocking) hasAnswered(m *member) bool {
	if !m.couldBeFirst() || m.ordinal >= b.wanted() {
		return false
	}
	r, ok := m.answer(v1alpha1.CommandStatus)
	return ok && r.Began.After(b.lossAt)
}

// hasMajority reports whether the sequences of a majority of the wanted members are known. Then
// each entry that a majority acknowledged is in one of their copies.
func (b blocking) hasMajority(heard []*member) bool {
	known := copies(heard).those(func(m *member) bool { return m.version.known })
	return len(known) >= b.majority()
}

// remedy returns the end of a message, with the command that unblocks the choice.
func (b blocking) remedy() string {
	text := fmt.Sprintf(". No member becomes primary until %s responds. To continue without it, delete its pod: kubectl -n %s delete pod %s",
		b.name(), b.pod.Namespace, b.name())
	switch why := b.whyKept(); {
	case why != "":
		return text + "; the operator does not delete it, because " + why
	case b.timeout() == 0:
		return text + "; its claims are kept. The operator deletes the pod automatically if spec.failover.recreateUnresponsiveAfter is set"
	}
	if b.trial.text != "" && !b.now.Before(b.recreateAt()) {
		return text + "; its claims are kept; the operator does not delete it, because the API server would not create its new pod; correct the policy or quota that refuses it: " + b.trial.text
	}
	return text + fmt.Sprintf("; its claims are kept. The operator deletes the pod after %s (spec.failover.recreateUnresponsiveAfter), when the sequences of %d members are known",
		b.recreateAt().UTC().Format("15:04:05"), b.majority())
}
