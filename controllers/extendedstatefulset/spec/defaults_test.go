package spec_test

import (
	"slices"
	"testing"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/spec"
)

func TestSmallestLegal(t *testing.T) {
	rules := func(low, high int32, odd bool) *v1alpha1.Scaling {
		s := &v1alpha1.Scaling{OddOnly: odd}
		if low >= 0 {
			s.Min = &low
		}
		if high >= 0 {
			s.Max = &high
		}
		return s
	}
	for _, r := range []struct {
		name  string
		rules *v1alpha1.Scaling
		want  int32
	}{
		{"1 without rules", nil, 1}, {"1 with empty rules", rules(-1, -1, false), 1}, {"1 although 0 is legal", rules(0, 5, false), 1},
		{"0 if only 0 is legal", rules(-1, 0, false), 0}, {"the min", rules(4, -1, false), 4}, {"the next odd number above an even min", rules(4, -1, true), 5},
		{"an odd min", rules(3, 13, true), 3}, {"an odd number below an even max", rules(2, 4, true), 3},
	} {
		if got := spec.SmallestLegal(r.rules); got != r.want {
			t.Errorf("%s: %d, want %d", r.name, got, r.want)
		}
	}
}

// TestTheSmallestLegalNumberIsLegalAndThereIsNoSmaller verifies that SmallestLegal agrees with the
// rules for everything that the schema accepts.
func TestTheSmallestLegalNumberIsLegalAndThereIsNoSmaller(t *testing.T) {
	for low := int32(-1); low < 7; low++ {
		for high := int32(-1); high < 7; high++ {
			for _, odd := range []bool{false, true} {
				s := &v1alpha1.Scaling{OddOnly: odd}
				if low >= 0 {
					s.Min = &low
				}
				if high >= 0 {
					s.Max = &high
				}
				legal := func(n int32) bool {
					return n >= low && (high < 0 || n <= high) && (!odd || n%2 == 1)
				}
				numbers := []int32{1, 2, 3, 4, 5, 6, 7, 8, 0} // 0 only if no other number is allowed
				first := slices.IndexFunc(numbers, legal)
				got := spec.SmallestLegal(s)
				set := fixture.FakeSet(got)
				set.Spec.Scaling = s
				errs := spec.ValidateReplicas(&set.Spec, nil)
				if first < 0 {
					if len(errs) == 0 {
						t.Errorf("%d to %d, odd %t: accepted although no number is legal", low, high, odd)
					}
				} else if got != numbers[first] || len(errs) > 0 {
					t.Errorf("%d to %d, odd %t: %d, want %d; %v", low, high, odd, got, numbers[first], errs)
				}
			}
		}
	}
}
