package extendedstatefulset

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/fixture"
)

// TestAStatefulSetControllerThatIsBehind verifies that a StatefulSet is not deleted before its
// controller has observed it. A controller that lags behind creates a pod from the spec that it saw
// last; if the StatefulSet were already deleted, the operator would not expect this pod.
func TestAStatefulSetControllerThatIsBehind(t *testing.T) {
	s := newStage(t, fixture.Volumes())
	s.rest()
	s.image("two")
	s.until("db-v1-2 is gone")
	observes := func(c *appsv1.StatefulSet) {
		c.Status.ObservedGeneration = c.Generation
		s.Put(c)
	}
	var seen *appsv1.StatefulSet
	for range 20 { // it sees db-v2 with the ordinal, and does not act on it yet
		s.steps(1)
		for _, c := range s.children() {
			switch {
			case c.Name == "db-v1" || *c.Spec.Replicas == 0 && seen == nil:
				observes(c)
			case *c.Spec.Replicas == 1:
				seen = c
			}
		}
	}
	if seen == nil {
		s.Fatal(t, "db-v2 never got the ordinal")
	}
	s.image("one")
	for range 12 { // it processes db-v1 first
		s.steps(1)
		for _, c := range s.children() {
			if c.Name == "db-v1" {
				observes(c)
				for o := range *c.Spec.Replicas {
					s.CreatePod(c, o)
				}
			}
		}
	}
	s.Say("# the StatefulSet controller acts on the db-v2 that it observed")
	s.object("StatefulSet", "db-v2")
	s.CreatePod(seen, 2)
	s.Check(t)
	s.rest()
}

// TestZonesComeAndGo verifies that the pods of a removed zone are kept until another zone has all its
// pods.
func TestZonesComeAndGo(t *testing.T) {
	for _, h := range []hazard{
		{"zones are added to a set without claims", fixture.Plain, func(s *stage) {
			s.rest()
			s.floor = 3
			s.zones("a", "b")
			s.until("db-z0-v1-0 is Ready")
			s.steps(2)
		}, "= Stable, version 1, 6 Ready; db-z0-v1 ordinals 0 to 2, db-z1-v1 ordinals 0 to 2; active version 1"},
		{"zones are removed from a set without claims", func() *v1alpha1.ExtendedStatefulSet {
			set := fixture.Plain()
			set.Spec.Zones = []string{"a", "b"}
			return set
		}, func(s *stage) {
			s.rest()
			s.floor = 3
			s.zones()
			s.until("db-v1-0 is Ready")
			s.steps(2)
		}, "= Stable, version 1, 3 Ready; db-v1 ordinals 0 to 2; active version 1"},
		{"a zone is replaced by another", func() *v1alpha1.ExtendedStatefulSet {
			set := fixture.Plain()
			set.Spec.Zones = []string{"a"}
			return set
		}, func(s *stage) {
			s.rest()
			s.floor = 3
			s.zones("b")
			s.until("db-z1-v1-0 is Ready")
			s.steps(2)
		}, "= Stable, version 1, 3 Ready; db-z1-v1 ordinals 0 to 2; active version 1"},
	} {
		t.Run(h.name, func(t *testing.T) { h.check(t) })
	}
}
