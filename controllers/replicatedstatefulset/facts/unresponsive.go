package facts

import (
	"fmt"
	"time"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podexec"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/spec"
)

// The first primary is chosen when every running member has answered status: one that has not may
// be primary, or have newer data. A member on a Ready Node that never answers blocks that choice
// until its container has ended.

// Blocking is an unresponsive member that blocks the choice of the first primary.
type Blocking struct {
	*Facts
	*Member
}

// Timeout returns spec.failover.recreateUnresponsiveAfter, or 0 if it is not set. Its min is
// ReturnsWithin, so that no member is recreated while members that ended with the primary may still
// return.
func (b Blocking) Timeout() time.Duration {
	if b.Set.Spec.Failover == nil {
		return 0
	}
	return spec.DurationOr(b.Set.Spec.Failover.RecreateUnresponsiveAfter, 0, spec.ReturnsWithin, spec.MaxWindow)
}

// RecreateAt returns the earliest time to recreate the member. Only time in which an operator could
// observe the cluster counts.
func (b Blocking) RecreateAt() time.Time {
	since := b.LossAt
	if b.AskedAt.After(since) {
		since = b.AskedAt
	}
	return b.Watch.Deadline(since, b.Timeout())
}

// WhyKept states why the operator does not recreate the member, whatever the timeout. It is "" if
// it may.
func (b Blocking) WhyKept() string {
	switch {
	case len(b.Set.Spec.Pod.VolumeClaimTemplates) == 0:
		return "it has no claim, and its data would be lost"
	case b.Granted:
		return "it may be primary"
	case b.Parked:
		return "it is in spec.maintenance"
	}
	return ""
}

// Remedy returns the end of a message, with the command that unblocks the choice.
func (b Blocking) Remedy() string {
	text := fmt.Sprintf(". No member becomes primary until %s responds. To continue without it, delete its pod: kubectl -n %s delete pod %s",
		b.Name(), b.Pod.Namespace, b.Name())
	switch why := b.WhyKept(); {
	case why != "":
		return text + "; the operator does not delete it, because " + why
	case b.Timeout() == 0:
		return text + "; its claims are kept. The operator deletes the pod automatically if spec.failover.recreateUnresponsiveAfter is set"
	}
	if b.RefusedDryRun.Text != "" && !b.Now.Before(b.RecreateAt()) {
		return text + "; its claims are kept; the operator does not delete it, because the API server would not create its new pod; correct the policy or quota that refuses it: " + b.RefusedDryRun.Text
	}
	return text + fmt.Sprintf("; its claims are kept. The operator deletes the pod after %s (spec.failover.recreateUnresponsiveAfter), when the sequences of %d members are known",
		b.RecreateAt().UTC().Format("15:04:05"), b.Majority())
}

// whyUnresponsive states for which members status does not answer, why, and what helps.
func (f *Facts) whyUnresponsive(members []*Member) string {
	first := members[0]
	text := "status does not respond: " + NamesOf(members) + WhyNoAnswer(members)
	if first.Runs(v1alpha1.CommandStatus) && !first.AskedAt.IsZero() {
		text = fmt.Sprintf(
			"status does not respond: %s (pending since %s)",
			NamesOf(members), first.AskedAt.UTC().Format(time.RFC3339),
		)
	}
	text += ". To check its status: " + f.StatusCommandLine(first)
	if ChoosesFirst(f) && !first.Granted {
		text += Blocking{Facts: f, Member: first}.Remedy()
	}
	if first.Granted {
		text += fmt.Sprintf(
			". No other member can replace %s while it runs; to delete its pod: kubectl -n %s delete pod %s",
			first.Name(), first.Pod.Namespace, first.Name(),
		)
	}
	return text
}

// WhyNoAnswer returns why the first of the unanswered status commands failed.
func WhyNoAnswer(members []*Member) string {
	for _, m := range members {
		if r, ok := m.Result(v1alpha1.CommandStatus); ok && r.Outcome == podexec.Unknown && r.Why != "" {
			return fmt.Sprintf(" (%s: %s)", m.Name(), r.Why)
		}
	}
	return ""
}
