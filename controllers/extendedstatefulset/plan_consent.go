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

// Claims are called <template>-<name>-<ordinal>, and who makes an object chooses all
// of that. So a name says nothing about whose a claim is. The operator may write on
// every claim, but who may make the object need not: a claim that is not ours by its
// label is taken only if it says itself, in an annotation, that we may have it. Who
// can write that could have given it away anyway.
//
// Until then the ordinal has no owner: it is given to no StatefulSet, taken from none,
// and the pod webhook creates no pod for it. What runs is left alone.

// mayHave reports whether a set of that name may have a claim.
func mayHave(set string, claim metav1.Object) bool {
	if label := claim.GetLabels()[v1alpha1.LabelSet]; label != "" {
		return label == set
	}
	return claim.GetAnnotations()[v1alpha1.AnnotationAdopt] == set
}

// askOwner says whose claims those are, and how their owner gives them to a set. One that
// carries the label of another set is named alone.
func askOwner(namespace, set string, claims ...metav1.Object) string {
	told := some{}
	for _, c := range claims {
		if other := c.GetLabels()[v1alpha1.LabelSet]; other != "" {
			return fmt.Sprintf("claim %s is that of ExtendedStatefulSet %s, and two pods would have it: choose another name, or, if that one is gone, take label %s off the claim, and give it: %s",
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

// consent is the command by which the owner of claims gives them to a set.
func consent(namespace, set string, claims ...string) string {
	return fmt.Sprintf(
		"kubectl -n %s annotate pvc %s %s=%s",
		namespace, strings.Join(claims, " "), v1alpha1.AnnotationAdopt, set,
	)
}

// claimants are the StatefulSets, by name, whose claims would be called as those of a
// template of ours, with the template of theirs: data-my-web-0 is of template data of
// my-web, and of template data-my of web.
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

// withheld says why an ordinal is given to no version for now: a claim of it belongs to
// another owner, or would. "" if it may be given.
func (v storage) withheld(z zone, ordinal int32) string {
	if len(v.foreign)+len(v.claimants) == 0 {
		return ""
	}
	for _, t := range v.set.Spec.Template.Spec.VolumeClaimTemplates {
		name := claimName(v.set.Name, t.Name, z, ordinal)
		if v.foreign[name] != nil {
			return "the owner of claim " + name + " gives it"
		}
		if other := v.claimants[claimStem(t.Name, z.stem(v.set.Name))]; other != "" && v.claims[name] == nil {
			return "StatefulSet " + other + " is gone, whose claims would be called as those of " + z.stem(v.set.Name)
		}
	}
	return ""
}

// disputed says what claims are not ours, and what is to be done about it; "" if all
// that are needed are.
func (v storage) disputed() string {
	if len(v.foreign) > 0 {
		var all []metav1.Object
		for _, name := range slices.Sorted(maps.Keys(v.foreign)) {
			all = append(all, v.foreign[name])
		}
		return askOwner(v.set.Namespace, v.set.Name, all...)
	}
	for _, stem := range slices.Sorted(maps.Keys(v.claimants)) {
		return fmt.Sprintf("the claims %s-<ordinal> are those of StatefulSet %s too, so none are made: choose another name, here or for the claim template, or delete that StatefulSet",
			stem, v.claimants[stem])
	}
	return ""
}

// claimStem is the name of claims without their ordinal.
func claimStem(template, stem string) string { return template + "-" + stem }

// reach is how many ordinals, from 0, a StatefulSet may have that has those now.
func (v storage) reach(z zone, has span) int32 {
	for o := range v.replicas {
		if !has.has(o) && v.withheld(z, o) != "" {
			return o
		}
	}
	return v.replicas
}

// unconsented says what has to be so before a pod may be replaced that is on a claim that
// is not ours, as on one that lost its label: it would not come back. "" if none is.
func (v storage) unconsented() string {
	for _, t := range v.pods {
		if why := v.withheld(zone{index: t.zone}, t.ordinal); why != "" {
			return why
		}
	}
	return ""
}
