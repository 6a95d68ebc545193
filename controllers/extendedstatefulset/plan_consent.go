package extendedstatefulset

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
)

// Claims are named <template>-<name>-<ordinal>, and the user who creates an object chooses all parts. A
// name therefore does not prove who owns a claim. The operator may write to every claim, but the user
// who creates the object may not have this permission. A claim without the operator's label is
// therefore used only if its annotation gives consent. A user who can write this annotation could give
// the claim away anyway.
//
// Until then the ordinal has no owner: it is neither assigned to a StatefulSet nor taken from one, and
// the pod webhook denies its pod. Running pods are left unchanged.

// mayHave reports whether the set with the given name may use a claim.
func mayHave(set string, claim metav1.Object) bool {
	if label := claim.GetLabels()[v1alpha1.LabelSet]; label != "" {
		return label == set
	}
	return claim.GetAnnotations()[v1alpha1.AnnotationAdopt] == set
}

// askOwner returns a message that names the claims of other owners and the command that gives consent.
// If a claim has the label of another set, the message names only that claim.
func askOwner(namespace, set string, claims ...metav1.Object) string {
	told := some{}
	for _, c := range claims {
		if other := c.GetLabels()[v1alpha1.LabelSet]; other != "" {
			return fmt.Sprintf("claim %s belongs to ExtendedStatefulSet %s, and two pods would share it: choose another name, or, if that object is deleted, remove label %s from the claim, and assign it: %s",
				c.GetName(), other, v1alpha1.LabelSet, consent(namespace, set, c.GetName()))
		}
		told.add(c.GetName())
	}
	command := consent(namespace, set, told.first...)
	if len(claims) > 1 {
		return fmt.Sprintf("claims %s belong to other owners, and are used only with their consent: %s", told.String(), command)
	}
	return fmt.Sprintf("claim %s belongs to another owner, and is used only with the owner's consent: %s", told.String(), command)
}

// consent returns the command by which the owner gives claims to a set.
func consent(namespace, set string, claims ...string) string {
	return fmt.Sprintf(
		"kubectl -n %s annotate pvc %s %s=%s",
		namespace, strings.Join(claims, " "), v1alpha1.AnnotationAdopt, set,
	)
}

// claimants returns the StatefulSet names, each with a claim template name, whose claims would have the
// same names as those of the given template and stem. For example, data-my-web-0 may belong to template
// data of my-web, or to template data-my of web.
func claimants(template, stem string) iter.Seq2[string, string] {
	return func(yield func(name, template string) bool) {
		all := template + "-" + stem
		for i := range all {
			if all[i] == '-' && i > 0 && i < len(all)-1 && !yield(all[i+1:], all[:i]) {
				return
			}
		}
	}
}

// withheld returns the reason why an ordinal cannot be assigned: one of its claims belongs, or would
// belong, to another owner. "" means that it can be assigned.
func withheld(w *world, z zone, ordinal int32) string {
	if len(w.foreign)+len(w.claimants) == 0 {
		return ""
	}
	for _, t := range w.set.Spec.Template.Spec.VolumeClaimTemplates {
		name := claimName(w.set.Name, t.Name, z, ordinal)
		if w.foreign[name] != nil {
			return "the owner of claim " + name + " consents"
		}
		if other := w.claimants[claimStem(t.Name, z.stem(w.set.Name))]; other != "" && w.claims[name] == nil {
			return "StatefulSet " + other + " is deleted, because its claims have the same names as those of " + z.stem(w.set.Name)
		}
	}
	return ""
}

// disputed describes the claims of other owners and how to resolve the conflict; "" if there are none.
func disputed(w *world) string {
	if len(w.foreign) > 0 {
		var all []metav1.Object
		for _, name := range slices.Sorted(maps.Keys(w.foreign)) {
			all = append(all, w.foreign[name])
		}
		return askOwner(w.set.Namespace, w.set.Name, all...)
	}
	for _, stem := range slices.Sorted(maps.Keys(w.claimants)) {
		return fmt.Sprintf("the claims %s-<ordinal> also belong to StatefulSet %s, so none are created: rename this object or the claim template, or delete that StatefulSet",
			stem, w.claimants[stem])
	}
	return ""
}

// claimStem returns the name of a claim without the ordinal.
func claimStem(template, stem string) string { return template + "-" + stem }

// reach returns how many ordinals, counted from 0, a StatefulSet with span has may get. It stops at the
// first withheld ordinal that the StatefulSet does not have.
func reach(w *world, z zone, has span) int32 {
	for o := range w.replicas {
		if !has.has(o) && withheld(w, z, o) != "" {
			return o
		}
	}
	return w.replicas
}

// unconsented returns the reason why no pod may be replaced now; "" if there is none. A pod whose claim
// lacks consent, for example because the claim lost its label, could not be recreated.
func unconsented(w *world) string {
	for _, t := range w.pods {
		if why := withheld(w, zone{index: t.zone}, t.ordinal); why != "" {
			return why
		}
	}
	return ""
}
