package statefulsingleton

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
)

// MaxPerNamespace is how many StatefulSingletons a namespace may have: the API
// server compares every new pod with all of them.
const MaxPerNamespace = 100

// withDefaults fills in what the schema's defaults would, for objects that did
// not go through the API server's.
func withDefaults(s *v1.StatefulSingleton) *v1.StatefulSingleton {
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
	return s
}

// problem says why a spec cannot be served, in the words of admission; "" if it
// can.
func problem(s *v1.StatefulSingleton) string {
	if errs := validate(s); len(errs) > 0 {
		return errs.ToAggregate().Error()
	}
	return ""
}

// validate checks what can be said about an object by itself, after defaults.
func validate(s *v1.StatefulSingleton) field.ErrorList {
	spec, at := &s.Spec, field.NewPath("spec")
	var errs field.ErrorList
	if name := field.NewPath("metadata", "name"); len(s.Name) > validation.LabelValueMaxLength {
		errs = append(errs, field.Invalid(name, s.Name, fmt.Sprintf(
			"may have at most %d characters: pods carry it as the value of a label", validation.LabelValueMaxLength)))
	}
	errs = append(errs, validateSelector(spec.Selector, at.Child("selector"))...)
	if t := *spec.MaxTransitionTime; t < 1 || t > 3600 {
		errs = append(errs, field.Invalid(at.Child("maxTransitionTime"), t, "must be from 1 to 3600 seconds"))
	}
	return append(errs, validateContainers(spec.Containers, at.Child("containers"))...)
}

func validateSelector(selector *metav1.LabelSelector, at *field.Path) field.ErrorList {
	if selector == nil || len(selector.MatchLabels)+len(selector.MatchExpressions) == 0 {
		return field.ErrorList{field.Required(at, "say which labels the pods have, for example matchLabels: {app: my-app}; an empty selector would match every pod")}
	}
	if errs := metavalidation.ValidateLabelSelector(selector, metavalidation.LabelSelectorValidationOptions{}, at); len(errs) > 0 {
		return errs
	}
	wanted := wishes(selector)
	for _, key := range sets.List(sets.KeySet(wanted)) {
		if strings.HasPrefix(key, v1.Prefix) {
			return field.ErrorList{field.Forbidden(at, fmt.Sprintf(
				"label %q is put on pods by the operator; select by a label of the application", key))}
		}
		if !wanted[key].possible() {
			return field.ErrorList{field.Invalid(at, metav1.FormatLabelSelector(selector), fmt.Sprintf(
				"no pod can match: what is asked of label %q contradicts itself", key))}
		}
	}
	return nil
}

func validateContainers(names []string, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, name := range names {
		switch faults := validation.IsDNS1123Label(name); {
		case len(faults) > 0:
			errs = append(errs, field.Invalid(at.Index(i), name, strings.Join(faults, "; ")))
		case name == v1.ContainerSidecar:
			errs = append(errs, field.Forbidden(at.Index(i), "this is the operator's own container and not the program"))
		case slices.Contains(names[:i], name):
			errs = append(errs, field.Duplicate(at.Index(i), name))
		}
	}
	return errs
}

// selectorOf is the selector of an object; it matches nothing if the object has
// none that can be used.
func selectorOf(s *v1.StatefulSingleton) labels.Selector {
	selector, err := metav1.LabelSelectorAsSelector(s.Spec.Selector)
	if err != nil || selector.Empty() {
		return labels.Nothing()
	}
	return selector
}

// rulerOf is the StatefulSingleton that decides about a pod that is created now:
// the oldest that matches and is not being deleted; nil for the pods of
// strangers.
func rulerOf(have labels.Set, all []v1.StatefulSingleton) *v1.StatefulSingleton {
	var ruler *v1.StatefulSingleton
	for i := range all {
		s := &all[i]
		if s.DeletionTimestamp == nil && selectorOf(s).Matches(have) && (ruler == nil || older(s, ruler)) {
			ruler = s
		}
	}
	return ruler
}

// older orders objects by their age, and those of one second by name.
func older(a, b *v1.StatefulSingleton) bool {
	if a.CreationTimestamp.Equal(&b.CreationTimestamp) {
		return a.Name < b.Name
	}
	return a.CreationTimestamp.Before(&b.CreationTimestamp)
}

// conflicting are the other objects of the namespace whose selectors a pod of
// this one could match too. Those being deleted count: they still have pods.
func conflicting(s *v1.StatefulSingleton, all []v1.StatefulSingleton) []*v1.StatefulSingleton {
	var found []*v1.StatefulSingleton
	for i := range all {
		if other := &all[i]; other.Name != s.Name && overlap(s.Spec.Selector, other.Spec.Selector) {
			found = append(found, other)
		}
	}
	slices.SortFunc(found, func(a, b *v1.StatefulSingleton) int { return strings.Compare(a.Name, b.Name) })
	return found
}

// beyondLimit tells whether MaxPerNamespace older objects are in the namespace.
func beyondLimit(s *v1.StatefulSingleton, all []v1.StatefulSingleton) bool {
	before := 0
	for i := range all {
		if all[i].Name != s.Name && older(&all[i], s) {
			before++
		}
	}
	return before >= MaxPerNamespace
}

// overlap tells whether a pod can match both selectors. The labels of a pod are
// independent of each other, so it can if each label by itself can do what both
// ask of it. Selectors that are empty or malformed select nothing here.
func overlap(a, b *metav1.LabelSelector) bool {
	for _, selector := range []*metav1.LabelSelector{a, b} {
		if _, err := metav1.LabelSelectorAsSelector(selector); err != nil || len(wishes(selector)) == 0 {
			return false
		}
	}
	for _, wish := range wishes(a, b) {
		if !wish.possible() {
			return false
		}
	}
	return true
}

// wish is all that is asked of one label.
type wish struct {
	present, absent bool
	among           sets.Set[string] // nil: any value
	not             sets.Set[string]
}

// possible tells whether a pod can fulfil the wish, with a value or without the
// label. There are always more values than a list rules out.
func (w *wish) possible() bool {
	switch {
	case !w.present:
		return true
	case w.absent:
		return false
	}
	return w.among == nil || w.among.Difference(w.not).Len() > 0
}

func (w *wish) oneOf(values ...string) {
	w.present = true
	if w.among == nil {
		w.among = sets.New(values...)
		return
	}
	w.among = w.among.Intersection(sets.New(values...))
}

// wishes collects what selectors ask together, by label.
func wishes(selectors ...*metav1.LabelSelector) map[string]*wish {
	wanted := map[string]*wish{}
	of := func(key string) *wish {
		if wanted[key] == nil {
			wanted[key] = &wish{not: sets.New[string]()}
		}
		return wanted[key]
	}
	for _, selector := range selectors {
		if selector == nil {
			continue
		}
		for key, value := range selector.MatchLabels {
			of(key).oneOf(value)
		}
		for _, e := range selector.MatchExpressions {
			switch w := of(e.Key); e.Operator {
			case metav1.LabelSelectorOpIn:
				w.oneOf(e.Values...)
			case metav1.LabelSelectorOpNotIn:
				w.not.Insert(e.Values...)
			case metav1.LabelSelectorOpExists:
				w.present = true
			case metav1.LabelSelectorOpDoesNotExist:
				w.absent = true
			}
		}
	}
	return wanted
}
