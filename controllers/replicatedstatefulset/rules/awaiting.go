package rules

import (
	"fmt"
	"time"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/facts"
)

// awaitStatus waits for the members of missing to answer status before the first primary is chosen.
// The message begins with the text in what. It recreates a member that has been unresponsive for
// longer than spec.failover.recreateUnresponsiveAfter.
func awaitStatus(f *facts.Facts, p *Plan, what string, missing []*facts.Member) {
	text := what + ": " + facts.NamesOf(missing) + facts.WhyNoAnswer(missing)
	b := blockingOf(f, missing)
	if b.Member == nil {
		p.WaitFor(v1alpha1.ReasonSeeding, text)
		return
	}
	p.WaitFor(v1alpha1.ReasonSeeding, text+b.Remedy())
	if b.Timeout() == 0 || b.WhyKept() != "" {
		return
	}
	answered := f.Among(func(m *facts.Member) bool { return hasAnswered(b, m) })
	p.askVersions(f, answered)
	if left := b.RecreateAt().Sub(f.Now); left > 0 {
		p.LookAgain(left)
		return
	}
	if f.RefusedDryRun.IsRecent(f.Now) {
		p.retryDryRun(f)
		return
	}
	if hasMajority(b, answered) {
		p.Do(append(dryRunOf(f, b.Member), deletePod(b.Member, facts.ReasonUnresponsive, fmt.Sprintf(
			"status has not responded since %s, and a primary is missing", b.AskedAt.UTC().Format(time.RFC3339),
		))...))
	}
}

// blockingOf returns the first unresponsive member of missing, preferably one that the operator may
// recreate. It returns an empty value if all are merely slow.
func blockingOf(f *facts.Facts, missing []*facts.Member) (found facts.Blocking) {
	for _, m := range missing {
		b := facts.Blocking{Facts: f, Member: m}
		switch {
		case !m.IsUnresponsive():
		case b.WhyKept() == "":
			return b
		case found.Member == nil:
			found = b
		}
	}
	return found
}

// hasAnswered reports whether a member can be started or promoted, and has answered status since
// the loss of the last primary.
func hasAnswered(b facts.Blocking, m *facts.Member) bool {
	if !m.CouldBeFirst() || m.Ordinal >= b.Wanted() {
		return false
	}
	r, ok := m.Answer(v1alpha1.CommandStatus)
	return ok && r.Began.After(b.LossAt)
}

// hasMajority reports whether the sequences of a majority of the wanted members are known. Then
// each entry that a majority acknowledged is in one of their copies.
func hasMajority(b facts.Blocking, answered []*facts.Member) bool {
	known := copies(answered).matching(func(m *facts.Member) bool { return m.Version.Known })
	return len(known) >= b.Majority()
}

// neverAsked reports whether no status command was sent to this container. A member that does not
// answer does not block a user's order.
func neverAsked(m *facts.Member) bool {
	_, asked := m.Result(v1alpha1.CommandStatus)
	return !asked
}
