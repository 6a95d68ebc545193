package simulate

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation"
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
