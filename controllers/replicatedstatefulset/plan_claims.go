package replicatedstatefulset

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/claim"
)

// adjusting returns the claim templates of the set that request more storage, or another
// volumeAttributesClassName, than those of the StatefulSet, whose templates are immutable. Storage
// that the StatefulSet has more of is left unchanged.
func (w *world) adjusting() (found []corev1.PersistentVolumeClaim) {
	if !w.hasStatefulSet() {
		return nil
	}
	for _, t := range w.set.Spec.Pod.VolumeClaimTemplates {
		i := slices.IndexFunc(w.stateful.Spec.VolumeClaimTemplates, func(c corev1.PersistentVolumeClaim) bool { return c.Name == t.Name })
		if i < 0 {
			continue
		}
		if _, changes := claim.Adjust(&w.stateful.Spec.VolumeClaimTemplates[i], &t); changes != "" {
			found = append(found, t)
		}
	}
	return found
}

// claimOf returns the name that the StatefulSet controller gives to the claim of a member.
func claimOf(template *corev1.PersistentVolumeClaim, m *member) string {
	return template.Name + "-" + m.name()
}

// podOfClaim returns the name of the pod that uses the claim of that template and name.
func podOfClaim(template *corev1.PersistentVolumeClaim, name string) (pod string, ok bool) {
	return strings.CutPrefix(name, template.Name+"-")
}

// growClaims grows the claims of members with their templates. Claims never shrink. No pod is
// recreated, because the kubelet grows the file system.
func growClaims(f *facts, p *plan) {
	if !f.keeps() || f.deleting() {
		return
	}
	for _, t := range f.adjusting() {
		for _, m := range f.members {
			if have := f.claims[claimOf(&t, m)]; have != nil && m.owned {
				p.Do(growClaim(f, have, &t)...)
			}
		}
	}
}

// growClaim returns the patch of a claim. It returns nothing if the claim is large enough, or
// cannot grow now. The patch also adds our labels, by which the cache selects claims.
func growClaim(f *facts, have, template *corev1.PersistentVolumeClaim) []action.Chain {
	grown, changes := claim.Adjust(have, template)
	bound := have.Status.Phase == corev1.ClaimBound // the API server rejects the change of other claims
	if changes == "" || !bound || have.DeletionTimestamp != nil {
		return nil
	}
	grown.Labels = merged(have.Labels, ownLabels(f.set))
	return []action.Chain{{{
		Verb:      action.Patch,
		Object:    grown,
		From:      have,
		Unchanged: true,
		Reason:    reasonExpand,
		Detail:    changes,
	}}}
}
