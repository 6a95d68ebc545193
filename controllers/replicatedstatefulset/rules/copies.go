package rules

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podexec"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/spec"
)

// copies are members sorted by version, the newest first. Of equals, the member with fewer failures
// comes first, then the lower ordinal. Unknown versions come last.
type copies []*facts.Member

func copiesOf(members []*facts.Member) copies {
	all := slices.Clone(members)
	slices.SortStableFunc(all, func(a, b *facts.Member) int {
		return cmp.Or(
			cmp.Compare(boolToInt(b.Version.Known), boolToInt(a.Version.Known)),
			newerFirst(a, b),
			cmp.Compare(failedOften(a), failedOften(b)),
			a.Ordinal-b.Ordinal)
	})
	return all
}

func newerFirst(a, b *facts.Member) int {
	return cmp.Compare(b.Version.Sequence, a.Version.Sequence)
}

// failedOften returns the number of recent failed starts or stops of the member.
func failedOften(m *facts.Member) int32 {
	if m.Failure == nil {
		return 0
	}
	return m.Failure.Count
}

func boolToInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// answered reports whether all of them have answered.
func (c copies) answered() bool {
	return !slices.ContainsFunc(c, func(m *facts.Member) bool { return !m.Version.Answered })
}

// unknownNames names the members that answered without a valid sequence.
func (c copies) unknownNames() string {
	var names []string
	for _, m := range c {
		if m.Version.Answered && !m.Version.Known {
			names = append(names, fmt.Sprintf("%s (%s)", m.Name(), whyUnknown(m)))
		}
	}
	return strings.Join(names, ", ")
}

// whyWaiting names the members whose version is missing: sequenceUnknown, which names those that
// answered without a valid sequence, or those that have not answered.
func (c copies) whyWaiting(sequenceUnknown string) string {
	if sequenceUnknown != "" {
		return "data version unknown for " + sequenceUnknown
	}
	unanswered := c.matching(func(m *facts.Member) bool { return !m.Version.Answered })
	slices.SortFunc(unanswered, func(a, b *facts.Member) int { return a.Ordinal - b.Ordinal })
	return "data version unknown for " + facts.NamesOf(unanswered) + ": waiting for a response from sequence"
}

// matching returns the copies that match.
func (c copies) matching(is func(*facts.Member) bool) copies {
	return slices.DeleteFunc(slices.Clone(c), func(m *facts.Member) bool { return !is(m) })
}

// newest returns the copies that are as new as the first one.
func (c copies) newest() copies {
	return c.matching(func(m *facts.Member) bool { return m.Version.Sequence == c[0].Version.Sequence })
}

// startable returns the first member that may be started or take a role. It returns nil if there is
// none.
func (c copies) startable() *facts.Member {
	if i := slices.IndexFunc(c, (*facts.Member).Startable); i >= 0 {
		return c[i]
	}
	return nil
}

// pick returns the member of that name. If there is none, it returns a well placed one of the
// newest, or else the first.
func (c copies) pick(name string) *facts.Member {
	if i := slices.IndexFunc(c, func(m *facts.Member) bool { return m.Name() == name }); i >= 0 {
		return c[i]
	}
	newest := c.newest()
	if i := slices.IndexFunc(newest, wellPlaced); i >= 0 {
		return newest[i]
	}
	return c[0]
}

// oldest returns the last member, and of equals one in spec.maintenance.
func (c copies) oldest() *facts.Member {
	last := c[len(c)-1]
	for _, m := range slices.Backward(c) {
		if m.Listed && m.Version.Known == last.Version.Known && m.Version.Sequence == last.Version.Sequence {
			return m
		}
	}
	return last
}

// whyUnknown states why the last sequence of a member gave no number.
func whyUnknown(m *facts.Member) string {
	r, _ := m.Result(v1alpha1.CommandSequence)
	switch r.Outcome {
	case podexec.Unknown:
		return "sequence: " + cmp.Or(r.Why, "its outcome is unknown")
	case podexec.Failed:
		return fmt.Sprintf("sequence failed with exit code %d", r.Code)
	}
	// The output is not included, because a user who may read the status may not be allowed to read
	// the pod's data.
	const wrong = "sequence must print one unsigned integer, but printed something else"
	switch n := len(strings.TrimSpace(r.Stdout)); {
	case r.Cut:
		return fmt.Sprintf("%s (more than %d bytes)", wrong, spec.MaxSequence)
	case n == 0:
		return "sequence must print one unsigned integer, but printed nothing"
	default:
		return fmt.Sprintf("%s (%d bytes)", wrong, n)
	}
}

// newerOnRecord states which member had a newer copy than that sequence when it was last seen. It
// is "" if none had.
func newerOnRecord(f *facts.Facts, sequence uint64) string {
	newest, pod := f.Record.Newest()
	if newest <= sequence {
		return ""
	}
	text := fmt.Sprintf(
		"the newest available copy has sequence %d, but %s had %d",
		sequence, pod, newest,
	)
	if m := f.Named(pod); m != nil && m.Parked {
		text += " and is in spec.maintenance"
	}
	return text
}

// wellPlaced reports whether a member may keep a role that it gets.
func wellPlaced(m *facts.Member) bool { return !m.ShouldLeaveNode && !m.Listed }
