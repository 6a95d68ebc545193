package statefulsingleton

import (
	"cmp"
	"slices"
	"time"
)

// next returns the pod to start; nil if none can start. If several pods wait, only a pod
// whose gate runs is started: another pod might never reach its gate, and would block the
// others. after is the delay until the next look.
func (f *facts) next() (next *member, after time.Duration) {
	if len(f.waiting) == 1 {
		return f.onlyOne(), 0
	}
	olderIsHeld := slices.ContainsFunc(f.waiting, func(m *member) bool { return m.family.outdated && m.held() })
	for _, m := range f.waiting { // sorted by byTurn
		if !m.eligible() {
			continue
		}
		if m.held() && m.lasts() {
			return m, 0
		}
		if m.family.outdated || !olderIsHeld {
			continue
		}
		if left := f.until(m.pod.CreationTimestamp.Time, newestPatience); left > 0 {
			return nil, left
		}
	}
	return nil, 0
}

// onlyOne returns the only waiting pod; nil if it cannot start.
func (f *facts) onlyOne() *member {
	m := f.waiting[0]
	if !m.eligible() || !m.lasts() {
		return nil
	}
	return m
}

// byTurn orders waiting pods: eligible pods first, then those of the newest revision, then
// those whose gate runs, then the oldest.
func byTurn(a, b *member) int {
	return cmp.Or(
		first(a.eligible(), b.eligible()),
		first(!a.family.outdated, !b.family.outdated),
		first(a.held(), b.held()),
		a.pod.CreationTimestamp.Compare(b.pod.CreationTimestamp.Time),
		cmp.Compare(a.name(), b.name()),
	)
}

// first orders true before false.
func first(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

// clearWay deletes waiting pods of an older revision that use a volume which a pod of the
// newest revision needs on another node. They have never run their program.
func clearWay(f *facts, p *plan) {
	if !f.grants() {
		return
	}
	p.Do(deletions(f.waiting, reasonSuperseded, "it uses the volume that a pod of the newest revision needs", f.hasVolumeOfNewer)...)
}

// hasVolumeOfNewer reports whether a pod of the newest revision cannot reach its gate
// because of the volume of this older one.
func (f *facts) hasVolumeOfNewer(m *member) bool {
	return slices.ContainsFunc(slices.Concat(f.waiting, f.blockers), func(newer *member) bool {
		if !newer.family.rolls || !newer.family.follows(&m.family) {
			return false
		}
		return !newer.terminating() && newer.needsClaimOf(m)
	})
}
