package spec

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/claim"
	"github.com/stateful-operator/stateful-operator/controllers/internal/unread"
)

// Max length of the name of an ExtendedStatefulSet. A pod label has the name of the StatefulSet, a
// hyphen and a hash of 10 characters as its value, which leaves 52 characters for <name>-v<version>.
// The version may have up to 5 digits. With zones, -z<index> uses part of these characters, and the
// index may have up to 2 digits.
const (
	MaxStatefulSetName = validation.LabelValueMaxLength - 1 - 10
	maxNameLength      = MaxStatefulSetName - len("-v") - 5
	maxNameInZones     = maxNameLength - len("-z") - 2
)

// UnreadParts returns the reasons why the operator did not read parts of a set.
func UnreadParts(set *v1alpha1.ExtendedStatefulSet) unread.Parts {
	return unread.Parts{Spec: set.Spec.Problem, Status: set.Status.Problem}
}

// Problem returns the reason why a spec cannot be served, with the text of admission errors; "" if it
// can.
func Problem(set *v1alpha1.ExtendedStatefulSet) string {
	if errs := servingErrors(set); len(errs) > 0 {
		return errs.ToAggregate().Error()
	}
	return ""
}

// Validate checks an object at admission, after defaulting, without reading other objects.
func Validate(set *v1alpha1.ExtendedStatefulSet) field.ErrorList {
	return append(servingErrors(set), tooWide(set.Spec.Scaling, field.NewPath("spec", "scaling"))...)
}

// servingErrors returns the errors that block all changes for an object. The schema rejects some of
// them too. They are repeated here for objects that were created under an older schema, or without the
// webhook.
func servingErrors(set *v1alpha1.ExtendedStatefulSet) field.ErrorList {
	if errs := unread.Validate(set.Spec.Problem); len(errs) > 0 {
		return errs
	}
	spec, at := &set.Spec, field.NewPath("spec")
	if errs := tooMuch(spec, at); len(errs) > 0 {
		return errs
	}
	errs := ValidateName(set, field.NewPath("metadata", "name"))
	errs = append(errs, ValidateReplicas(spec, at)...)
	errs = append(errs, validateStrategy(spec, at.Child("updateStrategy"))...)
	errs = append(errs, validateZones(spec, at)...)
	errs = append(errs, validateBudget(spec.PodDisruptionBudget, at.Child("podDisruptionBudget"))...)
	errs = append(errs, validateProbes(spec, at.Child("activePassiveProbes"))...)
	return append(errs, validateTemplate(set, at.Child("template"))...)
}

// zoneEnd matches names that conflict with zone names: web-z0 would have the claims of the first zone
// of web.
var zoneEnd = regexp.MustCompile(`-z[0-9]+$`)

// ValidateName checks the length and the characters of the name of an object.
func ValidateName(set *v1alpha1.ExtendedStatefulSet, at *field.Path) field.ErrorList {
	name, most, made := set.Name, maxNameLength, "<name>-v<version>"
	if len(set.Spec.Zones) > 0 {
		most, made = maxNameInZones, "<name>-z<index>-v<version>"
	}
	switch {
	case len(name) > most:
		return field.ErrorList{field.Invalid(at, name, fmt.Sprintf(
			"may have at most %d characters: its StatefulSets are named %s and may have %d; choose a shorter name", most, made, MaxStatefulSetName))}
	case len(validation.IsDNS1035Label(name)) > 0:
		return field.ErrorList{field.Invalid(at, name,
			"must start with a letter, contain only lower-case letters, digits and hyphens, and not end with a hyphen, because a Service has this name")}
	case zoneEnd.MatchString(name):
		return field.ErrorList{field.Invalid(at, name,
			"may not end with -z and a number, because it would share claims with a zone of another object; choose another name")}
	}
	return nil
}

// ValidateReplicas checks the scaling rules and the number of replicas.
func ValidateReplicas(spec *v1alpha1.ExtendedStatefulSetSpec, at *field.Path) field.ErrorList {
	rules, replicas := ptr.Deref(spec.Scaling, v1alpha1.Scaling{}), *spec.Template.Spec.Replicas
	least, most := ptr.Deref(rules.Min, 0), ptr.Deref(rules.Max, replicas)
	scaling, count := at.Child("scaling"), at.Child("template", "spec", "replicas")
	switch {
	case rules.Max != nil && least > most:
		return field.ErrorList{field.Invalid(
			scaling.Child("min"),
			least,
			"may not be more than scaling.max; lower it, or raise max",
		)}
	case rules.Max != nil && rules.OddOnly && least == most && most%2 == 0:
		return field.ErrorList{field.Invalid(
			scaling.Child("oddOnly"),
			true,
			"there is no odd number from scaling.min to scaling.max; change one of them, or remove oddOnly",
		)}
	case replicas < 0:
		return field.ErrorList{field.Invalid(count, replicas, "must be 0 or more")}
	case replicas < least:
		return field.ErrorList{field.Invalid(
			count,
			replicas,
			"may not be less than scaling.min; take more replicas, or lower min first",
		)}
	case replicas > most:
		return field.ErrorList{field.Invalid(
			count,
			replicas,
			"may not be more than scaling.max; take fewer replicas, or raise max first",
		)}
	case rules.OddOnly && replicas%2 == 0:
		return field.ErrorList{field.Invalid(
			count,
			replicas,
			"scaling.oddOnly allows odd numbers only; take one more or one less, or remove oddOnly first",
		)}
	}
	return nil
}

// validateStrategy checks the fields of updateStrategy.
func validateStrategy(spec *v1alpha1.ExtendedStatefulSetSpec, at *field.Path) field.ErrorList {
	strategy, replicas := &spec.UpdateStrategy, *spec.Template.Spec.Replicas
	var errs field.ErrorList
	switch canaries := *strategy.Canaries; {
	case canaries < 1:
		errs = append(errs, field.Invalid(at.Child("canaries"), canaries, "must be 1 or more"))
	case canaries > replicas && replicas > 0:
		errs = append(errs, field.Invalid(
			at.Child("canaries"),
			canaries,
			"may not be more than template.spec.replicas; lower canaries first, or take more replicas",
		))
	}
	if strategy.RetryCount < 0 {
		errs = append(errs, field.Invalid(at.Child("retryCount"), strategy.RetryCount, "must be 0 or more"))
	}
	canary, update := strategy.CanaryWatchTime, strategy.UpdateWatchTime
	for _, t := range []struct {
		name string
		time *metav1.Duration
	}{{"canaryWatchTime", canary}, {"updateWatchTime", update}} {
		if t.time.Duration <= 0 {
			errs = append(errs, field.Invalid(at.Child(t.name), t.time.Duration.String(), "must be more than 0, for example 5m"))
		}
		if t.time.Duration > MaxWatch {
			errs = append(errs, field.Invalid(
				at.Child(t.name),
				t.time.Duration.String(),
				"may be at most 720h; take a shorter time",
			))
		}
	}
	if canary.Duration > update.Duration && update.Duration > 0 {
		errs = append(errs, field.Invalid(at.Child("canaryWatchTime"), canary.Duration.String(),
			"may not be longer than updateWatchTime, which includes the canaries; shorten it, or lengthen updateWatchTime"))
	}
	errs = append(errs, validateHandover(spec, at.Child("handover"))...)
	errs = append(errs, validateJob(strategy.PreUpdateJob, at.Child("preUpdateJob"))...)
	return append(errs, validateJob(strategy.PostUpdateJob, at.Child("postUpdateJob"))...)
}

// validateHandover rejects Coexist for claims that two pods cannot share.
func validateHandover(spec *v1alpha1.ExtendedStatefulSetSpec, at *field.Path) field.ErrorList {
	if spec.UpdateStrategy.Handover != v1alpha1.HandoverCoexist {
		return nil
	}
	for _, t := range spec.Template.Spec.VolumeClaimTemplates {
		if !slices.Contains(t.Spec.AccessModes, corev1.ReadWriteMany) {
			return field.ErrorList{field.Invalid(at, v1alpha1.HandoverCoexist, fmt.Sprintf(
				"two pods would share each claim of template %q, which is not ReadWriteMany; use PerOrdinal, or make it ReadWriteMany if the application allows two pods to share its data", t.Name))}
		}
	}
	return nil
}

// validateJob checks that a Job can end. The API server validates the rest.
func validateJob(job *v1alpha1.UpdateJob, at *field.Path) field.ErrorList {
	if job == nil {
		return nil
	}
	spec := at.Child("spec")
	if job.Problem != "" {
		return field.ErrorList{field.Invalid(spec.Child("template"), field.OmitValueType{},
			"is not a valid pod template: "+job.Problem+"; correct or remove the named field")}
	}
	var errs field.ErrorList
	allowed := []corev1.RestartPolicy{corev1.RestartPolicyNever, corev1.RestartPolicyOnFailure}
	switch policy := job.Spec.Template.Spec.RestartPolicy; {
	case policy == "":
		errs = append(errs, field.Required(spec.Child("template", "spec", "restartPolicy"), "set Never or OnFailure: by default pods are always restarted, so the Job would never end"))
	case !slices.Contains(allowed, policy):
		errs = append(errs, field.Invalid(
			spec.Child("template", "spec", "restartPolicy"),
			policy,
			"must be Never or OnFailure: a Job whose pods are always restarted never ends",
		))
	}
	if n := job.Spec.Parallelism; n != nil && *n == 0 {
		errs = append(errs, field.Invalid(spec.Child("parallelism"), *n, "must be 1 or more: a Job without pods never ends"))
	}
	if job.Spec.ManagedBy != nil && *job.Spec.ManagedBy != batchv1.JobControllerName {
		errs = append(errs, field.Forbidden(spec.Child("managedBy"), "only the Job controller of Kubernetes may run these Jobs; remove it"))
	}
	errs = append(errs, validateOwnKeys(job.Labels, at.Child("metadata", "labels"))...)
	return append(errs, validateOwnKeys(job.Spec.Template.Labels, spec.Child("template", "metadata", "labels"))...)
}

// validateZones checks the names of zones and the Node label of zones.
func validateZones(spec *v1alpha1.ExtendedStatefulSetSpec, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, zone := range spec.Zones {
		p := at.Child("zones").Index(i)
		switch faults := validation.IsValidLabelValue(zone); {
		case zone == "":
			errs = append(errs, field.Required(p, "set the name of the zone, or remove the entry"))
		case slices.Contains(spec.Zones[:i], zone):
			errs = append(errs, field.Duplicate(p, zone))
		case len(faults) > 0:
			errs = append(errs, field.Invalid(p, zone, "is not a valid label value: "+strings.Join(faults, "; ")))
		}
	}
	if faults := validation.IsQualifiedName(spec.ZoneNodeLabel); len(faults) > 0 {
		errs = append(errs, field.Invalid(
			at.Child("zoneNodeLabel"),
			spec.ZoneNodeLabel,
			"is not a valid label key: "+strings.Join(faults, "; "),
		))
	}
	return errs
}

// validateBudget checks that a budget has exactly one field, with a valid number.
func validateBudget(budget *v1alpha1.DisruptionBudget, at *field.Path) field.ErrorList {
	if budget == nil {
		return nil
	}
	if (budget.MinAvailable == nil) == (budget.MaxUnavailable == nil) {
		return field.ErrorList{field.Invalid(at, budget, "must have either minAvailable or maxUnavailable; set one of them")}
	}
	name, value := "minAvailable", budget.MinAvailable
	if value == nil {
		name, value = "maxUnavailable", budget.MaxUnavailable
	}
	n, err := intstr.GetScaledValueFromIntOrPercent(value, 100, true)
	if err != nil || n < 0 || n > MaxReplicas {
		return field.ErrorList{field.Invalid(at.Child(name), value.String(), fmt.Sprintf("must be a number from 0 to %d, or a percentage from 0%% to 100%%", MaxReplicas))}
	}
	return nil
}

// validateProbes checks that each probe is for a container and has a command.
func validateProbes(spec *v1alpha1.ExtendedStatefulSetSpec, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, name := range sets.List(sets.KeySet(spec.ActivePassiveProbes)) {
		probe, p := spec.ActivePassiveProbes[name], at.Key(name)
		if !slices.ContainsFunc(spec.Template.Spec.Template.Spec.Containers, func(c corev1.Container) bool { return c.Name == name }) {
			errs = append(errs, field.Invalid(
				p,
				name,
				"is not the name of a container in template.spec.template.spec.containers; use the name of one of them",
			))
		}
		if probe.Exec == nil || len(probe.Exec.Command) == 0 || probe.Exec.Command[0] == "" {
			errs = append(errs, field.Required(p.Child("exec", "command"), `set the program and its arguments, for example ["/active.sh"]`))
		}
		errs = append(errs, tooMuchOfProbe(&probe, p)...)
		if probe.PeriodSeconds < 0 {
			errs = append(errs, field.Invalid(p.Child("periodSeconds"), probe.PeriodSeconds, "must be 1 or more"))
		}
		if probe.TimeoutSeconds < 0 {
			errs = append(errs, field.Invalid(p.Child("timeoutSeconds"), probe.TimeoutSeconds, "must be 1 or more"))
		}
	}
	return errs
}

// validateTemplate checks the template of the StatefulSets: reserved keys, the selector, the Service,
// ordinals and claim templates.
func validateTemplate(set *v1alpha1.ExtendedStatefulSet, at *field.Path) field.ErrorList {
	template := &set.Spec.Template
	errs := validateOwnKeys(template.Labels, at.Child("metadata", "labels"))
	errs = append(errs, validateOwnKeys(template.Annotations, at.Child("metadata", "annotations"))...)
	at = at.Child("spec")
	pod := at.Child("template")
	errs = append(errs, validateOwnKeys(template.Spec.Template.Labels, pod.Child("metadata", "labels"))...)
	errs = append(errs, validateOwnKeys(template.Spec.Template.Annotations, pod.Child("metadata", "annotations"))...)
	errs = append(errs, validateSelector(&template.Spec.Template, template.Spec.Selector, at)...)
	if len(template.Spec.Template.Spec.Containers) == 0 {
		errs = append(errs, field.Required(pod.Child("spec", "containers"), "a pod must have at least one container"))
	}
	if name := template.Spec.ServiceName; name != "" && len(validation.IsDNS1035Label(name)) > 0 {
		errs = append(errs, field.Invalid(at.Child("serviceName"), name,
			"is not a valid Service name; use a letter, followed by at most 62 lower-case letters, digits and hyphens"))
	}
	if name := template.Spec.ServiceName; name != "" && name == ActiveService(set) {
		errs = append(errs, field.Invalid(
			at.Child("serviceName"),
			name,
			"is reserved for the Service that selects the current version; choose another name",
		))
	}
	if o := template.Spec.Ordinals; o != nil && o.Start != 0 {
		errs = append(errs, field.Forbidden(at.Child("ordinals", "start"), "the operator uses it to move ordinals between versions; remove it"))
	}
	return append(errs, validateClaims(template.Spec.VolumeClaimTemplates, &template.Spec.Template.Spec, at)...)
}

// validateOwnKeys rejects labels and annotations that only the operator sets.
func validateOwnKeys(have map[string]string, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, key := range sets.List(sets.KeySet(have)) {
		if strings.HasPrefix(key, v1alpha1.GroupVersion.Group+"/") {
			errs = append(errs, field.Forbidden(at.Key(key), "keys with prefix "+v1alpha1.GroupVersion.Group+"/ are reserved for the operator; remove it"))
		}
	}
	return errs
}

// validateSelector checks that the selector is valid, matches the pod template, and has no labels of
// the operator.
func validateSelector(template *corev1.PodTemplateSpec, wanted *metav1.LabelSelector, at *field.Path) field.ErrorList {
	p := at.Child("selector")
	if wanted == nil || len(wanted.MatchLabels)+len(wanted.MatchExpressions) == 0 {
		return field.ErrorList{field.Required(p, "set the labels of the pods, for example matchLabels: {app: my-app}; an empty selector would match every pod")}
	}
	if errs := metavalidation.ValidateLabelSelector(wanted, metavalidation.LabelSelectorValidationOptions{}, p); len(errs) > 0 {
		return errs
	}
	if errs := validateOwnKeys(wanted.MatchLabels, p.Child("matchLabels")); len(errs) > 0 {
		return errs
	}
	for i, e := range wanted.MatchExpressions {
		if errs := validateOwnKeys(map[string]string{e.Key: ""}, p.Child("matchExpressions").Index(i).Child("key")); len(errs) > 0 {
			return errs
		}
	}
	selector, err := metav1.LabelSelectorAsSelector(wanted)
	if err != nil {
		return field.ErrorList{field.Invalid(p, metav1.FormatLabelSelector(wanted), err.Error())}
	}
	if !selector.Matches(labels.Set(template.Labels)) {
		return field.ErrorList{field.Invalid(at.Child("template", "metadata", "labels"), labels.Set(template.Labels).String(),
			"does not match template.spec.selector, which is "+selector.String()+"; add its labels to the pods")}
	}
	return nil
}

// validateClaims checks the claim templates. The name of a template is also the name of a volume and
// the prefix of claim names.
func validateClaims(templates []corev1.PersistentVolumeClaim, pod *corev1.PodSpec, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen := sets.New[string]()
	for i := range templates {
		t, p := &templates[i], at.Child("volumeClaimTemplates").Index(i)
		name, size := p.Child("metadata", "name"), claim.Storage(t)
		switch faults := validation.IsDNS1123Label(t.Name); {
		case t.Name == "":
			errs = append(errs, field.Required(name, "volume mounts refer to the claim by this name"))
		case seen.Has(t.Name):
			errs = append(errs, field.Duplicate(name, t.Name))
		case len(faults) > 0:
			errs = append(errs, field.Invalid(name, t.Name, strings.Join(faults, "; ")))
		}
		seen.Insert(t.Name)
		if size.Sign() <= 0 {
			errs = append(errs, field.Invalid(
				p.Child("spec", "resources", "requests", "storage"),
				size.String(),
				"must be more than 0, for example 1Gi",
			))
		}
		errs = append(errs, validateOwnKeys(t.Labels, p.Child("metadata", "labels"))...)
		errs = append(errs, validateOwnKeys(t.Annotations, p.Child("metadata", "annotations"))...)
	}
	for i, v := range pod.Volumes {
		if seen.Has(v.Name) {
			errs = append(errs, field.Invalid(at.Child("template", "spec", "volumes").Index(i).Child("name"), v.Name,
				"a volume claim template has the same name; rename one of them"))
		}
	}
	return errs
}

// ValidateChange checks fields that must not change, or not now.
func ValidateChange(old, set *v1alpha1.ExtendedStatefulSet) field.ErrorList {
	if UnreadParts(old).Any() {
		return nil // the old object is unknown
	}
	errs := claim.CheckChange(old.Spec.Template.Spec.VolumeClaimTemplates, set.Spec.Template.Spec.VolumeClaimTemplates,
		field.NewPath("spec", "template", "spec", "volumeClaimTemplates"))
	edited := old.Spec.UpdateStrategy.Handover != set.Spec.UpdateStrategy.Handover
	if edited && HandoverOf(old) != HandoverOf(set) && underWay(&old.Status) {
		errs = append(errs, field.Forbidden(field.NewPath("spec", "updateStrategy", "handover"), fmt.Sprintf(
			"handover cannot be changed during an upgrade (phase %s); wait until status.phase is Stable, Stale or Aborted", old.Status.Phase)))
	}
	if len(set.Spec.Template.Spec.VolumeClaimTemplates) > 0 && SwitchesZones(set, &old.Status) {
		errs = append(errs, field.Forbidden(field.NewPath("spec", "zones"), ZonesFixed))
	}
	return errs
}

// underWay reports whether two versions may have pods.
func underWay(s *v1alpha1.ExtendedStatefulSetStatus) bool {
	switch s.Phase {
	case v1alpha1.PhasePromoting:
		return s.Update != nil // the first version has no predecessor
	case v1alpha1.PhasePreJob, v1alpha1.PhaseCanary, v1alpha1.PhasePostJob, v1alpha1.PhaseCleaningUp:
		return true
	}
	return false
}
