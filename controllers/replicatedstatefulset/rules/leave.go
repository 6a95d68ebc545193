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
// agree. In a primary that must hand over its role, and in a member that does not run, it runs in
// the idle container. The member is removed only after leave has succeeded.

// leave runs command leave in a member that is being removed, while a member is primary. A failed
// leave is retried with backoff.
func (p *Plan) leave(f *facts.Facts, m *facts.Member, why string) {
	switch {
	case len(f.Primaries()) == 0:
		p.WaitFor(v1alpha1.ReasonScaling, "leave runs in "+m.Name()+" when a member is primary")
	case p.backsOff(f, m, v1alpha1.CommandLeave, HowToSkipLeave):
	default:
		p.Send(f, m, v1alpha1.CommandLeave, v1alpha1.CommandLeave, fmt.Sprintf("%s: %s", m.Name(), why))
	}
}

// HowToSkipLeave ends a message with the remedy if leave cannot succeed.
const HowToSkipLeave = ". To remove the member although the application may not have forgotten it, remove spec.pod.commands[leave]"

// whyCannotLeave states why leave cannot run in a member now. It is "" if it can.
func whyCannotLeave(m *facts.Member) string {
	switch {
	case m.Terminating():
		return "its pod is being deleted and will be recreated"
	case m.NodeUnreachable():
		return "its Node is unreachable"
	case !m.Reachable():
		return "its container does not run"
	case m.State == record.Unknown:
		return "status does not respond"
	}
	return ""
}

// leftWithoutPod returns the members that must leave before a scale-down, and whose pods do not
// exist. The StatefulSet controller recreates them.
func (s scaling) leftWithoutPod() []string {
	var names []string
	for _, m := range s.Record.Memberships {
		ordinal, ok := spec.OrdinalOf(s.Set, m.Pod)
		if !ok || ordinal < s.Wanted() || s.Wanted() == 0 || m.State == v1alpha1.MembershipLeft {
			continue
		}
		if s.Named(m.Pod) == nil {
			names = append(names, m.Pod)
		}
	}
	return names
}

// waitForPods waits for the pods of members that must leave. It reports whether there are any.
func (s scaling) waitForPods(p *Plan) bool {
	missing := s.leftWithoutPod()
	if len(missing) == 0 {
		return false
	}
	p.WaitFor(v1alpha1.ReasonScaling, fmt.Sprintf("leave must run in %s, whose pods do not exist yet%s", strings.Join(missing, ", "), HowToSkipLeave))
	return true
}

// waitsToLeave reports whether the scale-down waits only until members have left. They can leave
// when a member is primary, so the first primary is started before.
func (s scaling) waitsToLeave() bool {
	return s.mayShrink() && slices.ContainsFunc(s.leavers, func(m *facts.Member) bool { return m.MustLeave })
}

// restartRejoining stops members that have left, or may have, and are wanted again. The next start
// makes them join the application again. A primary is stopped only if another one stays.
func restartRejoining(f *facts.Facts, p *Plan) {
	if !f.MayRunCommands() {
		return
	}
	for _, m := range f.Members {
		switch {
		case !m.MustRejoin, m.Parked, !canTakeCommand(m):
		case m.IsSecondary(), m.IsPrimary() && len(f.Primaries()) > 1:
			p.stop(f, m, "the application may have forgotten it, and it is wanted again")
			return
		}
	}
}
