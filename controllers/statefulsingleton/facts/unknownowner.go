package facts

import (
	"time"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/spec"
)

// The operator supports pods of a Deployment, StatefulSet, DaemonSet or Job. For a pod of any other
// owner, or of none, it cannot determine whether the pod replaces a running one or is its standby. With
// onTimeout DeleteOld it assumes that it is a replacement, and deletes the running pod, but only once
// for each owner and revision: two owners that both want a pod would otherwise alternate forever. These
// deletions are recorded in status.replaced.

// MayBeReplaced reports whether a pod at its gate may be the replacement of this one.
func (f *Facts) MayBeReplaced(old *Member) bool { return f.ReplacementFor(old) != nil }

// ReplacementFor returns the pod at its gate that may be the replacement of this one; nil
// if there is none.
func (f *Facts) ReplacementFor(old *Member) *Member {
	for _, next := range f.Waiting {
		if next.AtGate() && next.mayReplace(old) {
			return next
		}
	}
	return nil
}

// mayReplace reports whether a pod of an unknown owner may be the replacement of an older
// one. Two pods that an owner created from one template are standbys of each other. A pod
// that was replaced before and was recreated, or was in a crash loop, replaces no other: the two programs would
// alternate forever.
func (m *Member) mayReplace(old *Member) bool {
	owner := &m.Family
	switch {
	case owner.Unknown == "", m.Replaced, m.Tried:
		return false
	case owner.Owner != "" && owner.Owner == old.Family.Owner && owner.Revision == old.Family.Revision:
		return false
	}
	return old.revisionCreated().Before(m.revisionCreated())
}

// revisionCreated returns when the ReplicaSet of the pod was created, or the pod itself if it
// has none. A pod that an old ReplicaSet recreates does not count as newer than others.
func (m *Member) revisionCreated() time.Time {
	if m.Family.Since.IsZero() {
		return m.Pod.CreationTimestamp.Time
	}
	return m.Family.Since
}

// WaitsForUnknown reports whether a waiting pod of an unknown owner may want to replace the
// old one: it may be its replacement, or it was itself replaced by the other owner's pod and
// recreated.
func (m *Member) WaitsForUnknown(old *Member) bool {
	return m.mayReplace(old) || (m.Replaced && !m.isLike(old))
}

// MaxReplaced is the max number of records in status.replaced. At this number, no pod is
// deleted for a pod of an unknown owner.
const MaxReplaced = 16

// IsForgotten reports whether a record of a replaced pod was expired at that time, because no
// pod of its owner and revision had existed for ReplacedIsKept.
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
		created := m.Pod.CreationTimestamp.Time
		switch {
		case IsForgotten(r, created):
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
