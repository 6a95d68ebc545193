package statefulcluster

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

// MaxNameLength is the max length of the name of a StatefulCluster: its pods add a hyphen and an
// id, and a pod's hostname has at most 63 characters.
const MaxNameLength = validation.DNS1123LabelMaxLength - 1 - identity.Length

// withDefaults sets the defaults of the schema, for objects that were not defaulted by the API
// server, and the labels of a template that has none.
func withDefaults(set *v1alpha1.StatefulCluster) *v1alpha1.StatefulCluster {
	set = set.DeepCopy()
	spec := &set.Spec
	fill(&spec.Replicas, 1)
	fill(&spec.RevisionHistoryLimit, 10)
	orElse(&spec.PodManagementPolicy, v1alpha1.ParallelPodManagement)
	orElse(&spec.UpdateStrategy.Type, v1alpha1.RollingUpdateStrategy)
	orElse(&spec.UpdateStrategy.InPlace, v1alpha1.InPlaceIfPossible)
	retention := &spec.PersistentVolumeClaimRetentionPolicy
	orElse(&retention.WhenDeleted, v1alpha1.RetainClaims)
	orElse(&retention.WhenScaled, v1alpha1.RetainClaims)
	orElse(&retention.WhenLost, v1alpha1.RetainClaims)
	fill(&spec.Replacement.NodeLostSeconds, defaultNodeLostSeconds)
	fill(&spec.Replacement.UnreadySeconds, defaultUnreadySeconds)
	fill(&spec.Replacement.StartupSeconds, defaultStartupSeconds)
	fill(&spec.Replacement.PendingSeconds, defaultPendingSeconds)
	orElse(&spec.Replacement.OnEviction, v1alpha1.EvictionReplaces)
	orElse(&spec.Replacement.WhenNoneReady, v1alpha1.NoneReadyHolds)
	fill(&spec.Replacement.MaxConcurrent, intstr.FromString("25%"))
	return set
}

func fill[T any](field **T, value T) {
	if *field == nil {
		*field = &value
	}
}

func orElse[T ~string](field *T, value T) {
	if *field == "" {
		*field = value
	}
}

// problem returns why a spec cannot be served, with the messages of admission; "" if it is valid.
func problem(set *v1alpha1.StatefulCluster) string {
	if errs := validate(set); len(errs) > 0 {
		return errs.ToAggregate().Error()
	}
	return ""
}

// validate validates an object without other objects, after defaulting.
func validate(set *v1alpha1.StatefulCluster) field.ErrorList {
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

// maxReplicas is the max number of members of a set.
const maxReplicas = 20000

// validateBounds applies the bounds of the schema to objects that were stored before the schema had
// them, and rejects a spec that is too large.
func validateBounds(spec *v1alpha1.StatefulClusterSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if *spec.Replicas > maxReplicas {
		errs = append(errs, field.Invalid(path.Child("replicas"), *spec.Replicas, fmt.Sprintf("must be no more than %d; lower it, and create another set for the rest", maxReplicas)))
	}
	errs = append(errs, bounds.Selector(spec.Selector, path.Child("selector"))...)
	errs = append(errs, bounds.Template(&spec.Template, path.Child("template"))...)
	errs = append(errs, bounds.AtMost(len(spec.VolumeClaimTemplates), bounds.Claims, path.Child("volumeClaimTemplates"))...)
	errs = append(errs, bounds.Pods(int(*spec.Replicas), &spec.Template, path.Child("replicas"))...)
	return append(errs, bounds.Spec(spec, path)...)
}

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
	for _, reserved := range []string{v1alpha1.LabelCluster, v1alpha1.LabelClusterUID, v1alpha1.LabelMember, v1alpha1.LabelRetained, labelRevision} {
		if _, taken := have[reserved]; taken {
			return field.ErrorList{field.Forbidden(templateLabels.Key(reserved), "the operator sets this label; remove it")}
		}
	}
	return nil
}

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

// startsOnCordoned reports whether pods of a template may start on a cordoned Node.
func startsOnCordoned(template *corev1.PodSpec) bool {
	return template.NodeName != "" || nodestate.ToleratedCordon(template.Tolerations) != ""
}

// advise returns warnings about template fields that are not useful in a set.
func advise(set *v1alpha1.StatefulCluster) (warnings []string) {
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

// validateChange rejects changes of immutable fields. The identity of members depends on the
// selector, so CEL rules of the schema also reject a changed one.
func validateChange(old, set *v1alpha1.StatefulCluster) field.ErrorList {
	if unreadParts(old).Any() {
		return nil // the old spec is unknown
	}
	path := field.NewPath("spec")
	var errs field.ErrorList
	if !apiequality.Semantic.DeepEqual(old.Spec.Selector, set.Spec.Selector) {
		errs = append(errs, field.Forbidden(path.Child("selector"), "is immutable; delete the StatefulCluster (its claims stay under the Retain policy) and create another"))
	}
	return append(errs, claim.CheckChange(old.Spec.VolumeClaimTemplates, set.Spec.VolumeClaimTemplates, path.Child("volumeClaimTemplates"))...)
}

// changedClaims returns the errors of claim templates that were changed while the webhook was down.
// Without this check, members that lack a new claim would count as lost.
func changedClaims(w *world) string {
	if len(w.revisions) == 0 {
		return ""
	}
	last, ok := dataOf(w.revisions[len(w.revisions)-1])
	if !ok {
		return ""
	}
	errs := claim.CheckChange(last.VolumeClaimTemplates, w.set.Spec.VolumeClaimTemplates, field.NewPath("spec", "volumeClaimTemplates"))
	if len(errs) == 0 {
		return ""
	}
	return errs.ToAggregate().Error()
}

// share returns a number, or a percentage of whole, at most maxReplicas.
func share(v intstr.IntOrString, whole int, roundUp bool) int {
	n, err := intstr.GetScaledValueFromIntOrPercent(&v, whole, roundUp)
	if err != nil {
		return 0
	}
	return min(max(0, n), maxReplicas)
}

// settings are the settings of the spec, with defaults.
type settings struct{ set *v1alpha1.StatefulCluster }

func (s settings) replicas() int { return int(*s.set.Spec.Replicas) }

// maxConcurrent returns how many members may be in replacement at the same time.
func (s settings) maxConcurrent() int {
	return max(1, share(*s.set.Spec.Replacement.MaxConcurrent, s.replicas(), false))
}

// parallel reports whether members are created without waiting for each other.
func (s settings) parallel() bool {
	return s.set.Spec.PodManagementPolicy == v1alpha1.ParallelPodManagement
}

// orderedReady reports whether members are created one at a time.
func (s settings) orderedReady() bool {
	return s.set.Spec.PodManagementPolicy == v1alpha1.OrderedReadyPodManagement
}

// rolling reports whether the operator updates members automatically.
func (s settings) rolling() bool {
	return s.set.Spec.UpdateStrategy.Type == v1alpha1.RollingUpdateStrategy
}

func (s settings) rollingUpdate() v1alpha1.RollingUpdate {
	return ptr.Deref(s.set.Spec.UpdateStrategy.RollingUpdate, v1alpha1.RollingUpdate{})
}

// partition returns the number of members that an update leaves at their revision.
func (s settings) partition() int { return int(s.rollingUpdate().Partition) }

func (s settings) maxUnavailable() int {
	n := share(ptr.Deref(s.rollingUpdate().MaxUnavailable, intstr.FromInt32(1)), s.replicas(), true)
	if n == 0 && s.maxSurge() == 0 {
		return 1
	}
	return n
}

func (s settings) maxSurge() int {
	if !s.rolling() {
		return 0
	}
	return share(ptr.Deref(s.rollingUpdate().MaxSurge, intstr.FromInt32(0)), s.replicas(), true)
}

// replacesFirst reports whether evictions are refused, and members on cordoned Nodes are retired
// only after a new member is available.
func (s settings) replacesFirst() bool {
	return s.set.Spec.Replacement.OnEviction == v1alpha1.EvictionReplacesFirst
}

// maxExtra returns the max number of members above the replicas: those that a surge update adds.
// With onEviction ReplaceFirst it is at least one, since otherwise no drain could complete.
func (s settings) maxExtra() int {
	if s.replacesFirst() {
		return max(1, s.maxSurge())
	}
	return s.maxSurge()
}

// retention returns the retention policy of claims.
func (s settings) retention() v1alpha1.ClaimRetentionPolicy {
	return s.set.Spec.PersistentVolumeClaimRetentionPolicy
}

// deletesClaims reports whether claims are deleted with the set.
func (s settings) deletesClaims() bool { return s.retention().WhenDeleted == v1alpha1.DeleteClaims }

// nameOf returns the name of the member with the given id. idOf is its inverse.
func (s settings) nameOf(id string) string { return s.set.Name + "-" + id }
func (s settings) idOf(name string) string { return strings.TrimPrefix(name, s.set.Name+"-") }
