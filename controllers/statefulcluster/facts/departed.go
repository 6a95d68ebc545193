package facts

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
)

// OrphanSlots returns the number of slots that stay empty because orphans have claims of members.
// Members that are being recreated already occupy their slots.
func OrphanSlots(f *Facts) int {
	n := len(f.OrphanIDs)
	for _, e := range f.Returning {
		if f.OrphanIDs[f.IDOf(e.Name)] {
			n--
		}
	}
	return n
}

// Unlisted returns the departures that are missing in status.lost. A pod may stay terminating on a
// lost Node for days. Once the list is full of later losses, its own is too old to be listed.
func (f *Facts) Unlisted() []*Member {
	known := f.Set.Status.Lost
	isOld := func(m *Member) bool {
		return len(known) >= MaxLost && !podstate.DeletedAt(m.Pod).After(known[len(known)-1].Time.Time)
	}
	return slices.DeleteFunc(f.departures(), func(m *Member) bool { return Listed(known, m.Name()) || isOld(m) })
}

// DepartureReason returns the loss reason of a member that this pass did not delete.
func DepartureReason(m *Member, succeeded bool) v1alpha1.LossReason {
	switch {
	case m.evicted():
		return v1alpha1.LossEvicted
	case m.takenByTaint():
		return m.takenBecause()
	case succeeded && m.NodeLost(): // deleted by an earlier pass that was interrupted
		return m.takenBecause()
	}
	return v1alpha1.LossDeleted
}

// departures returns the members whose pod was deleted by others.
func (f *Facts) departures() []*Member {
	var found []*Member
	for _, m := range f.Departed {
		if !f.WasRetired(m) && !f.KeepsEvicted(m) {
			found = append(found, m)
		}
	}
	return found
}

// MaxLabelled is the max number of pods whose labels one pass removes. Later passes handle the rest.
const MaxLabelled = 100

// Outsiders returns the pods that have the labels of members and are not members.
func Outsiders(w *World) []*corev1.Pod {
	pods := slices.Clone(w.Labelled)
	for _, pod := range w.Orphans {
		if !w.OrphanIDs[w.IDOf(pod.Name)] {
			pods = append(pods, pod)
		}
	}
	return pods
}

// MaxLost is the max number of entries in status.lost.
const MaxLost = 10
