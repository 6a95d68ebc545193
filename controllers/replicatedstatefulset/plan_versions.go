package replicatedstatefulset

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podexec"
)

// version describes how new a member's copy is, as reported by its sequence command.
type version struct {
	sequence uint64
	// answered is true after a response, or after unresponsiveAfter attempts without one. known is
	// true if the response was a number.
	answered, known bool
	// current is false if sequence must be sent (again).
	current bool
}

// versionOf returns the version of a member. It is current if it was read after the loss of the
// last primary and, if the member runs, within freshFor.
func (w *world) versionOf(m *member) version {
	r, ok := m.answer(v1alpha1.CommandSequence)
	if ok && r.Began.After(w.lossAt) && (m.state == idle || w.now.Sub(r.Ended) < freshFor) {
		n, known := sequenceOf(r)
		if !known {
			n = 0
		}
		return version{sequence: n, answered: true, known: known, current: known}
	}
	last, asked := m.result(v1alpha1.CommandSequence)
	inVain := asked && last.Outcome == podexec.Unknown && m.tries[v1alpha1.CommandSequence] >= unresponsiveAfter
	return version{answered: inVain}
}

// askVersions sends sequence to the members whose version is not current.
func (p *plan) askVersions(f *facts, members []*member) {
	for _, m := range members {
		if !m.version.current {
			p.askVersion(f, m)
		}
	}
}

func (p *plan) askVersion(f *facts, m *member) {
	wait := f.due(m, v1alpha1.CommandSequence)
	if r, ok := m.result(v1alpha1.CommandSequence); ok {
		if _, known := sequenceOf(r); known {
			wait = 0 // the number is outdated but valid, so no backoff applies
		}
	}
	if wait > 0 {
		p.LookAgain(wait)
		return
	}
	p.ask(f, m, v1alpha1.CommandSequence)
}

// copies are members sorted by version, the newest first. Of equals, the member with fewer failures
// comes first, then the lower ordinal. Unknown versions come last.
type copies []*member

func copiesOf(members []*member) copies {
	all := slices.Clone(members)
	slices.SortStableFunc(all, func(a, b *member) int {
		return cmp.Or(
			cmp.Compare(truth(b.version.known), truth(a.version.known)),
			newerFirst(a, b),
			cmp.Compare(failedOften(a), failedOften(b)),
			a.ordinal-b.ordinal)
	})
	return all
}

func newerFirst(a, b *member) int {
	return cmp.Compare(b.version.sequence, a.version.sequence)
}

// failedOften returns the number of recent failed starts or stops of the member.
func failedOften(m *member) int32 {
	if m.failure == nil {
		return 0
	}
	return m.failure.Count
}

func truth(b bool) int {
	if b {
		return 1
	}
	return 0
}

// answered reports whether all of them have answered.
func (c copies) answered() bool {
	return !slices.ContainsFunc(c, func(m *member) bool { return !m.version.answered })
}

// unknown names the members that answered without a valid sequence.
func (c copies) unknown() string {
	var names []string
	for _, m := range c {
		if m.version.answered && !m.version.known {
			names = append(names, fmt.Sprintf("%s (%s)", m.name(), whyUnknown(m)))
		}
	}
	return strings.Join(names, ", ")
}

// whyWaiting names the members whose version is missing. blind names those that have answered.
func (c copies) whyWaiting(blind string) string {
	if blind != "" {
		return "data version unknown for " + blind
	}
	asked := c.those(func(m *member) bool { return !m.version.answered })
	slices.SortFunc(asked, func(a, b *member) int { return a.ordinal - b.ordinal })
	return "data version unknown for " + namesOf(asked) + ": waiting for a response from sequence"
}

// those returns the copies that match.
func (c copies) those(is func(*member) bool) copies {
	return slices.DeleteFunc(slices.Clone(c), func(m *member) bool { return !is(m) })
}

// newest returns the copies with the sequence of the first.
func (c copies) newest() copies {
	return c.those(func(m *member) bool { return m.version.sequence == c[0].version.sequence })
}

// startable returns the first member that may be started or take a role. It returns nil if there is
// none.
func (c copies) startable() *member {
	if i := slices.IndexFunc(c, (*member).startable); i >= 0 {
		return c[i]
	}
	return nil
}

// named returns the member of that name, or the first well placed one of the newest. If neither
// exists, it returns the first.
func (c copies) named(name string) *member {
	if i := slices.IndexFunc(c, func(m *member) bool { return m.name() == name }); i >= 0 {
		return c[i]
	}
	newest := c.newest()
	if i := slices.IndexFunc(newest, (*member).wellPlaced); i >= 0 {
		return newest[i]
	}
	return c[0]
}

// oldest returns the last member, and of equals one in spec.maintenance.
func (c copies) oldest() *member {
	last := c[len(c)-1]
	for _, m := range slices.Backward(c) {
		if m.listed && m.version.known == last.version.known && m.version.sequence == last.version.sequence {
			return m
		}
	}
	return last
}

// whyUnknown states why the last sequence of a member gave no number.
func whyUnknown(m *member) string {
	r, _ := m.result(v1alpha1.CommandSequence)
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
		return fmt.Sprintf("%s (more than %d bytes)", wrong, maxSequence)
	case n == 0:
		return "sequence must print one unsigned integer, but printed nothing"
	default:
		return fmt.Sprintf("%s (%d bytes)", wrong, n)
	}
}

// outdone states which member had a newer copy than that sequence when it was last seen. It is ""
// if none had.
func (f *facts) outdone(sequence uint64) string {
	newest, pod := f.record.newest()
	if newest <= sequence {
		return ""
	}
	text := fmt.Sprintf(
		"the newest available copy has sequence %d, but %s had %d",
		sequence, pod, newest,
	)
	if m := f.named(pod); m != nil && m.parked {
		text += " and is in spec.maintenance"
	}
	return text
}
