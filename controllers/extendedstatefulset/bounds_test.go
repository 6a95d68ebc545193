package extendedstatefulset

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/observe"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/spec"
)

// allocated returns the number of bytes that f allocates, including freed memory.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// TestManyMoreReplicasThanThereMayBe verifies that an object above the limit of replicas costs little
// memory, and that its running pods are not scaled up to its replicas or down to the limit. Such
// objects exist because they can be older than the limit, and because /scale bypasses the webhook.
func TestManyMoreReplicasThanThereMayBe(t *testing.T) {
	const little = 16 << 20
	for _, row := range []struct {
		name string
		set  func() *v1alpha1.ExtendedStatefulSet
		more func(*v1alpha1.ExtendedStatefulSet)
		want string
	}{
		{"without volumes", fixture.Plain, func(*v1alpha1.ExtendedStatefulSet) {}, "spec.template.spec.replicas"},
		{"with volumes", fixture.Volumes, func(*v1alpha1.ExtendedStatefulSet) {}, "spec.template.spec.replicas"},
		{"in zones", func() *v1alpha1.ExtendedStatefulSet { return fixture.Zoned(2, "a", "b") }, func(*v1alpha1.ExtendedStatefulSet) {}, "spec.template.spec.replicas"},
		{"during an upgrade", fixture.Volumes, func(set *v1alpha1.ExtendedStatefulSet) {
			set.Spec.Template.Spec.Template.Spec.Containers[0].Image = "two"
		}, "spec.template.spec.replicas"},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := newStage(t, row.set())
			s.rest()
			before, replicas := s.children(), *s.set().Spec.Template.Spec.Replicas
			s.change("more replicas than allowed", func(set *v1alpha1.ExtendedStatefulSet) {
				set.Spec.Template.Spec.Replicas = ptr.To[int32](math.MaxInt32)
				row.more(set)
			})
			if used := allocated(func() { s.steps(3) }); used > little {
				t.Errorf("three passes allocate %d MiB", used>>20)
			}
			now := s.children()
			for i := range now {
				if len(now) != len(before) || now[i].ResourceVersion != before[i].ResourceVersion {
					s.Fatal(t, "the operator wrote StatefulSets")
				}
			}
			for _, kind := range []string{v1alpha1.ConditionAvailable, v1alpha1.ConditionProgressing} {
				c := meta.FindStatusCondition(s.set().Status.Conditions, kind)
				if c.Reason != v1alpha1.ReasonInvalidSpec || !strings.Contains(c.Message, row.want) || !strings.Contains(c.Message, "take fewer replicas") {
					s.Fatal(t, "condition: "+c.Reason+", "+c.Message)
				}
			}
			s.scale(replicas)
			if set := s.rest(); set.Status.Phase != v1alpha1.PhaseStable || int(set.Status.ReadyReplicas) != len(s.pods()) {
				s.Fatal(t, "the set did not recover")
			}
		})
	}
}

// TestAStatefulSetWithManyMoreReplicasThanThereMayBe verifies that replicas which another client set on
// a StatefulSet cost little memory too.
func TestAStatefulSetWithManyMoreReplicasThanThereMayBe(t *testing.T) {
	s := newStage(t, fixture.Volumes())
	s.rest()
	s.edit("db-v1", func(c *appsv1.StatefulSet) { c.Spec.Replicas = ptr.To[int32](math.MaxInt32) })
	if used := allocated(func() { s.steps(3) }); used > 16<<20 {
		t.Errorf("three passes allocate %d MiB", used>>20)
	}
	if end := s.rest(); end.Status.Phase != v1alpha1.PhaseStable || *s.children()[0].Spec.Replicas != 3 {
		s.Fatal(t, "the edit was not reverted")
	}
}

// TestALargeSetComesInParts verifies that each pass reads a limited number of names, and that a large
// set is complete after several passes.
func TestALargeSetComesInParts(t *testing.T) {
	const replicas = 2*observe.NamesAtOnce + 50
	s := newStage(t, fixture.WithClaims(fixture.FakeSet(replicas)))
	counted := &counter{Reader: s.Cluster}
	s.Reader.Live = counted
	for range 8 {
		counted.asked = 0
		s.steps(1)
		if counted.asked > 3*observe.NamesAtOnce {
			s.Fatal(t, fmt.Sprintf("a pass sends %d requests", counted.asked))
		}
	}
	if n := *s.children()[0].Spec.Replicas; n != replicas {
		t.Errorf("got %d replicas", n)
	}
	if n := len(s.claims); n != replicas {
		t.Errorf("got %d claims", n)
	}
	s.scale(0)
	s.steps(2)
	s.scale(replicas)
	s.steps(1)
	if n := *s.children()[0].Spec.Replicas; n == 0 || n > observe.NamesAtOnce {
		t.Errorf("%d ordinals were assigned in one pass before all their pods were checked", n)
	}
	s.steps(4)
	if n := *s.children()[0].Spec.Replicas; n != replicas {
		t.Errorf("got %d replicas after the scale-up", n)
	}
}

// counter counts the reads of single objects.
type counter struct {
	client.Reader
	asked int
}

func (c *counter) Get(ctx context.Context, key client.ObjectKey, into client.Object, opts ...client.GetOption) error {
	c.asked++
	return c.Reader.Get(ctx, key, into, opts...)
}

// TestZonesThatWereEverNamed verifies the limit of zones in the status, which keeps the index of each
// zone that was ever named.
func TestZonesThatWereEverNamed(t *testing.T) {
	s := newStage(t, fixture.Zoned(1, "a"))
	s.rest()
	s.change("many zones in the status", func(set *v1alpha1.ExtendedStatefulSet) {
		for i := len(set.Status.Zones); i < spec.MaxZonesEver; i++ {
			set.Status.Zones = append(set.Status.Zones, v1alpha1.ZoneStatus{Name: fmt.Sprintf("z%d", i), Index: int32(i)})
		}
	})
	s.zones("a", "z7")
	s.rest()
	s.zones("a", "another")
	s.steps(3)
	c := meta.FindStatusCondition(s.set().Status.Conditions, v1alpha1.ConditionAvailable)
	if c.Reason != v1alpha1.ReasonInvalidSpec || !strings.Contains(c.Message, "257 zones would have been used over time, and at most 256 are allowed; reuse earlier zones") {
		s.Fatal(t, "condition: "+c.Message)
	}
	if n := len(s.set().Status.Zones); n != spec.MaxZonesEver {
		t.Errorf("got %d zones in the status", n)
	}
}
