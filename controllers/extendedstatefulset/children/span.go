package children

import (
	"fmt"
	"iter"
	"math"

	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/spec"
)

// Span is the range of ordinals of a StatefulSet: spec.ordinals.start and spec.replicas.
type Span struct{ Start, Replicas int32 }

// End returns the ordinal after the last.
func (s Span) End() int32 { return s.Start + min(s.Replicas, math.MaxInt32-s.Start) }

// Ordinals returns the ordinals one by one. It returns at most MaxReplicas, even if another client
// gave the StatefulSet more.
func (s Span) Ordinals() iter.Seq[int32] {
	return func(yield func(int32) bool) {
		for i := range min(s.End()-s.Start, spec.MaxReplicas) {
			if !yield(s.Start + i) {
				return
			}
		}
	}
}

// Has reports whether an ordinal is in the span.
func (s Span) Has(ordinal int32) bool { return s.Start <= ordinal && ordinal < s.End() }

func (s Span) String() string {
	if s.Replicas == 0 {
		return "no pods"
	}
	return fmt.Sprintf("ordinals %d to %d", s.Start, s.End()-1)
}

// TakesOver reports whether a StatefulSet with this span, a neighbour of the goal, gets an ordinal that
// has no owner: if the ordinal is adjacent, or if the span is empty and the goal has enough ordinals.
func (s Span) TakesOver(ordinal int32, enough bool) bool {
	if s.Replicas == 0 {
		return enough
	}
	return s.Touches(ordinal)
}

// Touches reports whether an ordinal is adjacent to the span.
func (s Span) Touches(ordinal int32) bool { return ordinal == s.End() || ordinal == s.Start-1 }

// With returns the span extended by an adjacent ordinal. An empty span becomes a span of that ordinal.
func (s Span) With(ordinal int32) Span {
	switch {
	case s.Replicas == 0:
		return Span{ordinal, 1}
	case ordinal < s.Start:
		return Span{ordinal, s.Replicas + 1}
	}
	return Span{s.Start, s.Replicas + 1}
}

// Without returns the span without its first or last ordinal.
func (s Span) Without(ordinal int32) Span {
	if ordinal == s.Start {
		return Span{s.Start + 1, s.Replicas - 1}
	}
	return Span{s.Start, s.Replicas - 1}
}
