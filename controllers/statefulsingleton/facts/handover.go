package facts

import (
	"slices"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
)

// DeletesOnTimeout reports whether pods that block a late handover may be deleted.
func (w *World) DeletesOnTimeout() bool {
	if !w.Serves() || w.Deleting() {
		return false
	}
	return w.Object.Spec.OnTimeout == v1.TimeoutDeletesOld
}

// Successors returns the waiting pods that can take over from m: those of the newest
// revision if the Deployment of m does a rolling update and none of them was in a crash loop, and those on other Nodes if m has
// to leave its Node.
func (f *Facts) Successors(m *Member) []*Member {
	var found []*Member
	for _, next := range f.Waiting {
		follows := m.Family.Rolls && next.Family.Follows(&m.Family) && !f.newestWasTried(&next.Family)
		if follows || (m == f.Leaving && next.takesOverFrom(m)) {
			found = append(found, next)
		}
	}
	return found
}

// newestWasTried reports whether the program of a waiting pod of the newest revision of an owner was in a crash loop.
func (f *Facts) newestWasTried(owner *Family) bool {
	return slices.ContainsFunc(f.Waiting, func(m *Member) bool {
		return m.Tried && m.Family.Owner == owner.Owner && !m.Family.Outdated
	})
}
