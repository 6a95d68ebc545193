package replicatedstatefulset

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/claim"
)

// adjusting are the claim templates of the set that ask for more storage than the StatefulSet
// gives to new claims, or for another volumeAttributesClassName: the StatefulSet's own
// templates are immutable. What was smaller when the set was made is left as it is.
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

// claimOf is the name that the StatefulSet gives to the claim of a member.
func claimOf(template *corev1.PersistentVolumeClaim, m *member) string {
	return template.Name + "-" + m.name()
}

// podOfClaim is the pod whose claim of that template has that name.
func podOfClaim(template *corev1.PersistentVolumeClaim, name string) (pod string, ok bool) {
	return strings.CutPrefix(name, template.Name+"-")
}

// growClaims lets the claims of members grow with their templates. No claim shrinks, and no
// pod is recreated for it: the kubelet makes the file system larger.
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

// growClaim is the patch of a claim; none if it is as large, or cannot grow now. It gets our
// labels too, by which the cache has it.
func growClaim(f *facts, have, template *corev1.PersistentVolumeClaim) []action.Chain {
	grown, changes := claim.Adjust(have, template)
	bound := have.Status.Phase == corev1.ClaimBound // the API server refuses others
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
