package facts

import (
	"fmt"
	"iter"
	"slices"

	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/children"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
)

// Spans are the ordinals of the StatefulSets of a zone, by version. The version that has an ordinal is
// its owner.
type Spans map[int64]children.Span

// SpansOf returns the present ordinals of the StatefulSets of a zone, except terminating ones.
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

// Unavailable returns what must happen before all ordinals of a zone have an available pod; "" if all
// have one. It ignores the ordinal except. In a rollback, it also ignores pods that have not been Ready
// for canaryWatchTime, because they are not expected to recover.
func (w *World) Unavailable(z children.Zone, all Spans, except int32, rollback bool) string {
	if len(all) == 0 {
		return ""
	}
	for o := range w.Replicas {
		if o == except {
			continue
		}
		if what := w.unavailableOn(z, o, all.Owner(o), rollback); what != "" {
			return what
		}
	}
	return ""
}

// unavailableOn returns what must happen before an ordinal of a version has an available pod; "" if it
// has one, or is not expected to get one.
func (w *World) unavailableOn(z children.Zone, ordinal int32, owner int64, rollback bool) string {
	c := w.Children.Find(z.Index, owner)
	switch {
	case c == nil && w.InTransit(z, ordinal):
		return fmt.Sprintf("ordinal %d%s has moved to another version", ordinal, z.In())
	case c == nil, w.Clock().Available(c.Pods[ordinal]):
		return ""
	case rollback && w.Clock().UnreadyTooLong(c.Pods[ordinal]):
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
