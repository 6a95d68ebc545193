package facts

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/record"
)

// Fatal states why no member may be started before the spec changes. It is "" if members may be
// started. OCF calls exit code 6 "not configured".
func (f *Facts) Fatal() string {
	for _, x := range f.Record.Failures {
		if x.Code == record.OCFNotConfigured && x.Generation == f.Set.Generation {
			return "the application reports a configuration error (exit code 6 of " + x.Command + " in " + x.Pod + "); edit the spec"
		}
	}
	return ""
}

// MayStartMembers reports whether any member may be started.
func (f *Facts) MayStartMembers() bool { return f.MayRunCommands() && !f.Deleting() && f.Fatal() == "" }

// WellStaffed reports whether nothing is missing: the wanted number of members is primary, and all
// others are secondary or parked, or idle where there is no secondary command.
func (f *Facts) WellStaffed() bool {
	return f.staffed(func(m *Member) record.State { return m.State })
}

// ShownWellStaffed is WellStaffed for the reported states.
func (f *Facts) ShownWellStaffed() bool {
	return f.staffed(func(m *Member) record.State { return m.Shown })
}

// staffed is WellStaffed for the states that a function returns.
func (f *Facts) staffed(stateOf func(*Member) record.State) bool {
	expected := ExpectedPrimaries(f)
	switch {
	case len(f.Members) != f.Wanted():
		return false
	case len(f.Record.Commands) > 0:
		return false
	case f.Record.Primaries() != expected:
		return false
	}
	primaries := 0
	for _, m := range f.Members {
		s := stateOf(m)
		switch {
		case s == record.Primary:
			primaries++
		case m.Parked:
			// A user works on it.
		case !f.IsAtRest(s):
			return false
		}
	}
	return primaries == expected
}

// WhatIsMissing states what keeps the set from being well staffed.
func (f *Facts) WhatIsMissing() string {
	var parts []string
	for _, m := range f.Members {
		if why := f.whyOutOfPlace(m); why != "" {
			parts = append(parts, fmt.Sprintf("%s (%s)", m.Name(), why))
		}
	}
	if n := f.Wanted() - len(f.Members); n > 0 {
		parts = append(parts, fmt.Sprintf("%d of %d pods", n, f.Wanted()))
	}
	if n := f.WantedPrimaries() - len(f.Primaries()); n > 0 {
		parts = append(parts, fmt.Sprintf("%d of %d primaries", n, f.WantedPrimaries()))
	}
	return cmp.Or(strings.Join(parts, ", "), "none, but some roles are not known yet")
}

// whyOutOfPlace states why a member is not in its expected state. It is "" if it is.
func (f *Facts) whyOutOfPlace(m *Member) string {
	switch {
	case m.Command != nil:
		return "command " + m.Command.Name + " is in progress"
	case m.Parked:
		return ""
	case m.ScaledDown:
		return "it is being removed"
	case m.Terminating():
		return "its pod is being deleted"
	case m.State == record.Primary, f.IsAtRest(m.State):
		return ""
	}
	return string(m.State)
}

// ExpectedPrimaries returns the expected number of primaries. If all members are primary, parked
// members reduce it.
func ExpectedPrimaries(f *Facts) int {
	if f.WantedPrimaries() == 0 {
		return 0
	}
	return max(1, min(f.WantedPrimaries(), f.Wanted()-len(ParkedMembers(f))))
}

// ParkedMembers returns the members that are parked.
func ParkedMembers(f *Facts) []*Member { return f.Among(func(m *Member) bool { return m.Parked }) }

// IsRecreating reports whether a member is being recreated already.
func (f *Facts) IsRecreating() bool {
	return len(f.Members) < f.Wanted() || slices.ContainsFunc(f.Members, isBeingRecreated)
}

// ChoosesFirst reports whether a primary is wanted and no member may be primary.
func ChoosesFirst(f *Facts) bool {
	return f.MayStartMembers() && f.WantedPrimaries() > 0 && !f.Record.HasGrants()
}

// WhoMayRun names the members that may be primary and are not confirmed as primary.
func (f *Facts) WhoMayRun() string {
	var names []string
	for _, g := range f.Record.Granted {
		if m := f.ByUID(g.UID); m == nil || !m.IsPrimary() {
			names = append(names, g.Pod)
		}
	}
	return "waiting for members that may still be primary to stop: " + strings.Join(names, ", ")
}
