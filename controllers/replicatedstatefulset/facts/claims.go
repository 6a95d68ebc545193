package facts

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/claim"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/spec"
)

// Adjusting returns the claim templates of the set that request more storage, or another
// volumeAttributesClassName, than those of the StatefulSet, whose templates are immutable. Storage
// that the StatefulSet has more of is left unchanged.
func (w *World) Adjusting() (found []corev1.PersistentVolumeClaim) {
	if !w.HasStatefulSet() {
		return nil
	}
	for _, t := range w.Set.Spec.Pod.VolumeClaimTemplates {
		i := slices.IndexFunc(w.Stateful.Spec.VolumeClaimTemplates, func(c corev1.PersistentVolumeClaim) bool { return c.Name == t.Name })
		if i < 0 {
			continue
		}
		if _, changes := claim.Adjust(&w.Stateful.Spec.VolumeClaimTemplates[i], &t); changes != "" {
			found = append(found, t)
		}
	}
	return found
}

// ClaimOf returns the name that the StatefulSet controller gives to the claim of a member.
func ClaimOf(template *corev1.PersistentVolumeClaim, m *Member) string {
	return template.Name + "-" + m.Name()
}

// FormerSizeIsUnknown reports whether the set is stopped, has claims, and its former number of
// members is unknown: it was restored stopped, or created stopped on the claims of an earlier set
// of its name.
//
// An object restored from a backup has no status, so its record is lost. Command sequence reports
// the versions of the copies again, but nothing reports the former number of members.
func FormerSizeIsUnknown(w *World) bool {
	if w.Invalid != "" || w.Deleting() || *w.Set.Spec.Replicas > 0 {
		return false
	}
	return w.Set.Status.RestoreReplicas == 0 && len(w.Set.Spec.Pod.VolumeClaimTemplates) > 0
}

// CopiesIn returns how many members the set needs so that each claim that is older than the set, or
// was restored, belongs to a member.
func CopiesIn(w *World, claims []corev1.PersistentVolumeClaim) int32 {
	most := 0
	for i := range claims {
		if w.Set.CreationTimestamp.Before(&claims[i].CreationTimestamp) && !spec.WasRestored(&claims[i]) {
			continue // the claim was created for this set, which has not run since
		}
		for _, t := range w.Set.Spec.Pod.VolumeClaimTemplates {
			pod, _ := spec.PodOfClaim(&t, claims[i].Name)
			ordinal, isMember := spec.OrdinalOf(w.Set, pod)
			if isMember && ordinal < spec.MaxReplicas {
				most = max(most, ordinal+1)
			}
		}
	}
	return int32(most)
}

// ClaimPolicy returns the claim retention policy of the set. Its fields are empty if it has none.
func ClaimPolicy(w *World) v1alpha1.ClaimRetentionPolicy {
	return ptr.Deref(w.Set.Spec.PersistentVolumeClaimRetentionPolicy, v1alpha1.ClaimRetentionPolicy{})
}

// DeletesAllClaims reports whether the claims are deleted with the object.
func DeletesAllClaims(w *World) bool {
	return w.Deleting() && ClaimPolicy(w).WhenDeleted == v1alpha1.DeleteClaims
}
