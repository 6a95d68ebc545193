package replicatedstatefulset

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
)

// leaveCordoned hands the role of a primary that should leave its Node over to a member that should
// not. It is a switchover without a user's order, and begins only at rest.
func leaveCordoned(f *facts, p *plan) {
	for _, m := range f.members {
		p.LookAgain(m.evictionAt.Add(evictionFor).Sub(f.now))
	}
	m := primaryToDrain(f)
	if m == nil {
		return
	}
	p.LookAgain(triedUntil(m).Sub(f.now))
	if whyNotDrained(f, m).Reason != "" {
		return
	}
	handOver(f, p, relief{facts: f, old: m, away: true}, whyToLeave(m))
}

// handOver demotes a primary when another member can succeed it.
func handOver(f *facts, p *plan, r relief, why string) {
	p.askVersions(f, []*member{r.old})
	h := r.handover()
	p.ready(f, h)
	if h.successor != nil {
		p.demote(f, r.old, fmt.Sprintf("%s, and %s can take over", why, h.successor.name()))
	}
}

// whyToLeave states why a member should leave its Node.
func whyToLeave(m *member) string {
	if m.node.Cordoned {
		return fmt.Sprintf("Node %s is cordoned", m.pod.Spec.NodeName)
	}
	return "its eviction was requested"
}

// primariesToDrain returns the primaries that must hand their role over because they should leave their
// Node.
func primariesToDrain(f *facts) []*member {
	if f.deleting() || !handsOver(f.set) || f.target() == 0 {
		return nil
	}
	return f.among(func(m *member) bool {
		return m.shown == primary && m.toLeave && !m.terminating() && !m.leaves
	})
}

// primaryToDrain returns the first of leavers. It returns nil if there is none.
func primaryToDrain(f *facts) *member {
	if all := primariesToDrain(f); len(all) > 0 {
		return all[0]
	}
	return nil
}

// drainChecks are the conditions under which a primary cannot hand its role over now, the
// longest-lasting first. Each check returns its reason and message, or nothing.
var drainChecks = []func(*facts, *member) notice{
	notServed, isHandingOver, isMissing, demoteFailed, noSuccessorLeft, askedOtherwise, beingUpdated, triedLately,
}

// whyNotDrained returns the notice of the first of drainChecks that fails.
func whyNotDrained(f *facts, m *member) notice { return firstNotice(f, drainChecks, m) }

// firstNotice returns the notice of the first check that fails.
func firstNotice(f *facts, checks []func(*facts, *member) notice, m *member) notice {
	for _, check := range checks {
		if found := check(f, m); found.Reason != "" {
			return found
		}
	}
	return notice{}
}

func notServed(f *facts, _ *member) notice {
	switch {
	case f.set.Spec.Paused:
		return notice{Reason: v1alpha1.ReasonNoSuccessor, Message: "spec.paused is true, so no command is run; set it to false"}
	case !f.starts():
		return notice{Reason: v1alpha1.ReasonNoSuccessor, Message: "no command is run: " + cmp.Or(f.invalid, f.fatal())}
	}
	return notice{}
}

func isHandingOver(_ *facts, m *member) notice {
	if m.command == nil {
		return notice{}
	}
	return notice{Reason: v1alpha1.ReasonHandingOver, Message: "waiting for command " + m.command.Name}
}

func isMissing(f *facts, _ *member) notice {
	if f.wellStaffed() {
		return notice{}
	}
	return notice{Reason: v1alpha1.ReasonNoSuccessor, Message: "a role is handed over only while no member is missing; missing: " + f.whatIsMissing()}
}

func demoteFailed(f *facts, m *member) notice {
	if !m.failedToGo() {
		return notice{}
	}
	return notice{Reason: v1alpha1.ReasonNoSuccessor, Message: fmt.Sprintf(
		"%s %s; it will be retried %s after the failure. To stop the primary instead, request a switchover to another member twice: kubectl -n %s annotate rss %s %s=<pod>",
		m.failure.Command, howFailed(int(m.failure.Code)), failureWindow(&f.set.Spec), f.set.Namespace, f.set.Name, v1alpha1.AnnotationSwitchoverTo,
	)}
}

func noSuccessorLeft(f *facts, m *member) notice {
	var others []string
	for _, o := range f.members {
		if o.state == primary {
			continue
		}
		why := (relief{facts: f, old: m, away: true}).whyNoSuccessor(o)
		if why == "" {
			return notice{}
		}
		others = append(others, fmt.Sprintf("%s (%s)", o.name(), why))
	}
	return notice{Reason: v1alpha1.ReasonNoSuccessor, Message: "no member can take over: " + strings.Join(others, ", ") + "; uncordon one of their Nodes, repair one of them, or add a member"}
}

func askedOtherwise(f *facts, _ *member) notice {
	o := overrideOf(f, v1alpha1.OrderSwitchoverTo)
	if o.name == "" {
		return notice{}
	}
	return notice{Reason: v1alpha1.ReasonHandingOver, Message: fmt.Sprintf("%s requests a switchover to %s first", o.by(), o.name)}
}

func beingUpdated(f *facts, _ *member) notice {
	if len(parkedMembers(f)) > 0 {
		return notice{} // parking waits for them too
	}
	for _, m := range f.members {
		if !m.upToDate {
			return notice{Reason: v1alpha1.ReasonHandingOver, Message: "members are being recreated from the current template; see Progressing and Degraded"}
		}
	}
	if f.renewing() {
		return notice{Reason: v1alpha1.ReasonHandingOver, Message: "a member is being recreated"}
	}
	return notice{}
}

func triedLately(f *facts, m *member) notice {
	until := triedUntil(m)
	if !until.After(f.now) {
		return notice{}
	}
	return notice{Reason: v1alpha1.ReasonHandingOver, Message: fmt.Sprintf(
		"the last handover was undone because no other member had caught up; next attempt at %s. Command demote should not end before another member has all data of the primary",
		until.UTC().Format("15:04:05"),
	)}
}

// triedUntil returns the end of the pause after a primary was demoted or stopped, and became
// primary again because no other member had all of its data. Each attempt causes a moment without a
// primary.
func triedUntil(m *member) (until time.Time) {
	for _, command := range []string{v1alpha1.CommandDemote, v1alpha1.CommandStop} {
		if r, ok := m.result(command); ok && r.Ended.Add(handoverPause).After(until) {
			until = r.Ended.Add(handoverPause)
		}
	}
	return until
}

// evictionDeadline returns when spec.evictionTimeout expires. It returns zero if there is no timeout, or no
// eviction waits.
func evictionDeadline(f *facts) time.Time {
	timeout := durationOr(f.set.Spec.EvictionTimeout, 0, 0, maxWindow)
	since := meta.FindStatusCondition(f.set.Status.Conditions, v1alpha1.ConditionDraining)
	if timeout == 0 || since == nil || since.Status != metav1.ConditionTrue {
		return time.Time{}
	}
	return since.LastTransitionTime.Add(timeout)
}

// evictionTimeIsOver reports whether a primary may be evicted without a successor.
func evictionTimeIsOver(f *facts) bool {
	deadline := evictionDeadline(f)
	return !deadline.IsZero() && !f.now.Before(deadline)
}

// whyNoSuccessor states why a member cannot succeed a primary, regardless of its copy. It is "" if
// it can.
func (r relief) whyNoSuccessor(m *member) string {
	switch {
	case r.by != "" && m.name() != r.by:
		return "another member is requested"
	case m.hindrance != "":
		return m.hindrance
	case m.listed:
		return "it is in spec.maintenance"
	case !r.isAtRest(m.state):
		return string(m.state)
	case !r.away:
		return ""
	case m.toLeave:
		return whyToLeave(m)
	case m.degraded():
		return "it is degraded"
	case r.old.unserved() == "" && m.shown == secondary && !podstate.Ready(m.pod):
		return "its pod is not Ready"
	}
	return ""
}

// draining returns condition Draining, which reports the primary that should leave its Node.
func draining(p *plan) metav1.Condition {
	c := metav1.Condition{Type: v1alpha1.ConditionDraining, Status: metav1.ConditionTrue}
	d := p.on
	m := primaryToDrain(d)
	if m == nil {
		return drainingNoPrimary(d, c)
	}
	found := whyNotDrained(d, m)
	c.Reason = cmp.Or(found.Reason, v1alpha1.ReasonHandingOver)
	who := fmt.Sprintf("%s is primary and its eviction was requested", m.name())
	if m.node.Cordoned {
		who = fmt.Sprintf("%s is primary on Node %s, which is cordoned", m.name(), m.pod.Spec.NodeName)
	}
	why := cmp.Or(found.Message, p.Waiting.Message, "the handover is in progress")
	if evictionTimeIsOver(d) {
		c.Reason = v1alpha1.ReasonEvictionAllowed
		c.Message = fmt.Sprintf("%s; it may be evicted, because spec.evictionTimeout has expired: %s", who, why)
		return c
	}
	c.Message = fmt.Sprintf("%s; it is not evicted until another member has its role: %s", who, why)
	if found.Reason == v1alpha1.ReasonNoSuccessor {
		c.Message += fmt.Sprintf(". To evict it anyway, and lose data that no other member has: kubectl -n %s patch rss %s --type=merge -p '{\"spec\":{\"evictionPolicy\":\"Allow\"}}'",
			d.set.Namespace, d.set.Name)
	}
	return c
}

// drainingNoPrimary returns condition Draining if no primary should leave its Node. While a primary is
// missing, or the commands of a handover have not ended, no member may be evicted.
func drainingNoPrimary(f *facts, c metav1.Condition) metav1.Condition {
	toLeave := f.among(func(m *member) bool { return m.toLeave && !m.terminating() })
	if len(toLeave) == 0 || !usesBudgets(f) || !lacksPrimary(f) {
		// The time does not count for spec.evictionTimeout, so a primary that should leave later
		// has the full timeout.
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, v1alpha1.ReasonNotDraining, "no primary that can be handed over is on a cordoned Node"
		if len(toLeave) > 0 && budgetIsClosed(f) && len(f.record.commands) > 0 {
			c.Reason = v1alpha1.ReasonWaitingForCommand
			c.Message += fmt.Sprintf(". No member is evicted until all commands have ended; missing: %s. Members that should leave their Nodes: %s", f.whatIsMissing(), namesOf(toLeave))
		}
		return c
	}
	c.Reason = v1alpha1.ReasonPrimaryMissing
	c.Message = fmt.Sprintf("%d of %d primaries run, and no member is evicted until all of them run; see Progressing and Degraded. "+
		"Members that should leave their Nodes: %s. To evict one anyway: kubectl -n %s delete pod <pod>",
		countLabelled(f), f.target(), namesOf(toLeave), f.set.Namespace)
	if evictionTimeIsOver(f) {
		c.Reason = v1alpha1.ReasonEvictionAllowed
		c.Message = "members that should leave their Nodes may be evicted although a primary is missing, because spec.evictionTimeout has expired: " + namesOf(toLeave)
	}
	return c
}
