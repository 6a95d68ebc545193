package facts

import (
	"time"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/spec"
)

// MayBeReplaced reports whether a pod at its gate may be the replacement of this one.
func (f *Facts) MayBeReplaced(old *Member) bool { return f.ReplacementFor(old) != nil }

// ReplacementFor returns the pod at its gate that may be the replacement of this one; nil
// if there is none.
func (f *Facts) ReplacementFor(old *Member) *Member {
	for _, next := range f.Waiting {
		if next.Held() && next.mayReplace(old) {
			return next
		}
	}
	return nil
}

// mayReplace reports whether a pod of an unknown owner may be the replacement of an older
// one. Two pods that an owner created from one template are standbys of each other. A pod
// that was replaced before and was recreated replaces no other: the two programs would
// alternate forever.
func (m *Member) mayReplace(old *Member) bool {
	of := &m.Family
	switch {
	case of.Unknown == "", m.Replaced:
		return false
	case of.Owner != "" && of.Owner == old.Family.Owner && of.Revision == old.Family.Revision:
		return false
	}
	return old.cameAt().Before(m.cameAt())
}

// cameAt returns when the ReplicaSet of the pod was created, or the pod itself if that is
// unknown. A pod that an old ReplicaSet recreates is not new.
func (m *Member) cameAt() time.Time {
	if m.Family.Since.IsZero() {
		return m.Pod.CreationTimestamp.Time
	}
	return m.Family.Since
}

// WaitsForUnknown reports whether a pod of an unknown owner may be the replacement of an
// older one, or was itself replaced.
func (m *Member) WaitsForUnknown(old *Member) bool {
	return m.mayReplace(old) || (m.Replaced && !m.isLike(old))
}

// MaxReplaced is the max number of records. At this number, no pod is deleted for a pod of
// an unknown owner.
const MaxReplaced = 16

// IsForgotten reports whether a record was expired at that time, because no pod of it had
// existed for ReplacedIsKept.
func IsForgotten(r v1.ReplacedPod, at time.Time) bool {
	return r.MissingSince != nil && at.Sub(r.MissingSince.Time) >= spec.ReplacedIsKept
}

// wasReplaced reports whether no pod may be deleted for this one, because onTimeout deleted
// a pod of its owner and revision before, or because there are too many other records.
func wasReplaced(w *World, m *Member) bool {
	if w.Object == nil || !w.DeletesOnTimeout() || m.Family.Unknown == "" {
		return false
	}
	counting := 0
	for _, r := range w.Object.Status.Replaced {
		came := m.Pod.CreationTimestamp.Time
		switch {
		case IsForgotten(r, came):
		case IsOf(m, r):
			return true
		default:
			counting++
		}
	}
	return counting >= MaxReplaced
}

// IsOf reports whether a pod has the owner and revision of a record.
func IsOf(m *Member, r v1.ReplacedPod) bool {
	owner, revision := m.Lineage()
	return owner == r.Owner && revision == r.Revision
}
