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

// leftovers is about claims of members that are no more, and what is to become of them.
//
// The StatefulSet deletes claims in a scale-down that the operator makes, and in no other
// moment: it says Delete from the patch that lowers its number until those pods are gone. A
// scale-down to 0 is a stop, and keeps all. When the object is deleted the operator deletes
// the claims itself, after the last pod: by the word of the policy at that time, also of a set
// that was stopped before.
type leftovers struct{ *world }

func (l leftovers) policy() v1alpha1.ClaimRetentionPolicy {
	return ptr.Deref(l.set.Spec.PersistentVolumeClaimRetentionPolicy, v1alpha1.ClaimRetentionPolicy{})
}

// whenResized is what the StatefulSet is to do with claims when its number changes.
func (l leftovers) whenResized(have int) *appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy {
	if l.policy().WhenScaled != v1alpha1.DeleteClaims || l.wanted() >= have || l.wanted() == 0 {
		return retention(appsv1.RetainPersistentVolumeClaimRetentionPolicyType)
	}
	return retention(appsv1.DeletePersistentVolumeClaimRetentionPolicyType)
}

// meanwhile is what the StatefulSet is to do with claims while its number stays.
func (l leftovers) meanwhile() *appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy {
	have := l.stateful.Spec.PersistentVolumeClaimRetentionPolicy
	deletes := have != nil && have.WhenScaled == appsv1.DeletePersistentVolumeClaimRetentionPolicyType
	if deletes && l.isShrinking() && l.wanted() > 0 && l.policy().WhenScaled == v1alpha1.DeleteClaims {
		return retention(appsv1.DeletePersistentVolumeClaimRetentionPolicyType)
	}
	return retention(appsv1.RetainPersistentVolumeClaimRetentionPolicyType)
}

// isShrinking reports whether the StatefulSet has not taken all members away yet that are
// beyond its number.
func (l leftovers) isShrinking() bool {
	if !l.templateIsSeen() {
		return true
	}
	return slices.ContainsFunc(l.members, func(m *member) bool { return m.ordinal >= int(*l.stateful.Spec.Replicas) })
}

// deletesAll reports whether claims go with the object.
func (l leftovers) deletesAll() bool {
	return l.deleting() && l.policy().WhenDeleted == v1alpha1.DeleteClaims
}

// goesToo reports whether a claim goes with the object: it has the name of a member's, was
// made since the object was, and nobody else has it. What is older was restored, or is of a
// set that had this name before.
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

// going are the claims that go with the object now: its pods are gone, and it is not too late
// to wait.
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

// deleteClaims deletes the claims that go with the object, before it goes itself.
func deleteClaims(p *plan, claims []*corev1.PersistentVolumeClaim) {
	for _, c := range claims {
		p.Do(action.Chain{{Verb: action.Delete, Object: c, Reason: reasonLeft, Detail: "as persistentVolumeClaimRetentionPolicy says"}})
	}
}
