package facts

import (
	"time"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podexec"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/record"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/spec"
)

// IsPrimary reports whether the member runs as primary and its pod is not being deleted.
func (m *Member) IsPrimary() bool { return m.State == record.Primary && !m.Terminating() }

// IsSecondary reports the same for a secondary.
func (m *Member) IsSecondary() bool { return m.State == record.Secondary && !m.Terminating() }

// IsIdle reports the same for a member whose application has stopped.
func (m *Member) IsIdle() bool { return m.State == record.Idle && !m.Terminating() }

// Startable reports whether the member may be started or take a role.
func (m *Member) Startable() bool { return m.WhyNotStartable == "" }

// CouldBeFirst reports whether the member can report its sequence and could be the first primary.
func (m *Member) CouldBeFirst() bool { return m.IsIdle() || m.IsSecondary() }

// OutOfReach reports whether the member may be primary on an unreachable Node.
func (m *Member) OutOfReach() bool { return m.NodeUnreachable() && m.Granted }

// Degraded reports whether the member runs and reports itself as degraded.
func (m *Member) Degraded() bool {
	r, ok := m.Answer(v1alpha1.CommandStatus)
	if !ok || m.Down() || r.Outcome != podexec.Failed {
		return false
	}
	return r.Code == record.OCFDegraded || r.Code == record.OCFDegradedPrimary
}

// LimitsLoss reports whether spec.failover.maxLoss is set.
func (w *World) LimitsLoss() bool {
	p := w.Set.Spec.Failover
	return p != nil && p.MaxLoss != nil
}

// IsTooNew reports whether a failover may not lose the difference between a copy with sequence n and the one
// that is promoted.
func (w *World) IsTooNew(n, promoted uint64) bool {
	if n <= promoted {
		return false
	}
	return !w.LimitsLoss() || n-promoted > uint64(max(0, *w.Set.Spec.Failover.MaxLoss))
}

// MustBeCompared reports whether the pod of the former primary must stay until a secondary is promoted,
// because spec.failover.maxLoss limits the loss.
func (f *Facts) MustBeCompared(m *Member) bool {
	if !f.LimitsLoss() || f.Record.HasGrants() || m.Pod.UID != f.LossOf {
		return false
	}
	return f.Wanted() > 0 && f.HasFollowers()
}

// LacksData reports whether a running member may not have all data yet: status reports that it is degraded,
// and sequence has not printed a number above 0 recently.
func (m *Member) LacksData() bool {
	return m.Degraded() && (!m.Version.Known || m.Version.Sequence == 0)
}

// NeverAnswers reports whether the member runs and is reachable, but status never returns a result,
// for example because the image lacks the command.
func (m *Member) NeverAnswers() bool {
	r, asked := m.Result(v1alpha1.CommandStatus)
	return m.State == record.Unknown && m.Command == nil && asked && r.EndUnseen() && m.Unresponsive()
}

// NeedsStop reports whether a start failed in the running container and no stop has succeeded
// since.
func (m *Member) NeedsStop() bool {
	return m.Failure != nil && record.NeedsStopIn(m.Failure, m.Identity())
}

// FailedHere reports whether that command was the last to fail, in the running container.
func (m *Member) FailedHere(command string) bool {
	return m.Failure != nil && m.Failure.Command == command && m.Failure.ContainerID == m.Running()
}

// FailedToStepDown reports whether the last failed command was a stop or a demote.
func (m *Member) FailedToStepDown() bool {
	return m.Failure != nil && !spec.Starts(m.Failure.Command)
}

// RefusesToStepDown reports whether a stop or demote was the last command to fail in the running
// container, and the member has not reached the wanted state since.
func (m *Member) RefusesToStepDown() bool {
	if m.Running() == "" || !m.FailedToStepDown() || m.Failure.ContainerID != m.Running() {
		return false
	}
	switch m.State {
	case record.Idle:
		return false
	case record.Secondary:
		return m.Failure.Command == v1alpha1.CommandStop
	}
	return true
}

// LeavesAsPrimary reports whether the member must leave before it is stopped, although it is primary.
func (f *Facts) LeavesAsPrimary(m *Member) bool {
	return m.MustLeave && !f.Configured(v1alpha1.CommandSecondary)
}

// FailsToLeave reports whether the member must leave the application, and leave has failed
// failureThreshold times.
func (f *Facts) FailsToLeave(m *Member) bool {
	return m.MustLeave && m.Membership.Failures >= *f.Set.Spec.FailureThreshold
}

// FailsToStart reports whether the member does not run, and its start has failed failureThreshold times or
// more. The operator retries.
func (f *Facts) FailsToStart(m *Member) bool {
	x := m.Failure
	return x != nil && !m.Parked && m.Shown == record.Idle && spec.Starts(x.Command) && x.Count >= *f.Set.Spec.FailureThreshold
}

// RefusesUnparked reports the same for a member that is not parked.
func (m *Member) RefusesUnparked() bool { return m.RefusesToStepDown() && !m.Parked }

// isBeingRecreated reports whether a member is terminating, or has the current template and is
// pending or unknown.
func isBeingRecreated(m *Member) bool {
	switch {
	case m.Terminating():
		return true
	case m.Parked:
		return false
	}
	return m.UpToDate && (m.State == record.Pending || m.State == record.Unknown)
}

// Unserved states why a running member serves no clients. It is "" if it does.
//
// Whether a member serves clients does not determine its state: a frozen primary is still primary,
// and no other member may replace it while it runs.
func (m *Member) Unserved() string {
	switch {
	case !podstate.Ready(m.Pod):
		return "its pod is not Ready"
	case m.NotAnswering:
		return "status has not responded since " + m.AskedAt.UTC().Format(time.RFC3339)
	}
	return ""
}

// IsShownPrimary reports whether the member is reported as primary and its Node is reachable.
func (m *Member) IsShownPrimary() bool {
	return m.Shown == record.Primary && !m.Terminating() && !m.NodeUnreachable()
}

// IsUnresponsive reports whether the member runs, and status has not answered for AnswersWithin or
// UnresponsiveAfter times.
func (m *Member) IsUnresponsive() bool { return m.Reachable() && (m.NotAnswering || m.Unresponsive()) }
