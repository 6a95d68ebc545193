package rules

import (
	"slices"
	"time"

	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/spec"
)

// Next returns the pod to start; nil if none can start now. If several pods wait, only a pod
// that is at its gate is started: another pod might not reach its gate, and would then block
// the others. A pod of an older revision yields to one of the newest revision for
// NewestPatience: Next then returns nil, and the delay after which to decide again.
func Next(f *facts.Facts) (next *facts.Member, after time.Duration) {
	if len(f.Waiting) == 1 {
		return onlyOne(f), 0
	}
	olderAtGate := slices.ContainsFunc(f.Waiting, func(m *facts.Member) bool { return m.Family.Outdated && m.AtGate() })
	for _, m := range f.Waiting { // sorted by byTurn
		if !m.Eligible() {
			continue
		}
		if m.AtGate() && m.GateLasts() {
			return m, 0
		}
		if m.Family.Outdated || !olderAtGate {
			continue
		}
		if left := f.Until(m.Pod.CreationTimestamp.Time, spec.NewestPatience); left > 0 {
			return nil, left
		}
	}
	return nil, 0
}

// onlyOne returns the only waiting pod; nil if it cannot start.
func onlyOne(f *facts.Facts) *facts.Member {
	m := f.Waiting[0]
	if !m.Eligible() || !m.GateLasts() {
		return nil
	}
	return m
}

// unblockNewest deletes waiting pods of an older revision that use a volume which a pod of the
// newest revision needs on another node. Their programs have not started.
func unblockNewest(f *facts.Facts, p *Plan) {
	if !f.Grants() {
		return
	}
	p.Do(deletions(f.Waiting, ReasonSuperseded, "it uses the volume that a pod of the newest revision needs", func(m *facts.Member) bool { return hasVolumeOfNewer(f, m) })...)
}

// hasVolumeOfNewer reports whether a pod of the newest revision cannot reach its gate
// because of the volume of this older one.
func hasVolumeOfNewer(f *facts.Facts, m *facts.Member) bool {
	return slices.ContainsFunc(slices.Concat(f.Waiting, f.Blockers), func(newer *facts.Member) bool {
		if !newer.Family.Rolls || !newer.Family.Follows(&m.Family) {
			return false
		}
		return !newer.Terminating() && newer.NeedsClaimOf(m)
	})
}
