package spec

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/policy"
	"github.com/stateful-operator/stateful-operator/controllers/internal/unread"
)

// Limits of the pods that get the gate, and of the errors about them.
const (
	// MaxContainers is the max number of containers of a pod, including init containers.
	MaxContainers = 200
	// MaxOurs is the max number of containers that the operator adds, besides one for each image.
	MaxOurs = 3
	// MaxFaults is the max number of errors of one kind.
	MaxFaults = 10
)

// UnreadParts returns the parts of an object that the operator could not decode, with the
// errors.
func UnreadParts(s *v1.StatefulSingleton) unread.Parts {
	return unread.Parts{Spec: s.Spec.Problem, Status: s.Status.Problem}
}

// WithDefaults returns a copy with the defaults of the schema, for objects that the API
// server has not defaulted.
func WithDefaults(s *v1.StatefulSingleton) *v1.StatefulSingleton {
	s = s.DeepCopy()
	spec := &s.Spec
	spec.MaxTransitionTime = ptr.To(ptr.Deref(spec.MaxTransitionTime, 300))
	spec.TerminationGracePeriod = ptr.To(ptr.Deref(spec.TerminationGracePeriod, 30))
	spec.RespectPodGracePeriod = ptr.To(ptr.Deref(spec.RespectPodGracePeriod, true))
	spec.StatusSidecar = ptr.To(ptr.Deref(spec.StatusSidecar, false))
	if spec.GateMode == "" {
		spec.GateMode = v1.GateAuto
	}
	if spec.OnTimeout == "" {
		spec.OnTimeout = v1.TimeoutWaits
	}
	if spec.OnEviction == "" {
		spec.OnEviction = v1.EvictionReplaces
	}
	if spec.OnCrashLoop == "" {
		spec.OnCrashLoop = v1.CrashLoopRestarts
	}
	if spec.Fencing == nil {
		spec.Fencing = &v1.Fencing{}
	}
	if spec.Fencing.Mode == "" {
		spec.Fencing.Mode = v1.FencingProof
	}
	spec.Fencing.LeaseDurationSeconds = ptr.To(ptr.Deref(spec.Fencing.LeaseDurationSeconds, 15))
	return s
}

// Problem returns the validation errors of a spec; "" if there are none.
func Problem(s *v1.StatefulSingleton) string {
	if errs := Validate(s); len(errs) > 0 {
		return errs.ToAggregate().Error()
	}
	return ""
}

// Validate validates an object on its own, after defaults.
func Validate(s *v1.StatefulSingleton) field.ErrorList {
	if errs := unread.Validate(s.Spec.Problem); len(errs) > 0 {
		return errs
	}
	spec, at := &s.Spec, field.NewPath("spec")
	var errs field.ErrorList
	if name := field.NewPath("metadata", "name"); len(s.Name) > validation.LabelValueMaxLength {
		errs = append(errs, field.Invalid(name, s.Name, fmt.Sprintf(
			"must have at most %d characters, because it is a label value of pods", validation.LabelValueMaxLength)))
	}
	errs = append(errs, ValidateSelector(spec.Selector, at.Child("selector"))...)
	if t := *spec.MaxTransitionTime; t < 1 || t > 3600 {
		errs = append(errs, field.Invalid(at.Child("maxTransitionTime"), t, "must be from 1 to 3600 seconds"))
	}
	errs = append(errs, validateContainers(spec.Containers, at.Child("containers"))...)
	errs = append(errs, validateFencing(s, at.Child("fencing"))...)
	return append(errs, validateCrashLoop(s, at.Child("onCrashLoop"))...)
}

// ValidateSelector validates a selector. It rejects one that selects unrelated pods or none.
func ValidateSelector(selector *metav1.LabelSelector, at *field.Path) field.ErrorList {
	if selector == nil || len(selector.MatchLabels)+len(selector.MatchExpressions) == 0 {
		return field.ErrorList{field.Required(at, "set the labels of the pods, for example matchLabels: {app: my-app}; an empty selector would match every pod")}
	}
	if !RequiresValue(selector) {
		return field.ErrorList{field.Invalid(at, metav1.FormatLabelSelector(selector), "select pods by matchLabels or by an expression In, for example matchLabels: {app: my-app}; "+
			"a selector with only NotIn, Exists or DoesNotExist would match unrelated pods")}
	}
	if err := sizeOf(selector, at); err != nil {
		return field.ErrorList{err}
	}
	if errs := metavalidation.ValidateLabelSelector(selector, metavalidation.LabelSelectorValidationOptions{}, at); len(errs) > 0 {
		return errs
	}
	wanted := requirements(selector)
	for _, key := range sets.List(sets.KeySet(wanted)) {
		if strings.HasPrefix(key, v1.Prefix) {
			return field.ErrorList{field.Forbidden(at, fmt.Sprintf(
				"label %q is set by the operator; select by a label of the application", key))}
		}
		if !wanted[key].possible() {
			return field.ErrorList{field.Invalid(at, metav1.FormatLabelSelector(selector), fmt.Sprintf(
				"no pod can match: the requirements for label %q contradict each other", key))}
		}
	}
	return nil
}

// RequiresValue reports whether a selector requires the value of a label.
func RequiresValue(selector *metav1.LabelSelector) bool {
	return len(selector.MatchLabels) > 0 || slices.ContainsFunc(selector.MatchExpressions, func(e metav1.LabelSelectorRequirement) bool {
		return e.Operator == metav1.LabelSelectorOpIn
	})
}

// validateContainers validates the names in spec.containers.
func validateContainers(names []string, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, name := range names {
		switch faults := validation.IsDNS1123Label(name); {
		case len(faults) > 0:
			errs = append(errs, field.Invalid(at.Index(i), name, strings.Join(faults, "; ")))
		case name == v1.ContainerSidecar:
			errs = append(errs, field.Forbidden(at.Index(i), "this is the operator's own container, not the program"))
		case slices.Contains(names[:i], name):
			errs = append(errs, field.Duplicate(at.Index(i), name))
		}
	}
	return errs
}

// Warnings returns warnings about valid settings that are probably mistakes, each with its
// remedy. operator is the operator's own namespace.
func Warnings(s *v1.StatefulSingleton, operator string) []string {
	var all []string
	spec := &s.Spec
	if spec.GateMode == v1.GateInit && len(spec.Containers) > 0 {
		all = append(all, "spec.containers is ignored in gate mode Init, which holds back the whole pod")
	}
	if grace, most := *spec.TerminationGracePeriod, int64(*spec.MaxTransitionTime); grace > most {
		all = append(all, fmt.Sprintf("spec.terminationGracePeriod: %d seconds exceed maxTransitionTime (%d): a program that takes this long to stop is reported as a handover that takes too long; "+
			"lower it, or raise spec.maxTransitionTime (max 3600)", grace, most))
	}
	if !*spec.RespectPodGracePeriod && *spec.TerminationGracePeriod > 0 {
		all = append(all, fmt.Sprintf("spec.respectPodGracePeriod: false shortens the grace period only of pods that allow it by annotation %s=true in their template", v1.AnnotationShortenGrace))
	}
	if slices.Contains(policy.LeftAlone(operator), s.Namespace) {
		all = append(all, fmt.Sprintf("metadata.namespace: %s; a pod that is created there while the operator's webhook is unavailable runs its program immediately; use another namespace", NotGuarded(s.Namespace)))
	}
	all = append(all, fencingWarnings(s)...)
	return append(all, releaseWarnings(s)...)
}

// releaseWarnings returns warnings about when an order in spec.release is executed.
func releaseWarnings(s *v1.StatefulSingleton) []string {
	o := s.Spec.Release
	if o == nil || s.DeletionTimestamp != nil {
		return nil
	}
	if (ReleaseOrder{Object: s}).isNew() {
		return []string{fmt.Sprintf(
			"spec.release.id: order %s is ignored, because the object is created with it; to release the pods, set another id after the creation",
			o.ID,
		)}
	}
	return []string{
		"spec.release: when the StatefulSingleton is deleted, all its waiting pods start at the same time",
	}
}

// NotGuarded returns the message about a namespace that the guard excludes.
func NotGuarded(namespace string) string {
	return "the operator does not guard namespace " + namespace
}

// AnnotationWarnings returns warnings about annotations that do not do what their author
// may expect. The domains of the operator's names and of its API differ by one word.
func AnnotationWarnings(s *v1.StatefulSingleton) []string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(s.Annotations)) {
		value := s.Annotations[name]
		at := "metadata.annotations[" + name + "]: "
		domain, _, _ := strings.Cut(name, "/")
		switch {
		case !strings.HasSuffix(domain, "statefulsingleton.com"):
		case name != v1.AnnotationReleaseNow:
			all = append(all, fmt.Sprintf("%sunknown annotation; the only annotation for users is %s=true", at, v1.AnnotationReleaseNow))
		case value != v1.True:
			all = append(all, fmt.Sprintf("%s%q has no effect; the only valid value is %q", at, value, v1.True))
		case s.DeletionTimestamp == nil:
			all = append(all, at+"it has no effect yet; when the StatefulSingleton is deleted, all its waiting pods start at the same time")
		}
	}
	return all
}
