package simulate_test

import (
	"maps"
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

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/simulate"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation/kubelet"
)

const patience = 10 * time.Minute

var key = types.NamespacedName{Namespace: "prod", Name: "shop"}

// newCluster returns a cluster with a set named by key.
func newCluster(set *v1alpha1.ExtendedStatefulSet) *simulation.Cluster {
	c := simulation.New(fixture.Noon)
	for _, n := range []string{"n1", "n2"} {
		kubelet.Turn(c, n, true)
	}
	set.Namespace, set.Name = key.Namespace, key.Name
	c.Put(set)
	return c
}

// started returns the cluster and the operator of a set that has come to rest.
func started(t *testing.T, set *v1alpha1.ExtendedStatefulSet) *simulate.Simulation {
	t.Helper()
	s := simulate.Start(newCluster(set), key)
	settle(t, s)
	return s
}

// settle runs the operator of a cluster until the set is at rest.
func settle(t *testing.T, s *simulate.Simulation) {
	t.Helper()
	if !simulation.Run(s.Cluster, s, patience) {
		t.Fatalf("the set does not come to rest:\n%s", strings.Join(s.Story[max(0, len(s.Story)-50):], "\n"))
	}
}

func setOf(t *testing.T, c *simulation.Cluster) *v1alpha1.ExtendedStatefulSet {
	t.Helper()
	set := simulate.Kind{}.New().(*v1alpha1.ExtendedStatefulSet)
	if err := c.Get(t.Context(), key, set); err != nil {
		t.Fatal(err)
	}
	return set
}

// edit changes the set as a user.
func edit(t *testing.T, c *simulation.Cluster, change func(*v1alpha1.ExtendedStatefulSet)) {
	t.Helper()
	set := setOf(t, c)
	change(set)
	set.Generation++
	c.Put(set)
}

func image(name string) func(*v1alpha1.ExtendedStatefulSet) {
	return func(set *v1alpha1.ExtendedStatefulSet) {
		set.Spec.Template.Spec.Template.Spec.Containers[0].Image = name
	}
}

// ready returns the Ready pods of the set by name.
func ready(t *testing.T, c *simulation.Cluster) map[string]*corev1.Pod {
	t.Helper()
	set, pods := setOf(t, c), map[string]*corev1.Pod{}
	for _, pod := range kubelet.Pods(c) {
		if (simulate.Kind{}).Owns(set, pod) && podstate.Ready(pod) && !podstate.Terminating(pod) {
			pods[pod.Name] = pod
		}
	}
	return pods
}

// hasReady checks the names of the Ready pods.
func hasReady(t *testing.T, c *simulation.Cluster, want ...string) {
	t.Helper()
	if got := slices.Sorted(maps.Keys(ready(t, c))); !slices.Equal(got, want) {
		t.Errorf("the Ready pods are %q, want %q", got, want)
	}
}

// fewest returns the min number of Ready pods from now on.
func fewest(t *testing.T, c *simulation.Cluster) *int {
	t.Helper()
	least := len(ready(t, c))
	c.Changed = func(*action.Action, client.Object, client.Object) { least = min(least, len(ready(t, c))) }
	return &least
}

// live returns a cluster with the set and the objects that are read for it, with the UIDs and the names of
// revisions that a real cluster has.
func live(t *testing.T, c *simulation.Cluster) *simulation.Cluster {
	t.Helper()
	all := []client.Object{setOf(t, c)}
	for _, listing := range (simulate.Kind{}).Reads(key) {
		if err := c.List(t.Context(), listing.List, listing.Options...); err != nil {
			t.Fatal(err)
		}
		items, err := meta.ExtractList(listing.List)
		if err != nil {
			t.Fatal(err)
		}
		for _, item := range items {
			all = append(all, item.(client.Object))
		}
	}
	next := simulation.New(c.Now)
	for _, obj := range all {
		makeReal(obj)
		next.Put(obj)
	}
	return next
}

const real = "real-"

func makeReal(obj client.Object) {
	obj.SetUID(real + obj.GetUID())
	owners := obj.GetOwnerReferences()
	for i := range owners {
		owners[i].UID = real + owners[i].UID
	}
	obj.SetOwnerReferences(owners)
	switch obj := obj.(type) {
	case *corev1.Pod:
		obj.Labels[appsv1.ControllerRevisionHashLabelKey] = real + obj.Labels[appsv1.ControllerRevisionHashLabelKey]
	case *appsv1.ControllerRevision:
		obj.Name = real + obj.Name
	case *appsv1.StatefulSet:
		obj.Status.CurrentRevision, obj.Status.UpdateRevision = real+obj.Status.CurrentRevision, real+obj.Status.UpdateRevision
	}
}

func TestAnImageIsReplaced(t *testing.T) {
	for _, row := range []struct {
		name  string
		set   func() *v1alpha1.ExtendedStatefulSet
		floor int
	}{
		{"ordinal by ordinal, with claims", fixture.Volumes, 2},
		{"next to the old version, without claims", fixture.Plain, 3},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := started(t, row.set())
			hasReady(t, s.Cluster, "shop-v1-0", "shop-v1-1", "shop-v1-2")
			least := fewest(t, s.Cluster)
			edit(t, s.Cluster, image("two"))
			settle(t, s)
			hasReady(t, s.Cluster, "shop-v2-0", "shop-v2-1", "shop-v2-2")
			if *least != row.floor {
				t.Errorf("at least %d pods were Ready, want %d", *least, row.floor)
			}
			if set := setOf(t, s.Cluster); set.Status.Phase != v1alpha1.PhaseStable || set.Status.CurrentVersion != 2 {
				t.Errorf("the status is %+v", set.Status)
			}
		})
	}
}

func TestABadImageIsMarkedStale(t *testing.T) {
	s := started(t, fixture.Volumes())
	edit(t, s.Cluster, image(kubelet.BadImage))
	settle(t, s)
	hasReady(t, s.Cluster, "shop-v1-0", "shop-v1-1", "shop-v1-2")
	if set := setOf(t, s.Cluster); set.Status.Phase != v1alpha1.PhaseStale {
		t.Errorf("the phase is %s", set.Status.Phase)
	}
}

// TestStart checks that a start on existing objects changes nothing, and that an edit then has the same effect
// as without the start.
func TestStart(t *testing.T) {
	zoned := func() *v1alpha1.ExtendedStatefulSet { return fixture.Zoned(1, "a", "b", "c") }
	followed := func() *v1alpha1.ExtendedStatefulSet {
		set := fixture.Volumes()
		set.Spec.UpdateOnEnvChange = true
		return set
	}
	for _, row := range []struct {
		name string
		set  func() *v1alpha1.ExtendedStatefulSet
		live func(client.Object)
		want []string
	}{
		{"with claims", fixture.Volumes, nil, []string{"shop-v2-0", "shop-v2-1", "shop-v2-2"}},
		{"without claims", fixture.Plain, nil, []string{"shop-v2-0", "shop-v2-1", "shop-v2-2"}},
		{"in zones", zoned, nil, []string{"shop-z0-v2-0", "shop-z1-v2-0", "shop-z2-v2-0"}},
		{"with the number of replicas in the environment", fixture.Counted, nil, []string{"shop-v2-0", "shop-v2-1", "shop-v2-2"}},
		{"with stamps of configuration", followed, stamp, []string{"shop-v2-0", "shop-v2-1", "shop-v2-2"}},
		{"with other owners", fixture.Volumes, own, []string{"shop-v2-0", "shop-v2-1", "shop-v2-2"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			c := live(t, started(t, row.set()).Cluster)
			for _, obj := range c.All {
				if row.live != nil {
					row.live(obj)
				}
			}
			c.Changed = func(_ *action.Action, was, is client.Object) { t.Errorf("%T changed to %v", was, is) }
			s := simulate.Start(c, key)
			settle(t, s)
			if c.Changed = nil; c.Writes() > 0 || len(s.Moves()) > 0 || len(c.Story) > 0 {
				t.Fatalf("%d writes, %d moves: %q", c.Writes(), len(s.Moves()), c.Story)
			}
			edit(t, c, image("two"))
			settle(t, s)
			hasReady(t, c, row.want...)
		})
	}
}

// stamp adds the stamp of followed configuration, as the operator writes it.
func stamp(obj client.Object) {
	const hash = "0123456789abcdef"
	switch obj := obj.(type) {
	case *corev1.Pod:
		metav1.SetMetaDataAnnotation(&obj.ObjectMeta, v1alpha1.AnnotationConfigHash, hash)
	case *appsv1.StatefulSet:
		metav1.SetMetaDataAnnotation(&obj.ObjectMeta, v1alpha1.AnnotationConfigRecord, `{}`)
		metav1.SetMetaDataAnnotation(&obj.Spec.Template.ObjectMeta, v1alpha1.AnnotationConfigHash, hash)
		fixture.MarkApplied(obj)
	}
}

// own makes another object the owner of the set and of a Service.
func own(obj client.Object) {
	if obj.GetName() == key.Name || obj.GetName() == "peers" {
		yes := true
		owner := metav1.OwnerReference{APIVersion: "v1", Kind: "Release", Name: "shop", UID: "unread", Controller: &yes}
		if metav1.GetControllerOf(obj) == nil {
			obj.SetOwnerReferences([]metav1.OwnerReference{owner})
		}
	}
}

func TestOwns(t *testing.T) {
	c := started(t, fixture.Plain()).Cluster
	set, pod := setOf(t, c), ready(t, c)["shop-v1-0"]
	for _, row := range []struct {
		name string
		edit func(*corev1.Pod)
		want bool
	}{
		{"a pod", func(*corev1.Pod) {}, true},
		{"a pod of another version", func(p *corev1.Pod) { p.Name = "shop-v7-0" }, true},
		{"an orphaned pod", func(p *corev1.Pod) { p.OwnerReferences = nil }, true},
		{"a pod of a Job", func(p *corev1.Pod) { p.OwnerReferences[0].Kind = "Job" }, false},
		{"a pod with another name", func(p *corev1.Pod) { p.Name = "other" }, false},
		{"a pod of another set", func(p *corev1.Pod) { p.Labels[v1alpha1.LabelSet] = "other" }, false},
		{"a pod of another namespace", func(p *corev1.Pod) { p.Namespace = "other" }, false},
	} {
		p := pod.DeepCopy()
		row.edit(p)
		if got := (simulate.Kind{}).Owns(set, p); got != row.want {
			t.Errorf("%s: %t", row.name, got)
		}
	}
}

func TestRole(t *testing.T) {
	c := started(t, fixture.Zoned(1, "a", "b")).Cluster
	set, pods := setOf(t, c), ready(t, c)
	other := pods["shop-z0-v1-0"].DeepCopy()
	other.Labels[v1alpha1.LabelVersion] = "2"
	silent := set.DeepCopy()
	silent.Spec.Template.Spec.ServiceName = ""
	for _, row := range []struct {
		name string
		set  client.Object
		pod  *corev1.Pod
		want string
	}{
		{"a pod of the first zone", set, pods["shop-z0-v1-0"], "active"},
		{"a pod of another zone", set, pods["shop-z1-v1-0"], "active"},
		{"a pod of another version", set, other, ""},
		{"a set without a Service", silent, pods["shop-z0-v1-0"], ""},
	} {
		if got := (simulate.Kind{}).Role(row.set, row.pod); got != row.want {
			t.Errorf("%s: %q, want %q", row.name, got, row.want)
		}
	}
}
