package extendedstatefulset

import (
	"iter"

	corev1 "k8s.io/api/core/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/claim"
)

// claimNames returns the names of the claims of the wanted ordinals.
func claimNames(w *world) iter.Seq2[place, string] {
	return func(yield func(place, string) bool) {
		for at, template := range wantedClaims(w) {
			if !yield(at, claimName(w.set.Name, template.Name, at.zone, at.ordinal)) {
				return
			}
		}
	}
}

// wantedClaims returns the claim templates for each wanted ordinal.
func wantedClaims(w *world) iter.Seq2[place, *corev1.PersistentVolumeClaim] {
	templates := w.set.Spec.Template.Spec.VolumeClaimTemplates
	return func(yield func(place, *corev1.PersistentVolumeClaim) bool) {
		for _, z := range w.zones {
			for o := range w.replicas {
				for i := range templates {
					if !yield(place{z, o}, &templates[i]) {
						return
					}
				}
			}
		}
	}
}

// keepClaims creates the claims of all wanted ordinals, and expands existing claims to the size in
// their template. It never deletes claims, because they hold the user's data.
func keepClaims(f *facts, p *plan) {
	made := 0
	for at, template := range wantedClaims(f.world) {
		have := f.claims[claimName(f.set.Name, template.Name, at.zone, at.ordinal)]
		switch {
		case claimTaken(f.world, template.Name, at):
		case have == nil && made < namesAtOnce && !f.left(at.zone, at.ordinal):
			p.Do(action.Chain{{
				Verb:   action.Create,
				Object: buildClaim(f.set, template, at.zone, at.ordinal),
				Reason: reasonClaim,
			}})
			made++
		case have != nil && have.DeletionTimestamp == nil:
			p.Do(keepClaim(f.set, have, at, template)...)
		}
	}
}

// keepClaim returns the patch that expands a claim to its template, or labels a claim that its owner
// gave to the set.
func keepClaim(set *v1alpha1.ExtendedStatefulSet, have *corev1.PersistentVolumeClaim, at place, from *corev1.PersistentVolumeClaim) []action.Chain {
	next, changes := claim.Adjust(have, from)
	switch {
	case have.Labels[v1alpha1.LabelSet] != set.Name:
		next = next.DeepCopy()
		next.Labels = merged(have.Labels, buildClaim(set, from, at.zone, at.ordinal).Labels)
		return []action.Chain{{{
			Verb:   action.Patch,
			Object: next,
			From:   have,
			Reason: reasonClaim,
			Detail: "adopted with the owner's consent",
		}}}
	case changes != "":
		return []action.Chain{{{
			Verb:   action.Patch,
			Object: next,
			From:   have,
			Reason: reasonClaim,
			Detail: changes,
		}}}
	}
	return nil
}

// claimTaken reports whether a claim of an ordinal belongs, or would belong, to another owner.
func claimTaken(w *world, template string, at place) bool {
	name, stem := claimName(w.set.Name, template, at.zone, at.ordinal), claimStem(template, at.zone.stem(w.set.Name))
	if w.foreign[name] != nil {
		return true
	}
	return w.claims[name] == nil && w.claimants[stem] != ""
}

// deletedClaimOf returns the terminating claim of an ordinal; "" if there is none. It is finally removed
// when its pod ends.
func deletedClaimOf(w *world, z zone, ordinal int32) string {
	for _, t := range w.set.Spec.Template.Spec.VolumeClaimTemplates {
		name := claimName(w.set.Name, t.Name, z, ordinal)
		if c := w.claims[name]; c != nil && c.DeletionTimestamp != nil {
			return name
		}
	}
	return ""
}

// anyDeletedClaim returns the first terminating claim of a wanted ordinal; "" if there is none.
func anyDeletedClaim(w *world) string {
	if !claimsDeleted(w) {
		return ""
	}
	for _, name := range claimNames(w) {
		if c := w.claims[name]; c != nil && c.DeletionTimestamp != nil {
			return name
		}
	}
	return ""
}

// claimsDeleted reports whether any claim of the set is terminating.
func claimsDeleted(w *world) bool {
	for _, c := range w.claims {
		if c.DeletionTimestamp != nil {
			return true
		}
	}
	return false
}
