package replicatedstatefulset

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
)

func claimPolicy(w *world) v1alpha1.ClaimRetentionPolicy {
	return ptr.Deref(w.set.Spec.PersistentVolumeClaimRetentionPolicy, v1alpha1.ClaimRetentionPolicy{})
}

// retentionAfterResize returns the retention policy of the StatefulSet while its replicas change.
func retentionAfterResize(w *world, have int) *appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy {
	if claimPolicy(w).WhenScaled != v1alpha1.DeleteClaims || w.wanted() >= have || w.wanted() == 0 {
		return retention(appsv1.RetainPersistentVolumeClaimRetentionPolicyType)
	}
	return retention(appsv1.DeletePersistentVolumeClaimRetentionPolicyType)
}

// retentionMeanwhile returns the retention policy of the StatefulSet while its replicas stay.
func retentionMeanwhile(w *world) *appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy {
	have := w.stateful.Spec.PersistentVolumeClaimRetentionPolicy
	deletes := have != nil && have.WhenScaled == appsv1.DeletePersistentVolumeClaimRetentionPolicyType
	if deletes && isShrinking(w) && w.wanted() > 0 && claimPolicy(w).WhenScaled == v1alpha1.DeleteClaims {
		return retention(appsv1.DeletePersistentVolumeClaimRetentionPolicyType)
	}
	return retention(appsv1.RetainPersistentVolumeClaimRetentionPolicyType)
}

// isShrinking reports whether the StatefulSet controller has not yet deleted all pods beyond
// replicas.
func isShrinking(w *world) bool {
	if !w.templateIsSeen() {
		return true
	}
	return slices.ContainsFunc(w.members, func(m *member) bool { return m.ordinal >= int(*w.stateful.Spec.Replicas) })
}

// deletesAllClaims reports whether the claims are deleted with the object.
func deletesAllClaims(w *world) bool {
	return w.deleting() && claimPolicy(w).WhenDeleted == v1alpha1.DeleteClaims
}

// goesToo reports whether a claim is deleted with the object: it has the name of a member's claim,
// was created after the object, and has no other controller. An older claim was restored, or
// belongs to an earlier set of this name.
func goesToo(w *world, c *corev1.PersistentVolumeClaim) bool {
	switch {
	case c.DeletionTimestamp != nil, metav1.GetControllerOf(c) != nil, wasRestored(c):
		return false
	case c.CreationTimestamp.Before(&w.set.CreationTimestamp):
		return false
	}
	return slices.ContainsFunc(w.set.Spec.Pod.VolumeClaimTemplates, func(t corev1.PersistentVolumeClaim) bool {
		pod, ok := podOfClaim(&t, c.Name)
		_, isMember := ordinalOf(w.set, pod)
		return ok && isMember
	})
}

// claimsToDelete returns the claims to delete now: the pods of the object are gone, and lastDeadline has not
// passed.
func claimsToDelete(w *world) (claims []*corev1.PersistentVolumeClaim) {
	if !deletesAllClaims(w) || !w.isEmpty() || !w.now.Before(w.lastDeadline()) {
		return nil
	}
	for _, c := range w.leftClaims {
		if goesToo(w, c) {
			claims = append(claims, c)
		}
	}
	return claims
}

// deleteClaims deletes the claims before the object is deleted.
func deleteClaims(p *plan, claims []*corev1.PersistentVolumeClaim) {
	for _, c := range claims {
		p.Do(action.Chain{{Verb: action.Delete, Object: c, Reason: reasonLeft, Detail: "as persistentVolumeClaimRetentionPolicy requires"}})
	}
}
