package spec

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/bounds"
	"github.com/stateful-operator/stateful-operator/controllers/internal/claim"
	"github.com/stateful-operator/stateful-operator/controllers/internal/identity"
	"github.com/stateful-operator/stateful-operator/controllers/internal/nodestate"
	"github.com/stateful-operator/stateful-operator/controllers/internal/unread"
)

// UnreadParts returns the parts of a set that the operator could not decode, with the reasons.
func UnreadParts(set *v1alpha1.StatefulCluster) unread.Parts {
	return unread.Parts{Spec: set.Spec.Problem, Status: set.Status.Problem}
}

// MaxNameLength is the max length of the name of a StatefulCluster: its pods add a hyphen and an
// id, and a pod's hostname has at most 63 characters.
const MaxNameLength = validation.DNS1123LabelMaxLength - 1 - identity.Length

// Problem returns why a spec cannot be served, with the messages of admission; "" if it is valid.
func Problem(set *v1alpha1.StatefulCluster) string {
	if errs := Validate(set); len(errs) > 0 {
		return errs.ToAggregate().Error()
	}
	return ""
}

// Validate validates an object without other objects, after defaulting.
func Validate(set *v1alpha1.StatefulCluster) field.ErrorList {
	if errs := unread.Validate(set.Spec.Problem); len(errs) > 0 {
		return errs
	}
	spec, path := &set.Spec, field.NewPath("spec")
	var errs field.ErrorList
	if len(set.Name) > MaxNameLength {
		errs = append(errs, field.Invalid(field.NewPath("metadata", "name"), set.Name, fmt.Sprintf(
			"must be no more than %d characters: pods add %d for their id, and a hostname has at most %d; choose a shorter name",
			MaxNameLength, 1+identity.Length, validation.DNS1123LabelMaxLength)))
	}
	for _, m := range validation.IsDNS1123Label(set.Name) {
		if len(set.Name) <= MaxNameLength {
			errs = append(errs, field.Invalid(field.NewPath("metadata", "name"), set.Name, m))
		}
	}
	if *spec.Replicas < 0 {
		errs = append(errs, field.Invalid(path.Child("replicas"), *spec.Replicas, "must be 0 or more"))
	}
	errs = append(errs, validateBounds(spec, path)...)
	if len(spec.Template.Spec.Containers) == 0 {
		errs = append(errs, field.Required(path.Child("template", "spec", "containers"), "a pod has at least one container"))
	}
	errs = append(errs, validateSelector(spec, path)...)
	errs = append(errs, validateClaims(set, path.Child("volumeClaimTemplates"))...)
	errs = append(errs, validateBudgets(spec, path)...)
	errs = append(errs, validateDrain(spec, path)...)
	return errs
}

// validateBounds applies the bounds of the schema to objects that were stored before the schema had
// them, and rejects a spec that is too large.
func validateBounds(spec *v1alpha1.StatefulClusterSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if *spec.Replicas > MaxReplicas {
		errs = append(errs, field.Invalid(path.Child("replicas"), *spec.Replicas, fmt.Sprintf("must be no more than %d; lower it, and create another set for the rest", MaxReplicas)))
	}
	errs = append(errs, bounds.Selector(spec.Selector, path.Child("selector"))...)
	errs = append(errs, bounds.Template(&spec.Template, path.Child("template"))...)
	errs = append(errs, bounds.AtMost(len(spec.VolumeClaimTemplates), bounds.Claims, path.Child("volumeClaimTemplates"))...)
	errs = append(errs, bounds.Pods(int(*spec.Replicas), &spec.Template, path.Child("replicas"))...)
	return append(errs, bounds.Spec(spec, path)...)
}

// validateSelector validates the selector, and the labels of the template.
func validateSelector(spec *v1alpha1.StatefulClusterSpec, path *field.Path) field.ErrorList {
	at := path.Child("selector")
	if spec.Selector == nil || len(spec.Selector.MatchLabels)+len(spec.Selector.MatchExpressions) == 0 {
		return field.ErrorList{field.Required(at, "set the labels of the pods, for example matchLabels: {app: my-app}; an empty selector would match every pod")}
	}
	if errs := metavalidation.ValidateLabelSelector(spec.Selector, metavalidation.LabelSelectorValidationOptions{}, at); len(errs) > 0 {
		return errs
	}
	selector, err := metav1.LabelSelectorAsSelector(spec.Selector)
	if err != nil {
		return field.ErrorList{field.Invalid(at, spec.Selector, err.Error())}
	}
	have := spec.Template.Labels
	if len(have) == 0 {
		have = spec.Selector.MatchLabels
	}
	templateLabels := path.Child("template", "metadata", "labels")
	if !selector.Matches(labels.Set(have)) {
		return field.ErrorList{field.Invalid(templateLabels, have,
			"must match spec.selector; add the selector's labels, or leave the labels out to get the selector's matchLabels")}
	}
	for _, reserved := range []string{v1alpha1.LabelCluster, v1alpha1.LabelClusterUID, v1alpha1.LabelMember, v1alpha1.LabelRetained, LabelRevision} {
		if _, taken := have[reserved]; taken {
			return field.ErrorList{field.Forbidden(templateLabels.Key(reserved), "the operator sets this label; remove it")}
		}
	}
	return nil
}

// validateClaims validates the names and sizes of the claim templates.
func validateClaims(set *v1alpha1.StatefulCluster, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen := map[string]bool{}
	for i, t := range set.Spec.VolumeClaimTemplates {
		at := path.Index(i).Child("metadata", "name")
		switch full := claim.Name(set.Name, t.Name, strings.Repeat("x", identity.Length)); {
		case t.Name == "":
			errs = append(errs, field.Required(at, "the claim is mounted under this name"))
		case seen[t.Name]:
			errs = append(errs, field.Duplicate(at, t.Name))
		case len(validation.IsDNS1123Label(t.Name)) > 0:
			errs = append(errs, field.Invalid(at, t.Name, strings.Join(validation.IsDNS1123Label(t.Name), "; ")))
		case len(full) > validation.DNS1123SubdomainMaxLength:
			errs = append(errs, field.Invalid(at, t.Name, "is too long: the claim's name would have more than 253 characters"))
		}
		seen[t.Name] = true
		size := claim.Storage(&t)
		if size.Sign() <= 0 {
			errs = append(errs, field.Invalid(path.Index(i).Child("spec", "resources", "requests", "storage"), size.String(),
				"must be more than 0, for example 1Gi"))
		}
	}
	for i, v := range set.Spec.Template.Spec.Volumes {
		if seen[v.Name] {
			errs = append(errs, field.Invalid(field.NewPath("spec", "template", "spec", "volumes").Index(i).Child("name"), v.Name,
				"a volume claim template has this name too; rename one of them"))
		}
	}
	return errs
}

// validateBudgets rejects an update strategy with which no member could be updated.
func validateBudgets(spec *v1alpha1.StatefulClusterSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	update := path.Child("updateStrategy", "rollingUpdate")
	if u := spec.UpdateStrategy.RollingUpdate; u != nil {
		if spec.UpdateStrategy.Type == v1alpha1.OnDeleteStrategy {
			errs = append(errs, field.Forbidden(update, "only allowed with type RollingUpdate; remove it or change the type"))
		}
		unavailable := share(ptr.Deref(u.MaxUnavailable, intstr.FromInt32(1)), 100, true)
		surge := share(ptr.Deref(u.MaxSurge, intstr.FromInt32(0)), 100, true)
		if unavailable == 0 && surge == 0 {
			errs = append(errs, field.Invalid(update.Child("maxUnavailable"), u.MaxUnavailable.String(),
				"must not be 0 unless maxSurge is 1 or more; with both 0, no member could be updated"))
		}
	}
	return errs
}

// validateDrain rejects a template whose pods may start on a cordoned Node: a new member would have
// to leave again, without end.
func validateDrain(spec *v1alpha1.StatefulClusterSpec, path *field.Path) field.ErrorList {
	template := &spec.Template.Spec
	at := path.Child("template", "spec")
	const why = "with replacement.onEviction ReplaceFirst, new members must not start on a cordoned node"
	switch {
	case spec.Replacement.OnEviction != v1alpha1.EvictionReplacesFirst:
		return nil
	case template.NodeName != "":
		return field.ErrorList{field.Forbidden(at.Child("nodeName"), why+"; remove it, or use nodeSelector or affinity")}
	case nodestate.ToleratedCordon(template.Tolerations) != "":
		return field.ErrorList{field.Forbidden(at.Child("tolerations"), fmt.Sprintf(
			"%s, but one of these tolerations tolerates taint %s; remove it, or list the taints to tolerate", why, nodestate.ToleratedCordon(template.Tolerations)))}
	}
	return nil
}

// StartsOnCordoned reports whether pods of a template may start on a cordoned Node.
func StartsOnCordoned(template *corev1.PodSpec) bool {
	return template.NodeName != "" || nodestate.ToleratedCordon(template.Tolerations) != ""
}

// Advise returns warnings about template fields that are not useful in a set.
func Advise(set *v1alpha1.StatefulCluster) (warnings []string) {
	spec, at := &set.Spec.Template.Spec, field.NewPath("spec", "template", "spec")
	warn := func(name, why string) {
		warnings = append(warnings, fmt.Sprintf("%s: %s", at.Child(name), why))
	}
	if spec.Hostname != "" && set.Spec.ServiceName != "" {
		warn("hostname", "has no effect: with serviceName set, the hostname of each pod is its name; remove it")
	} else if spec.Hostname != "" {
		warn("hostname", "all members have the same hostname; remove it, and the hostname of each pod is its name")
	}
	if spec.NodeName != "" {
		warn("nodeName", fmt.Sprintf("bypasses the scheduler: all members run on node %s, and so do replacements when the node is lost; remove it, or use nodeSelector or affinity", spec.NodeName))
	}
	if p := spec.RestartPolicy; p != "" && p != corev1.RestartPolicyAlways {
		warn("restartPolicy", fmt.Sprintf("with %s, the pod may end when a container ends; its member is then lost and replaced with empty claims; remove it, or set Always", p))
	}
	if spec.ActiveDeadlineSeconds != nil {
		warn("activeDeadlineSeconds", fmt.Sprintf("each pod is terminated after %d seconds; its member is then lost and replaced with empty claims; remove it", *spec.ActiveDeadlineSeconds))
	}
	return warnings
}

// ValidateChange rejects changes of immutable fields. The identity of members depends on the
// selector, so CEL rules of the schema also reject a changed one.
func ValidateChange(old, set *v1alpha1.StatefulCluster) field.ErrorList {
	if UnreadParts(old).Any() {
		return nil // the old spec is unknown
	}
	path := field.NewPath("spec")
	var errs field.ErrorList
	if !apiequality.Semantic.DeepEqual(old.Spec.Selector, set.Spec.Selector) {
		errs = append(errs, field.Forbidden(path.Child("selector"), "is immutable; delete the StatefulCluster (its claims stay under the Retain policy) and create another"))
	}
	return append(errs, claim.CheckChange(old.Spec.VolumeClaimTemplates, set.Spec.VolumeClaimTemplates, path.Child("volumeClaimTemplates"))...)
}
