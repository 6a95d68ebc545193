package facts

import (
	"fmt"
	"iter"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/children"
)

// There are two kinds of conflicts about claims. A foreign claim exists, and its owner has not given
// consent (children.MayHave). A missing claim has claimants: unrelated StatefulSets whose claims would
// have the same name. In both cases the ordinals of the claims are withheld: they get no pods.

// ClaimNames returns the names of the claims of the wanted ordinals.
func ClaimNames(w *World) iter.Seq2[children.Place, string] {
	return func(yield func(children.Place, string) bool) {
		for at, template := range WantedClaims(w) {
			if !yield(at, children.ClaimName(w.Set.Name, template.Name, at.Zone, at.Ordinal)) {
				return
			}
		}
	}
}

// WantedClaims returns the claim templates for each wanted ordinal.
func WantedClaims(w *World) iter.Seq2[children.Place, *corev1.PersistentVolumeClaim] {
	templates := w.Set.Spec.Template.Spec.VolumeClaimTemplates
	return func(yield func(children.Place, *corev1.PersistentVolumeClaim) bool) {
		for _, z := range w.Zones {
			for o := range w.Replicas {
				for i := range templates {
					if !yield(children.Place{Zone: z, Ordinal: o}, &templates[i]) {
						return
					}
				}
			}
		}
	}
}

// ClaimTaken reports whether a claim of an ordinal belongs, or would belong, to another owner. It must
// be neither created nor changed then.
func ClaimTaken(w *World, template string, at children.Place) bool {
	name, stem := children.ClaimName(w.Set.Name, template, at.Zone, at.Ordinal), children.ClaimStem(template, at.Zone.Stem(w.Set.Name))
	if w.ForeignClaims[name] != nil {
		return true
	}
	return w.Claims[name] == nil && w.Claimants[stem] != ""
}

// DeletedClaimOf returns the name of a terminating claim of an ordinal; "" if there is none. The claim,
// and with it the user's data, is removed when its pod ends.
func DeletedClaimOf(w *World, z children.Zone, ordinal int32) string {
	for _, t := range w.Set.Spec.Template.Spec.VolumeClaimTemplates {
		name := children.ClaimName(w.Set.Name, t.Name, z, ordinal)
		if c := w.Claims[name]; c != nil && c.DeletionTimestamp != nil {
			return name
		}
	}
	return ""
}

// anyDeletedClaim returns the first terminating claim of a wanted ordinal; "" if there is none.
func anyDeletedClaim(w *World) string {
	if !claimsDeleted(w) {
		return ""
	}
	for _, name := range ClaimNames(w) {
		if c := w.Claims[name]; c != nil && c.DeletionTimestamp != nil {
			return name
		}
	}
	return ""
}

// claimsDeleted reports whether any claim of the set is terminating.
func claimsDeleted(w *World) bool {
	for _, c := range w.Claims {
		if c.DeletionTimestamp != nil {
			return true
		}
	}
	return false
}

// Withheld returns what must happen before an ordinal can be assigned, if one of its claims belongs, or
// would belong, to another owner. "" means that it can be assigned. The text follows "waiting until".
func Withheld(w *World, z children.Zone, ordinal int32) string {
	if len(w.ForeignClaims)+len(w.Claimants) == 0 {
		return ""
	}
	for _, t := range w.Set.Spec.Template.Spec.VolumeClaimTemplates {
		name := children.ClaimName(w.Set.Name, t.Name, z, ordinal)
		if w.ForeignClaims[name] != nil {
			return "the owner of claim " + name + " consents"
		}
		if other := w.Claimants[children.ClaimStem(t.Name, z.Stem(w.Set.Name))]; other != "" && w.Claims[name] == nil {
			return "StatefulSet " + other + " is deleted, because its claims have the same names as those of " + z.Stem(w.Set.Name)
		}
	}
	return ""
}

// Disputed describes the claims of other owners and how to resolve the conflict; "" if there are none.
func Disputed(w *World) string {
	if len(w.ForeignClaims) > 0 {
		var all []metav1.Object
		for _, name := range slices.Sorted(maps.Keys(w.ForeignClaims)) {
			all = append(all, w.ForeignClaims[name])
		}
		return children.AskOwner(w.Set.Namespace, w.Set.Name, all...)
	}
	for _, stem := range slices.Sorted(maps.Keys(w.Claimants)) {
		return fmt.Sprintf("the claims %s-<ordinal> also belong to StatefulSet %s, so none are created: rename this object or the claim template, or delete that StatefulSet",
			stem, w.Claimants[stem])
	}
	return ""
}

// Assignable returns how many ordinals, counted from 0, a StatefulSet with the given span may have. It
// stops at the first withheld ordinal that the StatefulSet does not have yet.
func Assignable(w *World, z children.Zone, have children.Span) int32 {
	for o := range w.Replicas {
		if !have.Has(o) && Withheld(w, z, o) != "" {
			return o
		}
	}
	return w.Replicas
}

// Unconsented returns what must happen before any pod may be replaced; "" if pods may be replaced. A pod
// whose claim lacks consent, for example because the claim lost its label, could not be recreated. The
// text follows "waiting until".
func Unconsented(w *World) string {
	for _, t := range w.Pods {
		if why := Withheld(w, children.Zone{Index: t.Zone}, t.Ordinal); why != "" {
			return why
		}
	}
	return ""
}
