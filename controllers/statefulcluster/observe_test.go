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
	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation/kubelet"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/fixture"
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
	s.Restart()
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
	if known := s.Reader.Of(s.set()); !known.Searched {
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
	claim("explained", func(c *corev1.PersistentVolumeClaim) { c.Labels[v1alpha1.LabelRetained] = fixture.Lost })
	claim("ours", func(c *corev1.PersistentVolumeClaim) { c.Labels[v1alpha1.LabelClusterUID] = string(s.set().UID) })
	claim("unknown", func(c *corev1.PersistentVolumeClaim) { delete(c.Labels, v1alpha1.LabelClusterUID) })
	claim("of-another-name", func(c *corev1.PersistentVolumeClaim) { c.Labels[v1alpha1.LabelCluster] = "web" })
	s.Look()
	left, err := s.Reader.ReadAbandoned(context.Background(), client.ObjectKeyFromObject(s.set()), s.set().UID)
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
	s.Look()
	kubelet.Turn(s.Cluster, "n1", true) // the cache does not show it yet
	s.Pass()
	for _, p := range kubelet.Pods(s.Cluster) {
		if p.DeletionTimestamp != nil {
			t.Errorf("%s is deleted, but its Node is Ready", p.Name)
		}
	}
	if len(kubelet.Pods(s.Cluster)) != 3 {
		t.Errorf("%d pods, want 3, after %d writes", len(kubelet.Pods(s.Cluster)), s.Writes()-before)
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
	s := newStage(t, fixture.Set("db"))
	s.settle(15 * time.Minute)
	used := false
	s.Reader.Cache = s.Cluster
	s.Reader.Pods = listsBy(func(ctx context.Context, into client.ObjectList, opts ...client.ListOption) error {
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
