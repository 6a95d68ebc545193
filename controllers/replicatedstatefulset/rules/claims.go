package rules

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/claim"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/children"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/spec"
)

// growClaims grows the claims of members with their templates. Claims never shrink. No pod is
// recreated, because the kubelet grows the file system.
func growClaims(f *facts.Facts, p *Plan) {
	if !f.ManagesChildren() || f.Deleting() {
		return
	}
	for _, t := range f.Adjusting() {
		for _, m := range f.Members {
			if have := f.Claims[facts.ClaimOf(&t, m)]; have != nil && m.Owned {
				p.Do(growClaim(f, have, &t)...)
			}
		}
	}
}

// growClaim returns the patch of a claim, or nil if the claim is large enough or cannot grow now.
// The patch also adds our labels, by which the cache selects claims.
func growClaim(f *facts.Facts, have, template *corev1.PersistentVolumeClaim) []action.Chain {
	grown, changes := claim.Adjust(have, template)
	bound := have.Status.Phase == corev1.ClaimBound // the API server rejects the change of other claims
	if changes == "" || !bound || have.DeletionTimestamp != nil {
		return nil
	}
	grown.Labels = spec.Merged(have.Labels, spec.OwnLabels(f.Set))
	return []action.Chain{{{
		Verb:      action.Patch,
		Object:    grown,
		From:      have,
		Unchanged: true,
		Reason:    facts.ReasonExpand,
		Detail:    changes,
	}}}
}

// retentionAfterResize returns the retention policy of the StatefulSet while its replicas change.
func retentionAfterResize(w *facts.World, have int) *appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy {
	if facts.ClaimPolicy(w).WhenScaled != v1alpha1.DeleteClaims || w.Wanted() >= have || w.Wanted() == 0 {
		return children.Retention(appsv1.RetainPersistentVolumeClaimRetentionPolicyType)
	}
	return children.Retention(appsv1.DeletePersistentVolumeClaimRetentionPolicyType)
}

// retentionMeanwhile returns the retention policy of the StatefulSet while its replicas stay.
func retentionMeanwhile(w *facts.World) *appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy {
	have := w.Stateful.Spec.PersistentVolumeClaimRetentionPolicy
	deletes := have != nil && have.WhenScaled == appsv1.DeletePersistentVolumeClaimRetentionPolicyType
	if deletes && isShrinking(w) && w.Wanted() > 0 && facts.ClaimPolicy(w).WhenScaled == v1alpha1.DeleteClaims {
		return children.Retention(appsv1.DeletePersistentVolumeClaimRetentionPolicyType)
	}
	return children.Retention(appsv1.RetainPersistentVolumeClaimRetentionPolicyType)
}

// isShrinking reports whether the StatefulSet controller has not yet deleted all pods beyond
// replicas.
func isShrinking(w *facts.World) bool {
	if !w.TemplateIsSeen() {
		return true
	}
	return slices.ContainsFunc(w.Members, func(m *facts.Member) bool { return m.Ordinal >= int(*w.Stateful.Spec.Replicas) })
}

// isDeletedWithObject reports whether a claim is deleted with the object: it has the name of a
// member's claim, was created after the object, and has no other controller. An older claim was
// restored, or belongs to an earlier set of this name.
func isDeletedWithObject(w *facts.World, c *corev1.PersistentVolumeClaim) bool {
	switch {
	case c.DeletionTimestamp != nil, metav1.GetControllerOf(c) != nil, spec.WasRestored(c):
		return false
	case c.CreationTimestamp.Before(&w.Set.CreationTimestamp):
		return false
	}
	return slices.ContainsFunc(w.Set.Spec.Pod.VolumeClaimTemplates, func(t corev1.PersistentVolumeClaim) bool {
		pod, ok := spec.PodOfClaim(&t, c.Name)
		_, isMember := spec.OrdinalOf(w.Set, pod)
		return ok && isMember
	})
}

// claimsToDelete returns the claims to delete now: the pods of the object are gone, and
// LastDeadline has not passed.
func claimsToDelete(w *facts.World) (claims []*corev1.PersistentVolumeClaim) {
	if !facts.DeletesAllClaims(w) || !w.IsEmpty() || !w.Now.Before(w.LastDeadline()) {
		return nil
	}
	for _, c := range w.LeftClaims {
		if isDeletedWithObject(w, c) {
			claims = append(claims, c)
		}
	}
	return claims
}

// deleteClaims deletes the claims before the object is deleted.
func deleteClaims(p *Plan, claims []*corev1.PersistentVolumeClaim) {
	for _, c := range claims {
		p.Do(action.Chain{{Verb: action.Delete, Object: c, Reason: facts.ReasonLeft, Detail: "as persistentVolumeClaimRetentionPolicy requires"}})
	}
}
