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

// leftovers handles the claims of removed members.
//
// The StatefulSet controller deletes claims only during a scale-down by the operator: the
// StatefulSet's policy is Delete from the patch that lowers replicas until the pods are gone. A
// scale-down to 0 is a stop and keeps all claims. When the object is deleted, the operator deletes
// the claims itself after the last pod is gone. It follows the policy at that time, also for a set
// that was stopped before.
type leftovers struct{ *world }

func (l leftovers) policy() v1alpha1.ClaimRetentionPolicy {
	return ptr.Deref(l.set.Spec.PersistentVolumeClaimRetentionPolicy, v1alpha1.ClaimRetentionPolicy{})
}

// whenResized returns the retention policy of the StatefulSet while its replicas change.
func (l leftovers) whenResized(have int) *appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy {
	if l.policy().WhenScaled != v1alpha1.DeleteClaims || l.wanted() >= have || l.wanted() == 0 {
		return retention(appsv1.RetainPersistentVolumeClaimRetentionPolicyType)
	}
	return retention(appsv1.DeletePersistentVolumeClaimRetentionPolicyType)
}

// meanwhile returns the retention policy of the StatefulSet while its replicas stay.
func (l leftovers) meanwhile() *appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy {
	have := l.stateful.Spec.PersistentVolumeClaimRetentionPolicy
	deletes := have != nil && have.WhenScaled == appsv1.DeletePersistentVolumeClaimRetentionPolicyType
	if deletes && l.isShrinking() && l.wanted() > 0 && l.policy().WhenScaled == v1alpha1.DeleteClaims {
		return retention(appsv1.DeletePersistentVolumeClaimRetentionPolicyType)
	}
	return retention(appsv1.RetainPersistentVolumeClaimRetentionPolicyType)
}

// isShrinking reports whether the StatefulSet controller has not yet deleted all pods beyond
// replicas.
func (l leftovers) isShrinking() bool {
	if !l.templateIsSeen() {
		return true
	}
	return slices.ContainsFunc(l.members, func(m *member) bool { return m.ordinal >= int(*l.stateful.Spec.Replicas) })
}

// deletesAll reports whether the claims are deleted with the object.
func (l leftovers) deletesAll() bool {
	return l.deleting() && l.policy().WhenDeleted == v1alpha1.DeleteClaims
}

// goesToo reports whether a claim is deleted with the object: it has the name of a member's claim,
// was created after the object, and has no other controller. An older claim was restored, or
// belongs to an earlier set of this name.
func (l leftovers) goesToo(c *corev1.PersistentVolumeClaim) bool {
	switch {
	case c.DeletionTimestamp != nil, metav1.GetControllerOf(c) != nil, wasRestored(c):
		return false
	case c.CreationTimestamp.Before(&l.set.CreationTimestamp):
		return false
	}
	return slices.ContainsFunc(l.set.Spec.Pod.VolumeClaimTemplates, func(t corev1.PersistentVolumeClaim) bool {
		pod, ok := podOfClaim(&t, c.Name)
		_, isMember := ordinalOf(l.set, pod)
		return ok && isMember
	})
}

// going returns the claims to delete now: the pods of the object are gone, and lastDeadline has not
// passed.
func (l leftovers) going() (claims []*corev1.PersistentVolumeClaim) {
	if !l.deletesAll() || !l.isEmpty() || !l.now.Before(l.lastDeadline()) {
		return nil
	}
	for _, c := range l.leftClaims {
		if l.goesToo(c) {
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
