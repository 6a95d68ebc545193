package rules

import (
	"fmt"
	"slices"
	"strings"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/record"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/spec"
)

// Command leave runs in a member that a scale-down removes, so that the application forgets the
// member. It runs before the member is stopped, because the application may need the member to
// agree. A primary hands over its role before, unless all members are primaries. In a member that
// does not run, it runs in the idle container. The member is removed only after leave has succeeded.

// HowToSkipLeave ends a message with the remedy if leave cannot succeed.
const HowToSkipLeave = ". To remove the member although the application may not have forgotten it, remove spec.pod.commands[leave]"

// leave runs command leave in a member that is being removed, while a member is primary. The member
// gets no clients any more. A failed leave is retried with backoff.
func (p *Plan) leave(f *facts.Facts, m *facts.Member, why string) {
	if len(f.Primaries()) == 0 {
		p.WaitFor(v1alpha1.ReasonScaling, "leave runs in "+m.Name()+" when a member is primary")
		return
	}
	if x := m.Membership; x.Failures > 0 && x.LastFailure != nil {
		p.WaitFor(v1alpha1.ReasonScaling, fmt.Sprintf("leave of %s %s; it will be retried%s", m.Name(), record.HowFailed(int(x.ExitCode)), HowToSkipLeave))
		if wait := x.LastFailure.Add(spec.Backoff(int(x.Failures))).Sub(f.Now); wait > 0 {
			p.LookAgain(wait)
			return
		}
	}
	if p.waitsForLabel(f, m) {
		return
	}
	p.Send(f, m, v1alpha1.CommandLeave, v1alpha1.CommandLeave, fmt.Sprintf("%s: %s", m.Name(), why), label(m, v1alpha1.False, v1alpha1.RoleNone)...)
}

// whyCannotLeave states why leave cannot run in a member now. It is "" if it can.
func whyCannotLeave(m *facts.Member) string {
	switch {
	case m.Terminating():
		return "its pod is being deleted"
	case m.NodeUnreachable():
		return "its Node is unreachable"
	case !m.Reachable():
		return "its container does not run"
	case m.State == record.Unknown:
		return "status has not responded yet"
	}
	return ""
}

// leaverWithoutPod returns the member with the highest ordinal that must leave, and whose pod does not
// exist. It returns -1 if there is none.
func (s scaling) leaverWithoutPod() int {
	highest := -1
	if s.Wanted() == 0 || !s.Configured(v1alpha1.CommandLeave) {
		return highest
	}
	for _, m := range s.Record.Memberships {
		ordinal, ok := spec.OrdinalOf(s.Set, m.Pod)
		if ok && ordinal >= s.Wanted() && m.State != v1alpha1.MembershipLeft && s.Named(m.Pod) == nil {
			highest = max(highest, ordinal)
		}
	}
	return highest
}

// awaitPods waits for the pods of members that must leave. If the StatefulSet does not create them, it
// is scaled up. It reports whether there are any.
func (s scaling) awaitPods(p *Plan, have int) bool {
	ordinal := s.leaverWithoutPod()
	if ordinal < 0 {
		return false
	}
	p.WaitFor(v1alpha1.ReasonScaling, fmt.Sprintf("leave must run in %s, whose pod does not exist yet%s", spec.MemberName(s.Set, ordinal), HowToSkipLeave))
	if have <= ordinal {
		resize(s.Facts, p, have, ordinal+1)
	}
	return true
}

// waitsToLeave reports whether the scale-down waits only until members have left. They can leave
// when a member is primary, so the first primary is started before. The data of each is known.
func (s scaling) waitsToLeave() bool {
	if !s.mayShrink() || slices.ContainsFunc(s.leavers, func(m *facts.Member) bool { return m.State == record.Unknown }) {
		return false
	}
	return slices.ContainsFunc(s.leavers, func(m *facts.Member) bool { return m.MustLeave })
}

// leaveUnderWay names the reachable members in which leave may still run. Their copies are unknown, and
// may be the newest. It is "" if there are none.
func leaveUnderWay(f *facts.Facts) string {
	var names []string
	for _, m := range f.Members {
		if m.Command != nil && m.Command.Name == v1alpha1.CommandLeave && m.Reachable() && !m.Terminating() {
			names = append(names, m.Name())
		}
	}
	return strings.Join(names, ", ")
}

// restartRejoining stops members in which leave was sent, and which are not removed. The next start
// makes them join the application again. A primary is stopped only if another one stays.
func restartRejoining(f *facts.Facts, p *Plan) {
	if !f.MayStartMembers() {
		return
	}
	for _, m := range f.Members {
		switch {
		case !m.MustRejoin, m.Parked, !canTakeCommand(m):
		case m.IsSecondary(), m.IsPrimary() && len(f.Primaries()) > 1:
			p.stop(f, m, "the application may have forgotten it, and it is not removed")
			return
		}
	}
}
