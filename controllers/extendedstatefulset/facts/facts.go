package facts

import (
	"slices"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/children"
)

// Facts are what a pass has read, and the record that follows from it. Most facts are methods of World:
// they need no new record. Clock evaluates a pod, Child a StatefulSet with its pods, Standing a version
// in all zones, and Spans the distribution of the ordinals of a zone over its StatefulSets.
type Facts struct {
	*World
	// Record is the record of this pass. If it differs from that in the status, it must be written
	// before anything else is done.
	Record *v1alpha1.ExtendedStatefulSetStatus
}

// Unsure reports whether the cache may lack a StatefulSet of the object. The cache holds only
// StatefulSets with the operator's label, which may have been removed.
func (w *World) Unsure() bool {
	if w.Live || w.Set.DeletionTimestamp != nil {
		return false
	}
	return slices.ContainsFunc(w.Pods, func(t PodOfOrdinal) bool {
		return w.Children.Find(t.Zone, t.Version) == nil && t.Pod.DeletionTimestamp == nil
	})
}

// IsUnread reports whether the pods and claims of an ordinal were not read by name in this pass. The
// ordinal is then skipped.
func (w *World) IsUnread(z children.Zone, ordinal int32) bool {
	first, some := w.FirstUnread[z.Index]
	return some && ordinal >= first
}

// Known reports whether the template has the content of a version, so that its StatefulSets can be
// created.
func (f *Facts) Known(number int64) bool { return f.isKnown(f.Record, number) }

// Forward reports whether the new version may take ordinals in a zone: its attempt has not failed, and
// has reached the zone.
func (f *Facts) Forward(z children.Zone) bool {
	u := f.Record.Update
	if u == nil || u.Returning {
		return false
	}
	switch f.Record.Phase {
	case v1alpha1.PhaseCanary, v1alpha1.PhasePromoting, v1alpha1.PhasePostJob:
		c := f.Children.Find(z.Index, f.Record.UpdateVersion)
		begun := c != nil && c.Span().Replicas > 0
		return begun || u.Zone == z.Name
	}
	return false
}

// Returning reports whether ordinals are being returned to the current version. It is also true after
// the last attempt; Update.Returning is only true between two attempts.
func (f *Facts) Returning() bool { return f.Unreturned() != "" }

// Unreturned returns which ordinals still have to be returned to the current version; "" if it has all.
func (f *Facts) Unreturned() string {
	return f.Standing(f.Record.CurrentVersion).Unreturned(f.Record)
}

// GivenUp reports whether the upgrade in a status has finally failed.
func GivenUp(s *v1alpha1.ExtendedStatefulSetStatus) bool {
	return s.Phase == v1alpha1.PhaseStale || s.Phase == v1alpha1.PhaseAborted
}

// ZoneOf returns the zone in which an upgrade is in progress, or the first zone if that was removed from
// the spec.
func (w *World) ZoneOf(u *v1alpha1.UpdateStatus) children.Zone {
	if z, some := First(w.Zones, func(z children.Zone) bool { return z.Name == u.Zone }); some {
		return z
	}
	return w.Zones[0]
}
