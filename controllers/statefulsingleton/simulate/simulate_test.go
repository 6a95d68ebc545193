package simulate

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation/objects"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/spec"
)

var shop = types.NamespacedName{Namespace: "prod", Name: "shop"}

// newObject returns a StatefulSingleton that selects the pods of newTemplate.
func newObject() *v1.StatefulSingleton {
	return spec.WithDefaults(&v1.StatefulSingleton{ObjectMeta: metav1.ObjectMeta{Namespace: shop.Namespace, Name: shop.Name},
		Spec: v1.StatefulSingletonSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "shop"}}, Containers: []string{"app"}}})
}

// newTemplate returns the template of a pod with two containers.
func newTemplate(app, image string) corev1.PodTemplateSpec {
	p := fixture.Pod(fixture.Container("app").WithCommand("serve").WithImage(image), fixture.Container("log").WithCommand("tail"))
	return corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": app}}, Spec: p.Spec}
}

func newDeployment(name string, replicas int32) *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: shop.Namespace, Name: name}, Spec: appsv1.DeploymentSpec{
		Replicas: &replicas, Template: newTemplate(name, "one"), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}},
		Strategy: appsv1.DeploymentStrategy{Type: appsv1.RollingUpdateDeploymentStrategyType, RollingUpdate: &appsv1.RollingUpdateDeployment{
			MaxSurge: ptr.To(intstr.FromInt32(1)), MaxUnavailable: ptr.To(intstr.FromInt32(0))}}}}
}

func newStatefulSet() *appsv1.StatefulSet {
	return &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: shop.Namespace, Name: "shop"}, Spec: appsv1.StatefulSetSpec{
		Replicas: ptr.To(int32(1)), Template: newTemplate("shop", "one"), ServiceName: "shop"}, Status: appsv1.StatefulSetStatus{ObservedGeneration: 1, UpdateRevision: "shop-abc", Replicas: 1}}
}

// newCluster returns a cluster with two Nodes and these objects.
func newCluster(all ...client.Object) *simulation.Cluster {
	c := simulation.New(fixture.Noon)
	for _, name := range []string{"east", "west"} {
		c.Put(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{
			{Type: corev1.NodeMemoryPressure, Status: corev1.ConditionFalse}, {Type: corev1.NodeReady, Status: corev1.ConditionTrue}}}})
	}
	for _, obj := range all {
		c.Put(obj)
	}
	return c
}

const patience = time.Minute

// settle runs an operator until nothing moves.
func settle(t *testing.T, c *simulation.Cluster, o simulation.Operator) {
	t.Helper()
	if !simulation.Run(c, o, patience) {
		t.Fatalf("the simulation does not come to rest:\n%s", tail(c))
	}
}

func tail(c *simulation.Cluster) string {
	return strings.Join(c.Story[max(0, len(c.Story)-60):], "\n")
}

func present(c *simulation.Cluster) *v1.StatefulSingleton {
	o, _ := c.All[objects.Key{Kind: "StatefulSingleton", Namespace: shop.Namespace, Name: shop.Name}].(*v1.StatefulSingleton)
	return o
}

// setImage changes the image of a Deployment or StatefulSet as a user does.
func setImage(c *simulation.Cluster, image string) {
	for _, d := range Every[appsv1.Deployment](c) {
		if d.Name == "shop" {
			Edit(c, d, func(d *appsv1.Deployment) {
				d.Spec.Template.Spec.Containers[0].Image = image
				d.Generation++
			})
		}
	}
	for _, set := range Every[appsv1.StatefulSet](c) {
		Edit(c, set, func(set *appsv1.StatefulSet) {
			set.Spec.Template.Spec.Containers[0].Image = image
			set.Generation++
		})
	}
}

// roles returns the pods of the object with their images and roles.
func roles(c *simulation.Cluster) (found []string) {
	for _, p := range Every[corev1.Pod](c) {
		if kind := (Kind{}); kind.Owns(present(c), p) {
			found = append(found, p.Name+" "+p.Spec.Containers[0].Image+" "+kind.Role(present(c), p))
		}
	}
	return found
}

// copied returns a cluster with the same objects. Names that it creates differ from those of the first one.
func copied(c *simulation.Cluster) *simulation.Cluster {
	next := simulation.New(c.Now.Add(time.Minute))
	for i := range 200 {
		filler := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("filler-", i)}}
		next.Put(filler)
		delete(next.All, objects.KeyOf(filler))
	}
	for _, key := range slices.SortedFunc(maps.Keys(c.All), func(a, b objects.Key) int { return strings.Compare(a.Kind+a.Name, b.Kind+b.Name) }) {
		next.Put(c.All[key])
	}
	return next
}

// asReal changes the statuses of pods to those that real kubelets report.
func asReal(c *simulation.Cluster) {
	for _, p := range Every[corev1.Pod](c) {
		Edit(c, p, func(p *corev1.Pod) {
			p.Status.HostIP, p.Status.QOSClass = "10.0.0.1", corev1.PodQOSBurstable
			for i := range p.Status.Conditions {
				cond := &p.Status.Conditions[i]
				cond.ObservedGeneration = 0
				if cond.Type == corev1.PodReady && cond.Status == corev1.ConditionFalse {
					cond.Reason = "ReadinessGatesNotReady"
				}
			}
			for i := range p.Status.ContainerStatuses {
				st := &p.Status.ContainerStatuses[i]
				st.ContainerID, st.ImageID, st.RestartCount = "containerd://"+p.Name+st.Name, "sha256:1", int32(i)
			}
			for i := range p.Status.InitContainerStatuses {
				if st := &p.Status.InitContainerStatuses[i]; st.State.Terminated != nil {
					st.State.Terminated.ExitCode, st.State.Terminated.Reason = 0, "Completed"
				}
			}
		})
	}
}

// cases are objects and the owners of their pods, and the pods after a change of the image.
var cases = []struct {
	name   string
	object func(*v1.StatefulSingleton)
	owner  client.Object
	before []string
	after  []string
}{
	{"a Deployment", nil, newDeployment("shop", 1), []string{"shop-1-a one holder"}, []string{"shop-2-b two holder"}},
	{"a Deployment with a standby", nil, newDeployment("shop", 2), []string{"shop-1-a one holder", "shop-1-b one waiting"},
		[]string{"shop-1-b one waiting", "shop-2-c two holder", "shop-2-e two waiting"}}, // maxUnavailable 0 blocks the rest
	{"gate mode Init", func(s *v1.StatefulSingleton) { s.Spec.GateMode = v1.GateInit }, newDeployment("shop", 1), []string{"shop-1-a one holder"}, []string{"shop-2-b two holder"}},
	{"fencing by a Lease", func(s *v1.StatefulSingleton) { s.Spec.Fencing = &v1.Fencing{Mode: v1.FencingLease} }, newDeployment("shop", 1),
		[]string{"shop-1-a one holder"}, []string{"shop-2-b two holder"}},
	{"a StatefulSet", nil, newStatefulSet(), []string{"shop-0 one holder"}, []string{"shop-0 two holder"}},
}

// run runs an object to rest.
func run(t *testing.T, change func(*v1.StatefulSingleton), owner client.Object) (*simulation.Cluster, simulation.Operator) {
	t.Helper()
	s := newObject()
	if change != nil {
		change(s)
	}
	c := newCluster(s, objects.Clone(owner), newDeployment("other", 2))
	o := Kind{}.Start(c, shop)
	settle(t, c, o)
	return c, o
}

func TestAChangedImage(t *testing.T) {
	for _, r := range cases {
		t.Run(r.name, func(t *testing.T) {
			c, o := run(t, r.object, r.owner)
			if got := roles(c); !slices.Equal(got, r.before) {
				t.Fatalf("pods %q, want %q:\n%s", got, r.before, tail(c))
			}
			epoch := present(c).Status.Holder.Epoch
			setImage(c, "two")
			settle(t, c, o)
			if got := roles(c); !slices.Equal(got, r.after) {
				t.Errorf("pods %q, want %q:\n%s", got, r.after, tail(c))
			}
			if got := present(c).Status.Holder.Epoch; strings.HasSuffix(r.after[0], "two holder") && got != epoch+1 {
				t.Errorf("the epoch is %d, and was %d", got, epoch)
			}
		})
	}
}

// TestAPresentObject checks that a simulation of existing objects at rest changes nothing, and then makes the same
// change as the simulation that has made the objects.
func TestAPresentObject(t *testing.T) {
	for _, r := range cases {
		t.Run(r.name, func(t *testing.T) {
			before, _ := run(t, r.object, r.owner)
			c := copied(before)
			asReal(c)
			o := Kind{}.Start(c, shop)
			c.Changed = func(_ *action.Action, was, is client.Object) {
				if present := is; present == nil || objects.KindOf(present) != "Lease" { // its holder renews it
					t.Errorf("%T changes to %v", was, is)
				}
			}
			if settle(t, c, o); c.Writes() > 0 || len(c.Story) > 0 {
				t.Fatalf("%d writes at rest:\n%s", c.Writes(), tail(c))
			}
			c.Changed = nil
			setImage(c, "two")
			settle(t, c, o)
			for _, p := range roles(c) {
				if isNew := strings.Contains(p, " two "); !isNew && !slices.Contains(r.after, p) {
					t.Errorf("%s remains:\n%s", p, tail(c))
				}
			}
			if got := roles(c); len(got) != len(r.after) {
				t.Errorf("pods %q, want %q:\n%s", got, r.after, tail(c))
			}
		})
	}
}

// TestForeignPodsStay checks that owners and pods that the object does not select do not change.
func TestForeignPodsStay(t *testing.T) {
	c, _ := run(t, nil, newDeployment("shop", 1))
	c = copied(c)
	foreign := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: shop.Namespace, Name: "other-0", Labels: map[string]string{"app": "other"}}, Spec: newTemplate("other", "one").Spec}
	foreign.Spec.NodeName = "east"
	c.Put(foreign)
	c.Delete(foreign)
	before := maps.Clone(c.All)
	settle(t, c, Kind{}.Start(c, shop))
	if !maps.Equal(before, c.All) || len(c.Story) > 0 {
		t.Errorf("objects change:\n%s", tail(c))
	}
	Edit(c, foreign, func(p *corev1.Pod) { p.Labels["app"] = "shop" })
	s := New(c, shop)
	if len(s.Moves()) == 0 {
		t.Error("a terminating pod that the object selects does not end")
	}
}

// TestReads checks that the lists have everything in the namespace of the object.
func TestReads(t *testing.T) {
	var kinds []string
	for _, l := range (Kind{}).Reads(shop) {
		options := (&client.ListOptions{}).ApplyOptions(l.Options)
		kind := objects.KindOf(l.List)
		if isClusterScoped := kind == "Node" || kind == "Namespace"; (options.Namespace == shop.Namespace) == isClusterScoped {
			t.Errorf("%s is read in namespace %q", kind, options.Namespace)
		}
		kinds = append(kinds, kind)
	}
	for _, kind := range []string{"StatefulSingleton", "Pod", "Deployment", "ReplicaSet", "StatefulSet", "Lease", "Node"} {
		if !slices.Contains(kinds, kind) {
			t.Errorf("%s is not read", kind)
		}
	}
}
