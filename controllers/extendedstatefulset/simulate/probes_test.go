package simulate_test

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/rules"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/simulate"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation"
)

func probed(single bool) *v1alpha1.ExtendedStatefulSet {
	set := fixture.Plain()
	set.Spec.ActivePassiveProbes = map[string]v1alpha1.ActivePassiveProbe{"main": {
		SingleActive: single,
		Exec:         &corev1.ExecAction{Command: []string{"is-active"}},
	}}
	return set
}

// active returns the names of the pods with the label of active pods.
func active(t *testing.T, c *simulation.Cluster) (names []string) {
	t.Helper()
	for name, pod := range ready(t, c) {
		if rules.IsActive(pod) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func isActive(t *testing.T, c *simulation.Cluster, want ...string) {
	t.Helper()
	if got := active(t, c); !slices.Equal(got, want) {
		t.Errorf("%q are active, want %q", got, want)
	}
}

func TestTheActivePod(t *testing.T) {
	for _, single := range []bool{true, false} {
		s := started(t, probed(single))
		isActive(t, s.Cluster, "shop-v1-0")
		s.Remove(ready(t, s.Cluster)["shop-v1-0"])
		settle(t, s)
		isActive(t, s.Cluster, "shop-v1-1")
		c := live(t, s.Cluster)
		next := simulate.Start(c, key)
		settle(t, next)
		isActive(t, c, "shop-v1-1")
		edit(t, c, image("two"))
		settle(t, next)
		isActive(t, c, "shop-v2-0")
		for name, pod := range ready(t, c) {
			if role := (simulate.Kind{}).Role(setOf(t, c), pod); (role == "active") != (name == "shop-v2-0") {
				t.Errorf("the role of %s is %q", name, role)
			}
		}
	}
}

func TestAllPodsAreActive(t *testing.T) {
	s := started(t, probed(false))
	for _, pod := range ready(t, s.Cluster) {
		pod.Labels[v1alpha1.LabelPodActive] = v1alpha1.PodActive
		s.Put(pod)
	}
	c := live(t, s.Cluster)
	next := simulate.Start(c, key)
	settle(t, next)
	isActive(t, c, "shop-v1-0", "shop-v1-1", "shop-v1-2")
	edit(t, c, image("two"))
	settle(t, next)
	isActive(t, c, "shop-v2-0", "shop-v2-1", "shop-v2-2")
}

// TestProbesEnd checks that periodic probes do not delay the rest, and that a start sends only probes.
func TestProbesEnd(t *testing.T) {
	s := started(t, probed(true))
	begin := s.Now
	if settle(t, s); s.Now.Sub(begin) > patience+time.Minute {
		t.Errorf("the set is at rest after %s", s.Now.Sub(begin))
	}
	if passed := s.Pass(); passed.Acted || passed.Wait == 0 {
		t.Errorf("the pass at rest: %+v", passed)
	}
}
