package facts

import "cmp"

// byTurn orders waiting pods: eligible pods first, then those that were not in a crash loop, then those of the newest revision, then
// those whose gate runs, then the oldest.
func byTurn(a, b *Member) int {
	return cmp.Or(
		first(a.Eligible(), b.Eligible()),
		first(!a.Tried, !b.Tried),
		first(!a.Family.Outdated, !b.Family.Outdated),
		first(a.AtGate(), b.AtGate()),
		a.Pod.CreationTimestamp.Compare(b.Pod.CreationTimestamp.Time),
		cmp.Compare(a.Name(), b.Name()),
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
