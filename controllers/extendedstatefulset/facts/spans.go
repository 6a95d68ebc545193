package facts

import (
	"fmt"
	"iter"
	"slices"

	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/children"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
)

// Spans are the ordinals of the StatefulSets of a zone, by version.
type Spans map[int64]children.Span

// SpansOf returns the ordinals of the StatefulSets of a zone.
func (w *World) SpansOf(z children.Zone) Spans {
	have := Spans{}
	for _, c := range w.Children {
		if c.Zone == z.Index && !c.Terminating() {
			have[c.Version] = c.Span()
		}
	}
	return have
}

// Free returns the ordinals without an owner, in ascending or descending order. The owner is checked
// when an ordinal is reached, so an ordinal that got an owner during the iteration is skipped.
func (all Spans) Free(replicas int32, down bool) iter.Seq[int32] {
	return func(yield func(int32) bool) {
		for o := range replicas {
			if down {
				o = replicas - 1 - o
			}
			if all.Owner(o) == 0 && !yield(o) {
				return
			}
		}
	}
}

// FirstFree returns the lowest ordinal without an owner, if there is one.
func (all Spans) FirstFree(replicas int32) (ordinal int32, some bool) {
	for o := range all.Free(replicas, false) {
		return o, true
	}
	return 0, false
}

// Owner returns the version that has an ordinal; 0 if there is none.
func (all Spans) Owner(ordinal int32) int64 {
	for number, s := range all {
		if s.Has(ordinal) {
			return number
		}
	}
	return 0
}

// Absent returns the reason if an ordinal of a zone has no serving pod; "" if all have one. The ordinal
// but is ignored. In a rollback, a pod that was not Ready for canaryWatchTime is ignored too, because it
// is not expected to recover.
func (w *World) Absent(z children.Zone, all Spans, but int32, back bool) string {
	if len(all) == 0 {
		return ""
	}
	for o := range w.Replicas {
		if o == but {
			continue
		}
		if why := w.absentOn(z, o, all.Owner(o), back); why != "" {
			return why
		}
	}
	return ""
}

// absentOn returns the reason why an ordinal of a version does not serve; "" if it serves, or is not
// expected to.
func (w *World) absentOn(z children.Zone, ordinal int32, owner int64, back bool) string {
	c := w.Children.Find(z.Index, owner)
	switch {
	case c == nil && w.InTransit(z, ordinal):
		return fmt.Sprintf("ordinal %d%s has moved to another version", ordinal, z.In())
	case c == nil, w.Clock().Available(c.Pods[ordinal]):
		return ""
	case back && w.Clock().HadItsTime(c.Pods[ordinal]):
		return ""
	}
	return fmt.Sprintf("%s-%d is available", c.Set.Name, ordinal)
}

// InTransit reports whether an ordinal without an owner will soon get one. It returns false if the old
// pod is orphaned, or hangs while terminating.
func (w *World) InTransit(z children.Zone, ordinal int32) bool {
	stuck := func(p PodOfOrdinal) bool {
		orphan := !p.Owned && !podstate.Terminating(p.Pod)
		return p.IsOn(z, ordinal) && (orphan || w.Clock().hangs(p.Pod))
	}
	return !slices.ContainsFunc(w.Pods, stuck)
}
