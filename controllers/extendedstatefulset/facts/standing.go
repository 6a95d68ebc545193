package facts

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/utils/ptr"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/children"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/spec"
)

// Standing evaluates one version in all wanted zones: whether it is available, and whether it has all
// ordinals.
type Standing struct {
	*World
	number int64
}

// Standing returns the standing of the version with the given number.
func (w *World) Standing(number int64) Standing { return Standing{w, number} }

// AvailablePods returns the number of wanted ordinals on which a pod of the StatefulSet is available; 0
// for a nil StatefulSet.
func (w *World) AvailablePods(c *Child) int32 { return c.count(w.Replicas, w.Clock().Available) }

// ProvenPods returns the number of wanted ordinals on which a pod of the StatefulSet has passed its
// probation; 0 for a nil StatefulSet.
func (w *World) ProvenPods(c *Child) int32 { return c.count(w.Replicas, w.Clock().Proven) }

// members returns the StatefulSets of the version in the wanted zones, in the order of the spec.
func (s Standing) members() (found []*Child) {
	for _, z := range s.Zones {
		if c := s.Children.Find(z.Index, s.number); c != nil {
			found = append(found, c)
		}
	}
	return found
}

// AllProven reports whether all pods of a version have passed their probation, in every zone.
func (s Standing) AllProven() bool {
	return s.everywhere(func(c *Child) bool { return s.ProvenPods(c) >= s.Replicas })
}

// Complete reports whether a version has an available pod on all ordinals, in every zone.
func (s Standing) Complete() bool {
	return s.everywhere(func(c *Child) bool { return s.AvailablePods(c) >= s.Replicas })
}

// everywhere reports whether a version has a StatefulSet in each zone, and holds is true for all of
// them.
func (s Standing) everywhere(holds func(*Child) bool) bool {
	found := s.members()
	return len(found) == len(s.Zones) && !slices.ContainsFunc(found, func(c *Child) bool { return !holds(c) })
}

// Wanted reports whether the spec has a zone with the given index.
func (w *World) Wanted(index int32) bool {
	return slices.ContainsFunc(w.Zones, func(z children.Zone) bool { return z.Index == index })
}

// Canaries returns the number of canaries in each zone.
func (w *World) Canaries() int32 {
	return min(max(1, ptr.Deref(w.Set.Spec.UpdateStrategy.Canaries, 1)), w.Replicas)
}

// isKnown reports whether the template has the content of a version of a record, so that StatefulSets
// of the version can be created and edits of them undone.
func (w *World) isKnown(record *v1alpha1.ExtendedStatefulSetStatus, number int64) bool {
	if number == record.CurrentVersion && record.CurrentDigest == w.Digest {
		return true
	}
	u := record.Update
	return u != nil && number == record.UpdateVersion && u.Digest == w.Digest
}

// Unsettled returns the reason why an upgrade from a version cannot begin yet; "" if it can. A version
// that restarts its pods has one pod down, and the upgrade would stop another.
func (s Standing) Unsettled() string {
	if why := s.NotReady(); why != "" {
		return why
	}
	for _, c := range s.members() {
		if rolls(c.Set) && !spec.HoldsBack(&c.Set.Spec.UpdateStrategy) {
			return fmt.Sprintf("%s is restarting its pods", c.Set.Name)
		}
	}
	return ""
}

// split reports whether ordinals of a version belong to other versions or are being moved.
func (s Standing) split() bool {
	return slices.ContainsFunc(s.members(), func(c *Child) bool {
		beside := func(other *Child) bool { return other.Zone == c.Zone && other.Version != c.Version }
		return !c.HasAll(s.Replicas) && slices.ContainsFunc(s.Children, beside)
	})
}

// HoldsPods returns the reason why pods of a version must not be restarted now; "" if they may. While
// an ordinal moves, its pod is down, and no other pod may be. A terminating claim is removed when its
// pod ends, so its pod must not be restarted either.
func (w *World) HoldsPods(number int64) string {
	if w.Standing(w.Set.Status.CurrentVersion).split() && !w.Standing(number).onTrial() {
		return "ordinals are moving between versions"
	}
	if why := Unconsented(w); why != "" {
		return "they wait until " + why
	}
	if name := anyDeletedClaim(w); name != "" {
		return fmt.Sprintf("claim %s is terminating, and its data is lost when its pod is deleted", name)
	}
	return ""
}

// onTrial reports whether a version has canaries, but no good one yet. They may be restarted although
// the ordinals are split between two versions: a restart may fix them, and no second ordinal is taken
// for them before one is good.
func (s Standing) onTrial() bool {
	now := &s.Set.Status
	if s.number != now.UpdateVersion || now.Phase != v1alpha1.PhaseCanary || now.Update == nil || now.Update.Returning {
		return false
	}
	return !slices.ContainsFunc(s.Children.OfVersion(s.number), func(c *Child) bool { return s.ProvenPods(c) > 0 })
}

// NotReady describes a StatefulSet of the version whose pods are not all available; "" if there is none.
func (s Standing) NotReady() string {
	for _, c := range s.members() {
		if n := s.AvailablePods(c); n < s.Replicas {
			return fmt.Sprintf("%s has %d of %d pods available", c.Set.Name, n, s.Replicas)
		}
	}
	return ""
}

// Unreturned describes the ordinals that still have to be returned to the version; "" if it has all.
// record is the record that has the version.
func (s Standing) Unreturned(record *v1alpha1.ExtendedStatefulSetStatus) string {
	return cmp.Or(s.stillElsewhere(s.isKnown(record, s.number)), s.stillIncomplete())
}

// stillElsewhere describes a StatefulSet of another version that still has pods which could be returned;
// "" if there is none.
// known is true if the template has the content of the version.
func (s Standing) stillElsewhere(known bool) string {
	elsewhere := func(c *Child) bool {
		if c.Version == s.number || c.Empty() || !s.Wanted(c.Zone) {
			return false
		}
		return known || s.Children.Find(c.Zone, s.number) != nil
	}
	if c, some := First(s.Children, elsewhere); some {
		return fmt.Sprintf("%s still has pods", c.Set.Name)
	}
	return ""
}

// stillIncomplete describes a StatefulSet of the version that lacks ordinals; "" if there is none.
func (s Standing) stillIncomplete() string {
	if c, some := First(s.members(), func(c *Child) bool { return !c.HasAll(s.Replicas) }); some {
		return fmt.Sprintf("%s does not have all its ordinals yet", c.Set.Name)
	}
	return ""
}
