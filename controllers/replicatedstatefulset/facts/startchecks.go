package facts

import (
	"fmt"

	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/record"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/spec"
)

// startCheck states why a member may not be started or take a role. It returns "" if the check
// passes.
type startCheck func(*Facts, *Member) string

// startChecks are all checks that a member must pass. The first failure is the reported reason.
var startChecks = []startCheck{
	notReachable, beingDeleted, beingScaledDown, inMaintenance, commandRunning, stopNeeded, hasLeft, stateUnfit, notForThisPod, unprotected, backingOff,
}

// whyNotStartable returns the reason of the first failed check. It is "" if the member may be
// started or take a role.
func whyNotStartable(f *Facts, m *Member) string {
	for _, check := range startChecks {
		if why := check(f, m); why != "" {
			return why
		}
	}
	return ""
}

func notReachable(_ *Facts, m *Member) string {
	switch {
	case m.NodeUnreachable():
		return "its Node is unreachable"
	case !m.Owned:
		return "its pod belongs to another object"
	case !m.Reachable():
		return "its container is not running"
	}
	return ""
}

func beingDeleted(_ *Facts, m *Member) string {
	if m.Terminating() {
		return "its pod is being deleted"
	}
	return ""
}

func beingScaledDown(_ *Facts, m *Member) string {
	if m.ScaledDown {
		return "it is being scaled down"
	}
	return ""
}

// inMaintenance is the start check that a member is not parked.
func inMaintenance(_ *Facts, m *Member) string {
	if m.Parked {
		return "it is in spec.maintenance"
	}
	return ""
}

func commandRunning(_ *Facts, m *Member) string {
	if m.Command != nil {
		return "waiting for command " + m.Command.Name
	}
	return ""
}

func stopNeeded(_ *Facts, m *Member) string {
	if m.NeedsStop() {
		return m.Failure.Command + " failed, and the member must be stopped first"
	}
	return ""
}

// hasLeft checks that a running member is part of the application. An idle member joins it again by
// its start.
func hasLeft(_ *Facts, m *Member) string {
	if m.MustRejoin && m.State == record.Secondary {
		return "the application may have forgotten it, and the member must be stopped first"
	}
	return ""
}

func stateUnfit(_ *Facts, m *Member) string {
	switch m.State {
	case record.Idle, record.Secondary:
		return ""
	case record.Primary:
		return "it is primary"
	case record.Failed:
		return "status reports that it failed"
	}
	return "status has not responded"
}

func notForThisPod(f *Facts, m *Member) string {
	if m.CannotRunHere {
		return fmt.Sprintf(
			"%s reported with exit code %d that the member cannot run in this pod",
			m.Failure.Command, m.Failure.Code,
		)
	}
	return ""
}

// unprotected checks for the finalizer: a force-deleted pod must stay visible until it has stopped.
func unprotected(f *Facts, m *Member) string {
	if spec.NeedsFinalizer(f.Set) && !m.Protected() {
		return "its pod has no finalizer yet"
	}
	return ""
}

func backingOff(f *Facts, m *Member) string {
	if !f.Now.Before(m.RetryAt) {
		return ""
	}
	return fmt.Sprintf("%s %s; backing off until %s", m.Failure.Command, record.HowFailed(int(m.Failure.Code)), m.RetryAt.UTC().Format("15:04:05"))
}
