package facts

import (
	"slices"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
)

// MaxLost is the max number of entries in status.lost.
const MaxLost = 10

// Unlisted returns the members whose pod was deleted by others and that are missing in status.lost. A
// pod may stay terminating on a lost Node for days. If the list is full of later losses, the member is
// not added again.
func (f *Facts) Unlisted() []*Member {
	listed := f.Set.Status.Lost
	isOld := func(m *Member) bool {
		return len(listed) >= MaxLost && !podstate.DeletedAt(m.Pod).After(listed[len(listed)-1].Time.Time)
	}
	return slices.DeleteFunc(f.departures(), func(m *Member) bool { return Listed(listed, m.Name()) || isOld(m) })
}

// DepartureReason returns the loss reason of a departed member. A lost Node is the reason only if the
// control plane evicted the pod, or an earlier pass deleted it for that and created a successor before
// it was interrupted.
func DepartureReason(m *Member, hasSuccessor bool) v1alpha1.LossReason {
	switch {
	case m.evicted():
		return v1alpha1.LossEvicted
	case m.taintEvicted():
		return m.nodeLossReason()
	case hasSuccessor && m.OnBadNode():
		return m.nodeLossReason()
	}
	return v1alpha1.LossDeleted
}

// departures returns the departed members that are lost: the operator did not retire them, and does
// not recreate them.
func (f *Facts) departures() []*Member {
	var found []*Member
	for _, m := range f.Departed {
		if !f.WasRetired(m) && !f.KeepsEvicted(m) {
			found = append(found, m)
		}
	}
	return found
}
