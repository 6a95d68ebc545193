package workloads

import (
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation/kubelet"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation/objects"
)

// claims adds a template of a claim with that policy.
func claims(whenScaled, whenDeleted appsv1.PersistentVolumeClaimRetentionPolicyType) func(*appsv1.StatefulSet) {
	return func(set *appsv1.StatefulSet) {
		set.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "data"}}}
		set.Spec.PersistentVolumeClaimRetentionPolicy = &appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{WhenScaled: whenScaled, WhenDeleted: whenDeleted}
	}
}

func (s *stage) claim(name string) *corev1.PersistentVolumeClaim {
	claim, _ := s.All[objects.Key{Kind: "PersistentVolumeClaim", Namespace: "ns", Name: name}].(*corev1.PersistentVolumeClaim)
	return claim
}

// names returns the names of the claims.
func (s *stage) names() (names []string) {
	for key := range s.All {
		if key.Kind == "PersistentVolumeClaim" {
			names = append(names, key.Name)
		}
	}
	slices.Sort(names)
	return names
}

// TestRetention tests which claims are left after a scale down, and then after the deletion of the StatefulSet.
func TestRetention(t *testing.T) {
	const keeps, deletes = appsv1.RetainPersistentVolumeClaimRetentionPolicyType, appsv1.DeletePersistentVolumeClaimRetentionPolicyType
	all, two := []string{"data-db-0", "data-db-1", "data-db-2"}, []string{"data-db-0", "data-db-1"}
	for _, row := range []struct {
		whenScaled, whenDeleted appsv1.PersistentVolumeClaimRetentionPolicyType
		scaled, deleted         []string
	}{
		{keeps, keeps, all, all},
		{keeps, deletes, all, nil},
		{deletes, keeps, two, two},
		{deletes, deletes, two, nil},
	} {
		t.Run(string(row.whenScaled+row.whenDeleted), func(t *testing.T) {
			s := newStage(t, claims(row.whenScaled, row.whenDeleted))
			if got := s.claim("data-db-1"); got == nil || got.Labels["app"] != "db" || got.Status.Phase != corev1.ClaimBound {
				t.Fatalf("the claim is %+v", got)
			}
			s.edit(scale(2))
			if s.rest(); !slices.Equal(s.names(), row.scaled) {
				t.Errorf("after the scale down: %q", s.names())
			}
			s.Delete(s.set())
			for range 10 {
				for _, move := range slices.Concat(simulation.Garbage(s.Cluster), kubelet.Moves(s.Cluster)) {
					move()
				}
			}
			if !slices.Equal(s.names(), row.deleted) || len(s.pods()) > 0 {
				t.Errorf("after the deletion: %q, pods %q", s.names(), s.pods())
			}
		})
	}
}

// TestAChangedPolicy tests that the owners of claims follow the policy, and that other controllers stay.
func TestAChangedPolicy(t *testing.T) {
	s := newStage(t, claims("Retain", "Delete"))
	if !metav1.IsControlledBy(s.claim("data-db-0"), s.set()) {
		t.Errorf("the owners are %+v", s.claim("data-db-0").OwnerReferences)
	}
	other := objects.Clone(s.claim("data-db-1"))
	yes := true
	other.OwnerReferences = []metav1.OwnerReference{{Kind: "Backup", Name: "b", UID: "b", Controller: &yes}}
	s.Put(other)
	s.edit(claims("Retain", "Retain"))
	s.rest()
	s.edit(claims("Retain", "Delete"))
	s.rest()
	if owners := s.claim("data-db-1").OwnerReferences; len(owners) != 1 || owners[0].UID != "b" {
		t.Errorf("the owners of a claim with another controller are %+v", owners)
	}
	s.edit(claims("Retain", "Retain"))
	if s.rest(); len(s.claim("data-db-0").OwnerReferences) > 0 {
		t.Errorf("the owners are %+v", s.claim("data-db-0").OwnerReferences)
	}
}

// TestStaleClaims tests that a pod is not created while a claim of an earlier pod is being deleted, and that a missing
// claim of a pending pod is created.
func TestStaleClaims(t *testing.T) {
	s := newStage(t, claims("Delete", "Retain"), parallel)
	s.edit(scale(2))
	s.play(1)
	held := objects.Clone(s.claim("data-db-2"))
	if len(held.OwnerReferences) != 1 || held.OwnerReferences[0].UID != s.pod("db-2").UID {
		t.Fatalf("the owners of the claim of an excess pod are %+v", held.OwnerReferences)
	}
	held.Finalizers = []string{"test/keep"}
	s.Put(held)
	s.rest()
	s.edit(scale(3))
	if s.rest(); s.pod("db-2") != nil || s.claim("data-db-2").DeletionTimestamp == nil {
		t.Errorf("pods %q", s.pods())
	}
	s.Remove(s.claim("data-db-2"))
	if s.rest(); s.pod("db-2") == nil || s.claim("data-db-2").UID == held.UID {
		t.Errorf("pods %q", s.pods())
	}
	kubelet.Turn(s.Cluster, "n1", false)
	s.DeleteNow(s.pod("db-1"))
	s.rest()
	s.Remove(s.claim("data-db-1"))
	if s.rest(); s.claim("data-db-1") == nil {
		t.Error("the claim of a pending pod is not created again")
	}
	s = newStage(t, claims("Retain", "Retain"), parallel)
	held = objects.Clone(s.claim("data-db-2"))
	held.Finalizers = []string{"test/keep"}
	s.Put(held)
	s.DeleteNow(s.pod("db-2"))
	s.Delete(held)
	if s.rest(); s.pod("db-2") != nil {
		t.Error("a pod is created although its claim is being deleted")
	}
}
