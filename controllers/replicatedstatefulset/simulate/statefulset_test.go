package simulate

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation/objects"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/fixture"
)

// claimsIn returns the claims of a cluster, by name.
func claimsIn(c *simulation.Cluster) map[string]*corev1.PersistentVolumeClaim {
	claims := map[string]*corev1.PersistentVolumeClaim{}
	for _, obj := range c.All {
		if claim, isClaim := obj.(*corev1.PersistentVolumeClaim); isClaim {
			claims[claim.Name] = claim
		}
	}
	return claims
}

// TestClaims tests that each member has a claim, and that the policy determines whether it outlives the member.
func TestClaims(t *testing.T) {
	for _, whenScaled := range []appsv1.PersistentVolumeClaimRetentionPolicyType{appsv1.RetainPersistentVolumeClaimRetentionPolicyType, appsv1.DeletePersistentVolumeClaimRetentionPolicyType} {
		s := begun(t, fixture.SetOf(3, 1))
		if claims := claimsIn(s.Cluster); len(claims) != 3 {
			t.Fatalf("the claims are %v", claims)
		}
		set := s.StatefulSet()
		set.Spec.PersistentVolumeClaimRetentionPolicy.WhenScaled, set.Spec.Replicas = whenScaled, new(int32(2))
		s.Put(set)
		removed := podsIn(s.Cluster)["rss-shop-2"].DeepCopy()
		removed.Finalizers = nil
		s.Put(removed)
		for range 10 {
			for _, move := range s.Machines() {
				move()
			}
			s.Tick()
		}
		want := 3
		if whenScaled == appsv1.DeletePersistentVolumeClaimRetentionPolicyType {
			want = 2
		}
		if claims := claimsIn(s.Cluster); len(claims) != want || podsIn(s.Cluster)["rss-shop-2"] != nil {
			t.Errorf("%s: %d claims are left", whenScaled, len(claims))
		}
	}
}

// TestRevisionsOfTheRealController tests that a revision with the same template is used, whatever its name.
func TestRevisionsOfTheRealController(t *testing.T) {
	s := begun(t, fixture.SetOf(3, 1))
	set := s.StatefulSet()
	mine := set.Status.UpdateRevision
	if s.revise(set) != mine {
		t.Errorf("the revision is %s, want %s", s.revise(set), mine)
	}
	theirs := objects.Clone(s.All[objects.Key{Kind: "ControllerRevision", Namespace: shop.Namespace, Name: mine}]).(*appsv1.ControllerRevision)
	s.Remove(theirs)
	theirs.Name, theirs.UID = "rss-shop-7d4b9c", "theirs"
	s.Put(theirs)
	if got := s.revise(set); got != theirs.Name {
		t.Errorf("the revision is %s", got)
	}
	set.Spec.Template.Spec.Containers[0].Image = "two"
	if got := s.revise(set); got == theirs.Name || got == mine {
		t.Errorf("another template has revision %s", got)
	}
}

// TestLabelsDecideWhoseAPodIs tests that the controller releases and adopts pods.
func TestLabelsDecideWhoseAPodIs(t *testing.T) {
	s := begun(t, fixture.SetOf(3, 1))
	set, p := s.StatefulSet(), podsIn(s.Cluster)["rss-shop-0"].DeepCopy()
	if s.adoption(set, p) != nil {
		t.Error("a pod of the StatefulSet is released or adopted")
	}
	labels := p.Labels
	p.Labels = nil
	s.Put(p)
	s.adoption(set, p)()
	if p = podsIn(s.Cluster)["rss-shop-0"].DeepCopy(); metav1.GetControllerOf(p) != nil {
		t.Error("a pod without labels is not released")
	}
	p.Labels = labels
	s.Put(p)
	s.adoption(set, p)()
	if p = podsIn(s.Cluster)["rss-shop-0"]; !metav1.IsControlledBy(p, set) {
		t.Error("a pod with labels is not adopted")
	}
	if p.Labels[v1alpha1.LabelApp] != "shop" {
		t.Errorf("the labels are %v", p.Labels)
	}
}
