package children_test

import (
	"math"
	"slices"
	"testing"

	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/children"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/spec"
)

func TestSpans(t *testing.T) {
	middle, empty := children.Span{Start: 2, Replicas: 3}, children.Span{Start: 4}
	for _, r := range []struct {
		name      string
		got, want any
	}{
		{"the ordinals", slices.Collect(middle.Ordinals()), []int32{2, 3, 4}},
		{"the first ordinal", middle.Has(2), true},
		{"the ordinal before the first", middle.Has(1), false},
		{"the ordinal after the last", middle.Has(5), false},
		{"an ordinal of an empty span", empty.Has(4), false},
		{"with the ordinal after the last", middle.With(5), children.Span{Start: 2, Replicas: 4}},
		{"with the ordinal before the first", middle.With(1), children.Span{Start: 1, Replicas: 4}},
		{"an empty span with any ordinal", empty.With(7), children.Span{Start: 7, Replicas: 1}},
		{"without the first ordinal", middle.Without(2), children.Span{Start: 3, Replicas: 2}},
		{"without the last ordinal", middle.Without(4), children.Span{Start: 2, Replicas: 2}},
		{"a neighbour of the lower end", middle.TakesOver(1, false), true},
		{"a neighbour of the upper end", middle.TakesOver(5, false), true},
		{"an ordinal farther away", middle.TakesOver(6, true), false},
		{"an empty span beside a goal with enough ordinals", empty.TakesOver(9, true), true},
		{"an empty span beside a goal with too few ordinals", empty.TakesOver(4, false), false},
		{"the text of a span", middle.String(), "ordinals 2 to 4"},
		{"the text of an empty span", empty.String(), "no pods"},
		{"the end of a span that another client set", children.Span{Start: math.MaxInt32, Replicas: 2}.End(), int32(math.MaxInt32)},
		{"the ordinals of a span that another client set", len(slices.Collect(children.Span{Replicas: math.MaxInt32}.Ordinals())), spec.MaxReplicas},
	} {
		if got, ok := r.got.([]int32); ok {
			if !slices.Equal(got, r.want.([]int32)) {
				t.Errorf("%s: %v, want %v", r.name, r.got, r.want)
			}
		} else if r.got != r.want {
			t.Errorf("%s: %v, want %v", r.name, r.got, r.want)
		}
	}
}
