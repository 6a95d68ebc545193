package simulate_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation/kubelet"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/simulate"
)

const patience = 15 * time.Minute

var key = types.NamespacedName{Namespace: "prod", Name: "shop"}

// newCluster returns a cluster with a set of three.
func newCluster() *simulation.Cluster {
	c := simulation.New(fixture.Noon)
	for _, n := range []string{"n1", "n2"} {
		kubelet.Turn(c, n, true)
	}
	set := fixture.Set(key.Name)
	set.Namespace, set.UID = key.Namespace, ""
	c.Put(&set.StatefulCluster)
	return c
}

// run runs the operator of a cluster until the set is at rest.
func run(t *testing.T, c *simulation.Cluster, o simulation.Operator) {
	t.Helper()
	if !simulation.Run(c, o, patience) {
		t.Fatalf("the set does not come to rest: %q", c.Story)
	}
}

func setOf(t *testing.T, c *simulation.Cluster) *v1alpha1.StatefulCluster {
	t.Helper()
	set := simulate.Kind{}.New().(*v1alpha1.StatefulCluster)
	if err := c.Get(t.Context(), key, set); err != nil {
		t.Fatal(err)
	}
	return set
}

func edit(t *testing.T, c *simulation.Cluster, change func(*corev1.Container)) {
	t.Helper()
	set := setOf(t, c)
	change(&set.Spec.Template.Spec.Containers[0])
	set.Generation++
	c.Put(set)
}

// membersOf returns the Ready members by name.
func membersOf(t *testing.T, c *simulation.Cluster) map[string]*corev1.Pod {
	t.Helper()
	set, members := setOf(t, c), map[string]*corev1.Pod{}
	for _, pod := range kubelet.Pods(c) {
		if (simulate.Kind{}).Owns(set, pod) && podstate.Ready(pod) && !podstate.Terminating(pod) {
			members[pod.Name] = pod
		}
	}
	return members
}

// copyOf returns a cluster with the set, and the objects that are read for it.
func copyOf(t *testing.T, c *simulation.Cluster) *simulation.Cluster {
	t.Helper()
	next := simulation.New(c.Now)
	next.Put(setOf(t, c))
	for _, listing := range (simulate.Kind{}).Reads(key) {
		if err := c.List(t.Context(), listing.List, listing.Options...); err != nil {
			t.Fatal(err)
		}
		items, err := meta.ExtractList(listing.List)
		if err != nil {
			t.Fatal(err)
		}
		for _, item := range items {
			next.Put(item.(client.Object))
		}
	}
	return next
}

// watchDown returns the max number of members that are not available at the same time from now on.
func watchDown(t *testing.T, c *simulation.Cluster) *int {
	most, next := 0, c.Changed
	c.Changed = func(act *action.Action, was, is client.Object) {
		next(act, was, is)
		down := 3 - len(membersOf(t, c))
		for _, pod := range membersOf(t, c) {
			if pod.Annotations[v1alpha1.AnnotationInPlace] != "" {
				down++
			}
		}
		most = max(most, down)
	}
	return &most
}

func TestAnImageIsChangedInPlace(t *testing.T) {
	c := newCluster()
	o := simulate.Kind{}.Start(c, key)
	run(t, c, o)
	before := membersOf(t, c)
	for _, name := range []string{"shop-new1", "shop-new2", "shop-new3"} {
		if before[name] == nil {
			t.Errorf("%s is not among the members %v", name, before)
		}
	}
	down := watchDown(t, c)
	edit(t, c, func(main *corev1.Container) { main.Image = "two" })
	run(t, c, o)
	for name, pod := range membersOf(t, c) {
		if before[name] == nil || before[name].UID != pod.UID || pod.Status.ContainerStatuses[0].Image != "two" {
			t.Errorf("%s with UID %s runs %s", name, pod.UID, pod.Status.ContainerStatuses[0].Image)
		}
	}
	if n := len(membersOf(t, c)); n != 3 || *down != 1 {
		t.Errorf("%d members, at most %d of them were down", n, *down)
	}
}

func TestACommandIsChangedByRecreatingPods(t *testing.T) {
	c := newCluster()
	o := simulate.Kind{}.Start(c, key)
	run(t, c, o)
	before := membersOf(t, c)
	down := watchDown(t, c)
	edit(t, c, serve)
	run(t, c, o)
	checkServes(t, c, before)
	if *down != 1 {
		t.Errorf("at most %d members were down, want 1", *down)
	}
}

func serve(main *corev1.Container) { main.Command = []string{"serve"} }

// checkServes checks that all members were recreated under their names, with the new command.
func checkServes(t *testing.T, c *simulation.Cluster, before map[string]*corev1.Pod) {
	t.Helper()
	after := membersOf(t, c)
	for name, pod := range after {
		if before[name] == nil || before[name].UID == pod.UID || !slices.Equal(pod.Spec.Containers[0].Command, []string{"serve"}) {
			t.Errorf("%s with UID %s runs %q", name, pod.UID, pod.Spec.Containers[0].Command)
		}
	}
	if len(after) != 3 || len(setOf(t, c).Status.Lost) > 0 {
		t.Errorf("%d members, lost are %v", len(after), setOf(t, c).Status.Lost)
	}
}

// A plan starts from objects that exist.
func TestASetAtRestStaysAsItIs(t *testing.T) {
	first := newCluster()
	run(t, first, simulate.Kind{}.Start(first, key))
	edit(t, first, func(main *corev1.Container) { main.Image = "two" })
	run(t, first, simulate.Kind{}.Start(first, key))
	c := copyOf(t, first)
	c.Changed = func(_ *action.Action, was, is client.Object) { t.Errorf("%v was changed to %v", was, is) }
	run(t, c, simulate.Kind{}.Start(c, key))
	if c.Writes() != 0 || len(c.Story) > 0 {
		t.Errorf("%d writes in %q", c.Writes(), c.Story)
	}
}

// A plan starts from an update that is in progress.
func TestAnUpdateThatIsInProgressIsCompleted(t *testing.T) {
	atRest := newCluster()
	run(t, atRest, simulate.Kind{}.Start(atRest, key))
	before := membersOf(t, atRest)
	for rounds := range 20 {
		t.Run(fmt.Sprintf("after %d rounds", rounds), func(t *testing.T) {
			first := copyOf(t, atRest)
			edit(t, first, serve)
			o := simulate.Kind{}.Start(first, key)
			for range rounds {
				o.Look()
				o.Pass()
				for _, move := range o.Moves() {
					move()
				}
				first.Now = first.Now.Add(time.Second)
			}
			c := copyOf(t, first)
			run(t, c, simulate.Kind{}.Start(c, key))
			checkServes(t, c, before)
		})
	}
}

// The operator reads the deletion of a pod from its watch.
func TestADeletedMemberIsReplaced(t *testing.T) {
	c := newCluster()
	o := simulate.Kind{}.Start(c, key)
	run(t, c, o)
	victim := membersOf(t, c)["shop-new2"]
	c.DeleteNow(victim)
	run(t, c, o)
	lost := setOf(t, c).Status.Lost
	if len(lost) != 1 || lost[0].Name != victim.Name || lost[0].Reason != v1alpha1.LossDeleted {
		t.Errorf("status.lost is %v", lost)
	}
	if members := membersOf(t, c); len(members) != 3 || members["shop-new4"] == nil {
		t.Errorf("members are %v", members)
	}
}

func TestOtherPodsAreNotOwned(t *testing.T) {
	c := newCluster()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: "shop-x", Labels: map[string]string{"app": "db"}}}
	if (simulate.Kind{}).Owns(setOf(t, c), pod) {
		t.Error("a pod without an owner is a member")
	}
	if role := (simulate.Kind{}).Role(setOf(t, c), pod); role != "" {
		t.Errorf("the role is %q", role)
	}
}

// Other objects in the cluster are not touched.
func TestANamesakeInAnotherNamespaceIsNotTouched(t *testing.T) {
	c := newCluster()
	other := fixture.Set(key.Name)
	other.UID = ""
	c.Put(&other.StatefulCluster)
	run(t, c, simulate.Kind{}.Start(c, key))
	var pods corev1.PodList
	if err := c.List(context.Background(), &pods, client.InNamespace(other.Namespace)); err != nil || len(pods.Items) > 0 {
		t.Errorf("%d pods in namespace %s, %v", len(pods.Items), other.Namespace, err)
	}
}
