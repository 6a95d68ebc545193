package statefulcluster

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
)

// V4 A set is deleted and made again under its name while no operator looks.
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
	if known := s.r.memory.of(s.set()); !known.searched {
		t.Error("V4 it will look for such claims for ever")
	}
}

// V4 Only claims that say that they are of another set, and not why they stay,
// are those of a namesake.
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
	left, err := s.r.readAbandoned(context.Background(), client.ObjectKeyFromObject(s.set()), s.set().UID)
	if err != nil || len(left) != 1 || left[0].Name != "left" {
		t.Errorf("V4 %v, %v; want the claim left alone", left, err)
	}
}
