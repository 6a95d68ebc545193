package simulate_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/simulate"
)

// change changes a StatefulSet as the operator or another client does.
func change(t *testing.T, s *simulate.Simulation, name string, f func(*appsv1.StatefulSet)) {
	t.Helper()
	var set appsv1.StatefulSet
	if err := s.Get(t.Context(), client.ObjectKey{Namespace: key.Namespace, Name: name}, &set); err != nil {
		t.Fatal(err)
	}
	f(&set)
	set.Generation++
	s.Put(&set)
}

// moves lets all except the operator act until nothing changes.
func moves(t *testing.T, s *simulate.Simulation) {
	t.Helper()
	for range 100 {
		all := s.Moves()
		if len(all) == 0 {
			return
		}
		for _, move := range all {
			move()
		}
	}
	t.Fatalf("it does not come to rest: %q", s.Story[max(0, len(s.Story)-20):])
}

const marked = "marked"

func mark(set *appsv1.StatefulSet) {
	metav1.SetMetaDataAnnotation(&set.Spec.Template.ObjectMeta, marked, "yes")
}

func TestTheStrategyOfAStatefulSet(t *testing.T) {
	rolling := func(r appsv1.RollingUpdateStatefulSetStrategy) appsv1.StatefulSetUpdateStrategy {
		return appsv1.StatefulSetUpdateStrategy{Type: appsv1.RollingUpdateStatefulSetStrategyType, RollingUpdate: &r}
	}
	for _, row := range []struct {
		name     string
		strategy appsv1.StatefulSetUpdateStrategy
		want     []string // pods with the new template
		floor    int
	}{
		{"no strategy", appsv1.StatefulSetUpdateStrategy{}, []string{"shop-v1-0", "shop-v1-1", "shop-v1-2"}, 2},
		{"OnDelete", appsv1.StatefulSetUpdateStrategy{Type: appsv1.OnDeleteStatefulSetStrategyType}, nil, 3},
		{"a partition", rolling(appsv1.RollingUpdateStatefulSetStrategy{Partition: ptr.To[int32](1)}), []string{"shop-v1-1", "shop-v1-2"}, 2},
		{"two unavailable pods", rolling(appsv1.RollingUpdateStatefulSetStrategy{MaxUnavailable: ptr.To(intstr.FromInt32(2))}), []string{"shop-v1-0", "shop-v1-1", "shop-v1-2"}, 1},
		{"half of the pods unavailable, rounded down", rolling(appsv1.RollingUpdateStatefulSetStrategy{MaxUnavailable: ptr.To(intstr.FromString("50%"))}), []string{"shop-v1-0", "shop-v1-1", "shop-v1-2"}, 2},
	} {
		t.Run(row.name, func(t *testing.T) {
			set := fixture.Volumes()
			set.Spec.Template.Spec.UpdateStrategy = row.strategy
			s := started(t, set)
			least := fewest(t, s.Cluster)
			change(t, s, "shop-v1", mark)
			moves(t, s)
			pods := ready(t, s.Cluster)
			var got []string
			for _, name := range slices.Sorted(maps.Keys(pods)) {
				if pods[name].Annotations[marked] != "" {
					got = append(got, name)
				}
			}
			if !slices.Equal(got, row.want) || len(pods) != 3 || *least != row.floor {
				t.Errorf("%q of %d pods have the new template, and at least %d were Ready", got, len(pods), *least)
			}
			s.Delete(pods["shop-v1-0"])
			moves(t, s)
			has := ready(t, s.Cluster)["shop-v1-0"].Annotations[marked] != ""
			if want := !strings.Contains(row.name, "partition"); has != want {
				t.Errorf("a recreated pod has the new template: %t", has)
			}
		})
	}
}

// TestARefusedPod checks that a refused pod is not created again and again.
func TestARefusedPod(t *testing.T) {
	s := started(t, fixture.Volumes())
	edit(t, s.Cluster, image("two"))
	for range 1000 {
		if ready(t, s.Cluster)["shop-v2-2"] != nil {
			break
		}
		s.Look()
		s.Pass()
		for _, move := range s.Moves() {
			move()
		}
		s.Now = s.Now.Add(1)
	}
	change(t, s, "shop-v1", func(c *appsv1.StatefulSet) { c.Spec.Replicas = ptr.To[int32](3) })
	moves(t, s)
	const refused = "    shop-v1-2 is refused: "
	has := func(line string) bool { return strings.HasPrefix(line, refused) }
	if n := len(slices.DeleteFunc(slices.Clone(s.Story), func(line string) bool { return !has(line) })); n != 1 {
		t.Errorf("the pod is refused %d times", n)
	}
	s.Remove(ready(t, s.Cluster)["shop-v2-2"])
	change(t, s, "shop-v2", func(c *appsv1.StatefulSet) { c.Spec.Replicas = ptr.To[int32](0) })
	moves(t, s)
	if ready(t, s.Cluster)["shop-v1-2"] == nil {
		t.Error("the pod is not created after the other one is gone")
	}
}
