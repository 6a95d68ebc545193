package workloads

import (
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation/objects"
)

// podKind is the kind of pods.
var podKind = corev1.SchemeGroupVersion.WithKind("Pod")

// claimsOf returns the existing claims of a pod that were created from templates.
func (s *sync) claimsOf(pod *corev1.Pod) (claims []*corev1.PersistentVolumeClaim) {
	for i := range s.set.Spec.VolumeClaimTemplates {
		key := objects.Key{Kind: "PersistentVolumeClaim", Namespace: pod.Namespace, Name: s.set.Spec.VolumeClaimTemplates[i].Name + "-" + pod.Name}
		if claim, exists := s.All[key].(*corev1.PersistentVolumeClaim); exists {
			claims = append(claims, claim)
		}
	}
	return claims
}

// awaitsClaims reports whether a pod cannot be created because a claim of its name is being deleted, or will be deleted
// with an earlier pod.
func (s *sync) awaitsClaims(pod *corev1.Pod) bool {
	return s.hasStaleClaim(pod) || slices.ContainsFunc(s.claimsOf(pod), func(claim *corev1.PersistentVolumeClaim) bool {
		return claim.DeletionTimestamp != nil
	})
}

// awaitsEarlier reports whether a claim of an ordinal will be deleted with an earlier pod.
func (s *sync) awaitsEarlier(ordinal int) bool { return s.hasStaleClaim(s.build(ordinal)) }

// hasStaleClaim reports whether a claim of a pod will be deleted with an earlier pod.
func (s *sync) hasStaleClaim(pod *corev1.Pod) bool {
	if policyOf(s.set).WhenScaled != appsv1.DeletePersistentVolumeClaimRetentionPolicyType {
		return false
	}
	return slices.ContainsFunc(s.claimsOf(pod), func(claim *corev1.PersistentVolumeClaim) bool {
		return hasEarlier(claim, podKind.Kind, pod)
	})
}

// createClaims creates the missing claims of a pod, which are bound at once.
func (s *sync) createClaims(pod *corev1.Pod) {
	for i := range s.set.Spec.VolumeClaimTemplates {
		claim := s.set.Spec.VolumeClaimTemplates[i].DeepCopy()
		claim.Name, claim.Namespace = claim.Name+"-"+pod.Name, pod.Namespace
		if s.All[objects.KeyOf(claim)] != nil {
			continue
		}
		// UIDs of claims are not those of the cluster, which number the pods.
		claim.UID = types.UID(fmt.Sprintf("%s-%d", claim.Name, s.Now.UnixNano()))
		claim.CreationTimestamp, claim.Generation = metav1.NewTime(s.Now.Truncate(time.Second)), 1
		for label, value := range ptr.Deref(s.set.Spec.Selector, metav1.LabelSelector{}).MatchLabels {
			metav1.SetMetaDataLabel(&claim.ObjectMeta, label, value)
		}
		claim.Status = corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound, Capacity: claim.Spec.Resources.Requests}
		s.Put(claim)
	}
}

// claims adds the step that creates the missing claims of a pending pod, and sets the owners of all its claims.
func (s *sync) claims(p *corev1.Pod) {
	creates := p.Status.Phase == corev1.PodPending && len(s.claimsOf(p)) < len(s.set.Spec.VolumeClaimTemplates)
	isOutdated := func(claim *corev1.PersistentVolumeClaim) bool {
		return !apiequality.Semantic.DeepEqual(claim.OwnerReferences, ownersOf(claim, s.set, p))
	}
	if creates || slices.ContainsFunc(s.claimsOf(p), isOutdated) {
		s.step("claims"+p.Name, func() {
			if creates {
				s.createClaims(p)
			}
			s.own(p)
		})
	}
}

// own sets the owners of the claims of a pod.
func (s *sync) own(p *corev1.Pod) {
	for _, claim := range s.claimsOf(p) {
		next := objects.Clone(claim)
		next.OwnerReferences = ownersOf(claim, s.set, p)
		if !apiequality.Semantic.DeepEqual(claim.OwnerReferences, next.OwnerReferences) {
			s.Put(next)
		}
	}
}

// policyOf returns when the claims of a StatefulSet are deleted.
func policyOf(set *appsv1.StatefulSet) appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy {
	return ptr.Deref(set.Spec.PersistentVolumeClaimRetentionPolicy, appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{})
}

// ownersOf returns the owners that a claim must have. A claim that is deleted with its StatefulSet is owned by it, and a
// claim that is deleted with an excess pod is owned by the pod. Claims of earlier owners of the same name, and of other
// controllers, keep their owners.
func ownersOf(claim *corev1.PersistentVolumeClaim, set *appsv1.StatefulSet, p *corev1.Pod) []metav1.OwnerReference {
	const deletes = appsv1.DeletePersistentVolumeClaimRetentionPolicyType
	if hasEarlier(claim, kind.Kind, set) || hasEarlier(claim, podKind.Kind, p) {
		return claim.OwnerReferences
	}
	owners := withoutOwner(withoutOwner(claim.OwnerReferences, set), p)
	ordinal, _ := ordinalOf(set, p)
	hasOther := slices.ContainsFunc(owners, func(o metav1.OwnerReference) bool { return ptr.Deref(o.Controller, false) })
	policy := policyOf(set)
	isExcess := policy.WhenScaled == deletes && !isWanted(set, ordinal)
	switch {
	case hasOther:
	case isExcess:
		owners = append(owners, *metav1.NewControllerRef(p, podKind))
	case policy.WhenDeleted == deletes:
		owners = append(owners, *metav1.NewControllerRef(set, kind))
	}
	return owners
}

// hasEarlier reports whether a claim is owned by an object of the same kind and name with another UID.
func hasEarlier(claim *corev1.PersistentVolumeClaim, of string, obj metav1.Object) bool {
	return slices.ContainsFunc(claim.OwnerReferences, func(o metav1.OwnerReference) bool {
		return o.Kind == of && o.Name == obj.GetName() && o.UID != obj.GetUID()
	})
}
