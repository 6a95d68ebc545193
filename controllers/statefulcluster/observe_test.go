package statefulcluster

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/engine"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simtest/kubelet"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/observe"
)

// V4 A set is deleted and recreated under its name while no operator runs.
func TestV4ClaimsOfANamesakeSayWhyTheyStay(t *testing.T) {
	s := newStage(t, three())
	s.settle(2 * time.Second)
	old := s.members()
	for _, p := range old {
		s.DeleteNow(p)
	}
	s.DeleteNow(s.set())
	again := three()
	again.UID = ""
	s.Put(&again.StatefulCluster)
	s.restart()
	s.settle(2 * time.Second)
	for _, p := range old {
		var c corev1.PersistentVolumeClaim
		if err := s.Get(context.Background(), types.NamespacedName{Namespace: "ns", Name: "db-data-" + p.Labels[v1alpha1.LabelMember]}, &c); err != nil {
			t.Fatal(err)
		}
		if got := c.Labels[v1alpha1.LabelRetained]; got != v1alpha1.RetainedDeleted {
			t.Errorf("V4 the reason of claim %s is %q, want Deleted", c.Name, got)
		}
	}
	s.ends()
	s.Check(t)
	if known := s.r.Of(s.set()); !known.Searched {
		t.Error("V4 the search for such claims never ends")
	}
}

// V4 Only claims that carry the UID of another set and lack the retained label belong to an earlier
// set of this name.
func TestV4WhichClaimsANamesakeLeft(t *testing.T) {
	s := newStage(t, three())
	claim := func(name string, change func(*corev1.PersistentVolumeClaim)) {
		c := &corev1.PersistentVolumeClaim{}
		c.Name, c.Namespace = name, "ns"
		c.Labels = map[string]string{v1alpha1.LabelCluster: "db", v1alpha1.LabelClusterUID: "another"}
		change(c)
		s.Put(c)
	}
	claim("left", func(*corev1.PersistentVolumeClaim) {})
	claim("explained", func(c *corev1.PersistentVolumeClaim) { c.Labels[v1alpha1.LabelRetained] = lost })
	claim("ours", func(c *corev1.PersistentVolumeClaim) { c.Labels[v1alpha1.LabelClusterUID] = string(s.set().UID) })
	claim("unknown", func(c *corev1.PersistentVolumeClaim) { delete(c.Labels, v1alpha1.LabelClusterUID) })
	claim("of-another-name", func(c *corev1.PersistentVolumeClaim) { c.Labels[v1alpha1.LabelCluster] = "web" })
	s.look()
	left, err := s.r.ReadAbandoned(context.Background(), client.ObjectKeyFromObject(s.set()), s.set().UID)
	if err != nil || len(left) != 1 || left[0].Name != "left" {
		t.Errorf("V4 %v, %v; want claim left", left, err)
	}
}

// A Node that looks lost in the cache is read again from the API server.
func TestACacheThatShowsALostNode(t *testing.T) {
	s := newStage(t, three())
	s.settle(2 * time.Second)
	before := s.Writes()
	kubelet.Turn(s.Cluster, "n1", false)
	s.Now = s.Now.Add(35 * time.Second)
	s.look()
	kubelet.Turn(s.Cluster, "n1", true) // the cache does not show it yet
	s.pass()
	for _, p := range kubelet.Pods(s.Cluster) {
		if p.DeletionTimestamp != nil {
			t.Errorf("%s is deleted, but its Node is Ready", p.Name)
		}
	}
	if len(kubelet.Pods(s.Cluster)) != 3 {
		t.Errorf("%d pods, want 3, after %d writes", len(kubelet.Pods(s.Cluster)), s.Writes()-before)
	}
}

func TestWhichNodeRanAPod(t *testing.T) {
	at := func(minutes int) metav1.Time { return metav1.NewTime(noon.Add(time.Duration(minutes) * time.Minute)) }
	machine := func(made int) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", CreationTimestamp: at(made)}}
	}
	bound := func(made, bound int) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: at(made)}}
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: at(bound)}}
		return p
	}
	unbound := bound(10, 11)
	unbound.Status.Conditions = nil
	for _, r := range []struct {
		name string
		pod  *corev1.Pod
		node *corev1.Node
		gone bool
	}{
		{"no Node with that name exists", bound(10, 11), nil, true},
		{"the Node existed when the pod was bound", bound(10, 11), machine(0), false},
		{"a new Node has the name", bound(10, 11), machine(12), true},
		{"the Node was created between the creation and the binding of the pod", bound(9, 11), machine(10), false},
		{"the template sets nodeName, so no scheduler bound the pod", unbound, machine(12), false},
	} {
		if got := new(observe.Reader).NodeOf(r.pod, r.node, noon).Gone; got != r.gone {
			t.Errorf("%s: gone is %t, want %t", r.name, got, r.gone)
		}
	}
}

func TestANodeThatWasCreatedAgain(t *testing.T) {
	at := func(minutes int) metav1.Time { return metav1.NewTime(noon.Add(time.Duration(minutes) * time.Minute)) }
	object := func(made int, id, uuid string) *corev1.Node {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", CreationTimestamp: at(made)}}
		n.Status.NodeInfo.MachineID, n.Status.NodeInfo.SystemUUID = id, uuid
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		return n
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: at(10)}, Spec: corev1.PodSpec{NodeName: "n1"}}
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: at(10)}}
	running := pod.DeepCopy()
	running.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: at(11)}}}}
	sandbox := func(since int) *corev1.Pod {
		p := pod.DeepCopy()
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: corev1.PodReadyToStartContainers, Status: corev1.ConditionTrue, LastTransitionTime: at(since)})
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: at(30)}}}}
		return p
	}
	for _, r := range []struct {
		name string
		pod  *corev1.Pod
		now  *corev1.Node
		gone bool
	}{
		{"W2 a recreated Node with the same machine ID", pod, object(20, "m", "x"), false},
		{"W2 a recreated Node with the same system UUID", pod, object(20, "x", "u"), false},
		{"W2 a recreated Node of another machine", pod, object(20, "x", "x"), true},
		{"W2 a recreated Node without machine ID and system UUID", pod, object(20, "", ""), true},
		{"W2 a recreated Node whose pod has older containers", running, object(20, "x", "x"), false},
		{"W2 a recreated Node whose pod has an older sandbox and restarted containers", sandbox(11), object(20, "x", "x"), false},
		{"W2 a recreated Node whose pod has a new sandbox", sandbox(21), object(20, "x", "x"), true},
	} {
		read := &observe.Reader{}
		read.NodeOf(r.pod, object(0, "m", "u"), noon)
		read.NodeOf(r.pod, nil, noon)
		if got := read.NodeOf(r.pod, r.now, noon); got.Gone != r.gone || !got.GoneSince.Equal(at(20).Time) {
			t.Errorf("%s: gone is %t since %s, want %t", r.name, got.Gone, got.GoneSince, r.gone)
		}
	}
}

// A member is lost at once if a different machine has the name of its machine now.
func TestAMachineThatWasReplacedUnderItsName(t *testing.T) {
	s := newStage(t, three())
	s.settle(2 * time.Second)
	old := s.members()[0]
	var n corev1.Node
	if err := s.Get(context.Background(), types.NamespacedName{Name: old.Spec.NodeName}, &n); err != nil {
		t.Fatal(err)
	}
	s.DeleteNow(&n)
	s.Now = s.Now.Add(time.Minute)
	n.UID, n.ResourceVersion = "", ""
	s.Put(&n)
	kubelet.Turn(s.Cluster, n.Name, true)
	old = old.DeepCopy() // its containers start again
	old.Status.ContainerStatuses = nil
	s.Put(old)
	s.settle(time.Minute)
	for _, p := range s.members() {
		if p.Name == old.Name {
			t.Errorf("%s is kept, but its machine was replaced", p.Name)
		}
	}
	s.Check(t)
}

// The number and size of pods with the operator's labels that the set does not control are up to
// the users who create them.
func TestPodsOfStrangersAreReadOneAtATime(t *testing.T) {
	s := newStage(t, set("db"))
	s.settle(15 * time.Minute)
	used := false
	s.r.Cache = s.Cluster
	s.r.Pods = listsBy(func(ctx context.Context, into client.ObjectList, opts ...client.ListOption) error {
		used = true
		return s.List(ctx, into, opts...)
	}, s.Cluster)
	if w := s.observe(s.set(), engine.View{Reader: s.Cluster, Live: true}); used || len(w.Members) != 3 {
		t.Errorf("observed %d of 3 members, read one at a time: %v", len(w.Members), used)
	}
	s.Put(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "stray", UID: "stray",
		Labels: map[string]string{v1alpha1.LabelCluster: "db", v1alpha1.LabelClusterUID: string(s.set().UID)}}})
	if w := s.observe(s.set(), engine.View{Reader: s.Cluster, Live: true}); !used || len(w.Members) != 3 {
		t.Errorf("with a foreign pod, observed %d of 3 members, read one at a time: %v", len(w.Members), used)
	}
}
