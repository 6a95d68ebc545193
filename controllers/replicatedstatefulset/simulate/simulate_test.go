package simulate

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation/kubelet"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation/objects"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/fixture"
)

var _ simulation.Kind = Kind{}

// shop is the key of the set in these tests.
var shop = types.NamespacedName{Namespace: "prod", Name: "shop"}

// patience is longer than all pauses of a healthy set.
const patience = 2 * time.Minute

// clusterWith returns a cluster with five nodes, at rest with a set of the key shop.
func clusterWith(t *testing.T, set *v1alpha1.ReplicatedStatefulSet) *simulation.Cluster {
	t.Helper()
	c := simulation.New(fixture.Noon)
	for i := range 5 {
		kubelet.Turn(c, fmt.Sprintf("node-%d", i), true)
	}
	set.Namespace, set.Name = shop.Namespace, shop.Name
	c.Put(set)
	settle(t, c)
	return c
}

// settle starts an operator, and runs it to rest.
func settle(t *testing.T, c *simulation.Cluster) {
	t.Helper()
	if !simulation.Run(c, Kind{}.Start(c, shop), patience) {
		t.Fatalf("there is no rest:\n%s", strings.Join(c.Story[max(0, len(c.Story)-40):], "\n"))
	}
}

// setIn returns a copy of the set.
func setIn(t *testing.T, c *simulation.Cluster) *v1alpha1.ReplicatedStatefulSet {
	t.Helper()
	set := &v1alpha1.ReplicatedStatefulSet{}
	if err := c.Get(t.Context(), shop, set); err != nil {
		t.Fatal(err)
	}
	return set
}

// edit changes the spec of the set, as a user does.
func edit(t *testing.T, c *simulation.Cluster, change func(*v1alpha1.ReplicatedStatefulSet)) {
	t.Helper()
	set := setIn(t, c)
	change(set)
	set.Generation++
	c.Put(set)
}

// podsIn returns the pods of a cluster, by name.
func podsIn(c *simulation.Cluster) map[string]*corev1.Pod {
	pods := map[string]*corev1.Pod{}
	for _, obj := range c.All {
		if p, isPod := obj.(*corev1.Pod); isPod {
			pods[p.Name] = p
		}
	}
	return pods
}

// sets are sets that start in different ways.
func sets() map[string]*v1alpha1.ReplicatedStatefulSet {
	fenced := fixture.PostgreSQL(func(set *v1alpha1.ReplicatedStatefulSet) {
		set.Spec.Replicas = new(int32(3))
		set.Spec.Fencing = &v1alpha1.FencingPolicy{Mode: v1alpha1.FencingLease}
	})
	scaled := func(set *v1alpha1.ReplicatedStatefulSet) { set.Spec.Replicas = new(int32(3)) }
	beside := fixture.SetOf(3, 1)
	beside.Spec.Pod.Containers = append(beside.Spec.Pod.Containers, corev1.Container{Name: "beside", Image: "beside"})
	return map[string]*v1alpha1.ReplicatedStatefulSet{
		"own commands":            fixture.SetOf(3, 1),
		"two containers":          beside,
		"only primaries":          fixture.AllPrimary(fixture.SetOf(3, 3, "secondary", "promote", "demote")),
		"resources are in place":  fixture.InPlace(fixture.SetOf(3, 1)),
		"PostgreSQL":              fixture.PostgreSQL(scaled),
		"PostgreSQL with a Lease": fenced,
		"Redis":                   fixture.Redis(scaled),
		"etcd":                    fixture.Etcd(scaled),
		"Galera":                  fixture.MariaDBGalera(scaled),
		"RabbitMQ":                fixture.RabbitMQ(scaled),
	}
}

// copyOf returns a cluster with copies of all objects, and without the memory of processes.
func copyOf(c *simulation.Cluster) *simulation.Cluster {
	next := simulation.New(c.Now.Add(time.Hour))
	for _, obj := range c.All {
		next.Put(obj)
	}
	return next
}

// TestASimulationOfLiveObjects tests that a simulation of a healthy set makes no writes and moves no pods, and that a
// change of the image then replaces each pod once, and the primary last.
func TestASimulationOfLiveObjects(t *testing.T) {
	for name, set := range sets() {
		t.Run(name, func(t *testing.T) {
			c := copyOf(clusterWith(t, set))
			before, members := podsIn(c), setIn(t, c).Status.Members
			if len(before) != 3 || len(members.Primary)+len(members.Secondary) != 3 {
				t.Fatalf("there are %d pods, and members %+v", len(before), members)
			}
			changes := watch(c)
			settle(t, c)
			if len(*changes) > 0 || len(c.Story) > 0 {
				t.Fatalf("the changes are %q, and the story is\n%s", *changes, strings.Join(c.Story, "\n"))
			}
			edit(t, c, func(set *v1alpha1.ReplicatedStatefulSet) { set.Spec.Pod.Containers[0].Image = "two" })
			settle(t, c)
			replaced(t, before, podsIn(c))
			deleted := slices.DeleteFunc(*changes, func(line string) bool { return !strings.HasPrefix(line, "Pod - ") })
			if len(deleted) != 3 || len(members.Secondary) > 0 && deleted[2] != "Pod - "+members.Primary[0] {
				t.Errorf("the pods were deleted in the order %q; the primary was %q", deleted, members.Primary)
			}
			if now := setIn(t, c).Status.Members; len(now.Primary) != len(members.Primary) || len(now.Secondary) != len(members.Secondary) {
				t.Errorf("the members are %+v", now)
			}
			if story := strings.Join(c.Story, "\n"); strings.Contains(story, "and ends") {
				t.Errorf("an agent ended its container:\n%s", story)
			}
		})
	}
}

// replaced checks that all pods have the new image, and are not the same as before.
func replaced(t *testing.T, before, after map[string]*corev1.Pod) {
	t.Helper()
	for name, was := range before {
		if is := after[name]; is == nil || is.UID == was.UID || is.Spec.Containers[0].Image != "two" {
			t.Errorf("%s was not replaced", name)
		}
	}
	if len(after) != len(before) {
		t.Errorf("there are %d pods", len(after))
	}
}

// watch records all changes of objects other than Leases.
func watch(c *simulation.Cluster) *[]string {
	var changes []string
	c.Changed = func(_ *action.Action, was, is client.Object) {
		obj, what := is, "~"
		switch {
		case is == nil:
			obj, what = was, "-"
		case was == nil:
			what = "+"
		}
		if kind := objects.KindOf(obj); kind != "Lease" {
			changes = append(changes, kind+" "+what+" "+obj.GetName())
		}
	}
	return &changes
}

func TestWhoseAPodIs(t *testing.T) {
	set := named(shop)
	labels := map[string]string{v1alpha1.LabelApp: "shop", v1alpha1.LabelManaged: v1alpha1.True, v1alpha1.LabelRole: v1alpha1.RolePrimary}
	for _, row := range []struct {
		namespace, name string
		labels          map[string]string
		owned           bool
	}{
		{"prod", "rss-shop-0", labels, true},
		{"prod", "rss-shop-x", labels, false},
		{"prod", "rss-shop-0", nil, false},
		{"test", "rss-shop-0", labels, false},
	} {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: row.namespace, Name: row.name, Labels: row.labels}}
		if got := (Kind{}).Owns(set, p); got != row.owned {
			t.Errorf("%s/%s with labels %v: owned %t", row.namespace, row.name, row.labels, got)
		}
	}
	for role, want := range map[string]string{v1alpha1.RolePrimary: "primary", v1alpha1.RoleSecondary: "secondary", v1alpha1.RoleNone: "", "": ""} {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{v1alpha1.LabelRole: role}}}
		if got := (Kind{}).Role(set, p); got != want {
			t.Errorf("role %q of label %q", got, role)
		}
	}
}

// TestReadsCoverAllObjects tests that the lists contain all objects that a simulation creates.
func TestReadsCoverAllObjects(t *testing.T) {
	c := clusterWith(t, sets()["PostgreSQL with a Lease"])
	read := map[objects.Key]bool{{Kind: "ReplicatedStatefulSet", Namespace: shop.Namespace, Name: shop.Name}: true}
	for _, listing := range (Kind{}).Reads(shop) {
		if err := c.List(t.Context(), listing.List, listing.Options...); err != nil {
			t.Fatal(err)
		}
		items, err := meta.ExtractList(listing.List)
		if err != nil {
			t.Fatal(err)
		}
		for _, item := range items {
			read[objects.KeyOf(item.(client.Object))] = true
		}
	}
	for key := range c.All {
		if !read[key] {
			t.Errorf("%v is not read", key)
		}
	}
}

func TestASetOfTheAPIIsNew(t *testing.T) {
	if _, isSet := (Kind{}).New().(*v1alpha1.ReplicatedStatefulSet); !isSet {
		t.Error("the object is of another kind")
	}
	c := clusterWith(t, fixture.SetOf(3, 1))
	s := New(c, shop)
	if s.StatefulSet() == nil || s.Set() == nil || len(s.Pods()) != 3 {
		t.Error("the simulation does not find its objects")
	}
	if s.StatefulSet().Spec.UpdateStrategy.Type != appsv1.OnDeleteStatefulSetStrategyType {
		t.Error("the StatefulSet replaces pods without the operator")
	}
}
