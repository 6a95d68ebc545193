package children

import (
	"fmt"
	"iter"
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

// MayHave reports whether the set with the given name may use a claim: the claim has the label of the
// set, or its owner gave consent.
func MayHave(set string, claim metav1.Object) bool {
	if label := claim.GetLabels()[v1alpha1.LabelSet]; label != "" {
		return label == set
	}
	return claim.GetAnnotations()[v1alpha1.AnnotationAdopt] == set
}

// AskOwner returns a message that names the claims of other owners and the command that gives consent.
// If a claim has the label of another set, the message names only that claim.
func AskOwner(namespace, set string, claims ...metav1.Object) string {
	names := ShortList{}
	for _, c := range claims {
		if other := c.GetLabels()[v1alpha1.LabelSet]; other != "" {
			return fmt.Sprintf("claim %s belongs to ExtendedStatefulSet %s, and two pods would share it: choose another name, or, if that object is deleted, remove label %s from the claim, and assign it: %s",
				c.GetName(), other, v1alpha1.LabelSet, Consent(namespace, set, c.GetName()))
		}
		names.Add(c.GetName())
	}
	command := Consent(namespace, set, names.first...)
	if len(claims) > 1 {
		return fmt.Sprintf("claims %s belong to other owners, and are used only with their consent: %s", names.String(), command)
	}
	return fmt.Sprintf("claim %s belongs to another owner, and is used only with the owner's consent: %s", names.String(), command)
}

// Consent returns the command by which the owner gives claims to a set.
func Consent(namespace, set string, claims ...string) string {
	return fmt.Sprintf(
		"kubectl -n %s annotate pvc %s %s=%s",
		namespace, strings.Join(claims, " "), v1alpha1.AnnotationAdopt, set,
	)
}

// Claimants returns the StatefulSet names, each with a claim template name, whose claims would have the
// same names as those of the given template and stem. For example, data-my-web-0 may belong to template
// data of my-web, or to template data-my of web.
func Claimants(template, stem string) iter.Seq2[string, string] {
	return func(yield func(name, template string) bool) {
		all := template + "-" + stem
		for i := range all {
			if all[i] == '-' && i > 0 && i < len(all)-1 && !yield(all[i+1:], all[:i]) {
				return
			}
		}
	}
}
