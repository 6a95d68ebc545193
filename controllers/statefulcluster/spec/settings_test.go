package spec_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/children"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/spec"
)

func TestShares(t *testing.T) {
	w := func(replicas int32, unavailable, surge, concurrent string) *facts.World {
		s := fixture.Set("db").Replicas(replicas).MaxConcurrent(concurrent)
		s.Rolling(v1alpha1.RollingUpdate{MaxUnavailable: ptr.To(intstr.Parse(unavailable)), MaxSurge: ptr.To(intstr.Parse(surge))})
		return &facts.World{Settings: spec.Settings{Set: spec.WithDefaults(&s.StatefulCluster)}}
	}
	for _, r := range []struct {
		name      string
		got, want int
	}{
		{"maxUnavailable is rounded up", w(10, "25%", "0", "1").MaxUnavailable(), 3},
		{"maxSurge is rounded up", w(10, "1", "25%", "1").MaxSurge(), 3},
		{"maxConcurrent is rounded down", w(10, "1", "0", "25%").MaxConcurrent(), 2},
		{"maxConcurrent is at least 1", w(3, "1", "0", "25%").MaxConcurrent(), 1},
		{"the disruption budget is a number", int(children.BuildBudget(w(10, "1", "0", "25%").Settings, 10).Spec.MaxUnavailable.IntVal), 2},
		{"maxUnavailable 0 without a surge is 1, so that updates make progress", w(0, "25%", "0", "1").MaxUnavailable(), 1},
		{"maxUnavailable 0 with a surge is 0", w(10, "0", "1", "1").MaxUnavailable(), 0},
		{"maxSurge of an old object is at most maxReplicas", w(10, "1", "2147483647", "1").MaxSurge(), 20000},
		{"maxSurge above 100% of an old object is at most maxReplicas", w(20000, "1", "2147483647%", "1").MaxSurge(), 20000},
		{"maxConcurrent of an old object is at most maxReplicas", w(10, "1", "0", "2147483647").MaxConcurrent(), 20000},
		{"maxConcurrent that is not a number is 1", w(10, "many", "0", "many").MaxConcurrent(), 1},
	} {
		if r.got != r.want {
			t.Errorf("%s: %d, want %d", r.name, r.got, r.want)
		}
	}
}
