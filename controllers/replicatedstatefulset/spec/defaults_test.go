package spec_test

import (
	"testing"

	"k8s.io/utils/ptr"

	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/rules"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/status"
)

func TestRS5TheEffectiveNumbersAreInTheStatus(t *testing.T) {
	for _, r := range []struct {
		name                string
		replicas, primaries *int32
		want                int
	}{
		{"defaults", nil, nil, 3},
		{"one replica", ptr.To(int32(1)), nil, 1},
		{"primaries follow replicas", ptr.To(int32(5)), nil, 5},
		{"two primaries of five replicas", ptr.To(int32(5)), ptr.To(int32(2)), 2},
		{"no primaries and no replicas", ptr.To(int32(0)), ptr.To(int32(0)), 0},
		{"no primaries of two replicas", ptr.To(int32(2)), ptr.To(int32(0)), 1},
	} {
		t.Run(r.name, func(t *testing.T) {
			set := fixture.SetOf(1, 1)
			set.Spec.Replicas, set.Spec.Primaries = r.replicas, r.primaries
			w := fixture.WorldOf(set)
			p := rules.Decide(w)
			if s := status.Summarize(&p); int(s.PrimariesWanted) != r.want {
				t.Errorf("primariesWanted is %d, want %d", s.PrimariesWanted, r.want)
			}
		})
	}
}
