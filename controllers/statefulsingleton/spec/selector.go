package spec

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
)

// LabelsOf returns the labels of an object, as a set that selectors can match.
func LabelsOf(obj metav1.Object) labels.Set { return obj.GetLabels() }

// MaxPerNamespace is the max number of StatefulSingletons in a namespace: the API server
// compares every new pod with all of them.
const MaxPerNamespace = 100

// Limits of a selector, as in the schema. An object may be older than the limits.
const (
	MaxTerms  = 32 // labels, and expressions
	MaxValues = 32 // values of one expression
	maxKey    = 317
	maxValue  = 63
)

// sizeOf returns an error if a selector exceeds the limits; nil if it does not.
func sizeOf(selector *metav1.LabelSelector, at *field.Path) *field.Error {
	switch {
	case len(selector.MatchLabels) > MaxTerms:
		return field.TooMany(at.Child("matchLabels"), len(selector.MatchLabels), MaxTerms)
	case len(selector.MatchExpressions) > MaxTerms:
		return field.TooMany(at.Child("matchExpressions"), len(selector.MatchExpressions), MaxTerms)
	}
	for key, value := range selector.MatchLabels {
		if len(key) > maxKey {
			return field.TooLong(at.Child("matchLabels"), "", maxKey)
		}
		if len(value) > maxValue {
			return field.TooLong(at.Child("matchLabels").Key(key), "", maxValue)
		}
	}
	for i := range selector.MatchExpressions {
		entry := func() *field.Path { return at.Child("matchExpressions").Index(i) }
		if err := expressionSize(&selector.MatchExpressions[i], entry); err != nil {
			return err
		}
	}
	return nil
}

// expressionSize checks one expression, as sizeOf does. It is called often, so the path is
// built only for an error.
func expressionSize(e *metav1.LabelSelectorRequirement, at func() *field.Path) *field.Error {
	tooLong := slices.IndexFunc(e.Values, func(value string) bool { return len(value) > maxValue })
	switch {
	case len(e.Key) > maxKey:
		return field.TooLong(at().Child("key"), "", maxKey)
	case len(e.Values) > MaxValues:
		return field.TooMany(at().Child("values"), len(e.Values), MaxValues)
	case tooLong >= 0:
		return field.TooLong(at().Child("values").Index(tooLong), "", maxValue)
	}
	return nil
}

// InBounds reports whether a selector is within the limits. A larger one selects nothing
// here. The guard still rejects the pods that it selects, and a condition reports why.
func InBounds(selector *metav1.LabelSelector) bool {
	return selector != nil && sizeOf(selector, nil) == nil
}

// SelectorOf returns the selector of an object for the API server. It matches nothing if
// the selector is not usable.
func SelectorOf(s *v1.StatefulSingleton) labels.Selector {
	selector, err := metav1.LabelSelectorAsSelector(s.Spec.Selector)
	if err != nil || !Usable(s.Spec.Selector) {
		return labels.Nothing()
	}
	return selector
}

// Selects reports whether an object selects a pod with these labels. It agrees with
// SelectorOf but allocates nothing: it is called for each changed pod and each object of
// the namespace.
func Selects(s *v1.StatefulSingleton, have labels.Set) bool {
	if !Usable(s.Spec.Selector) {
		return false
	}
	for key, want := range s.Spec.Selector.MatchLabels {
		if value, there := have[key]; !there || value != want {
			return false
		}
	}
	for i := range s.Spec.Selector.MatchExpressions {
		if !fulfils(have, &s.Spec.Selector.MatchExpressions[i]) {
			return false
		}
	}
	return true
}

// fulfils reports whether labels satisfy an expression of a selector.
func fulfils(have labels.Set, e *metav1.LabelSelectorRequirement) bool {
	value, there := have[e.Key]
	switch e.Operator {
	case metav1.LabelSelectorOpIn:
		return there && slices.Contains(e.Values, value)
	case metav1.LabelSelectorOpNotIn:
		return !there || !slices.Contains(e.Values, value)
	case metav1.LabelSelectorOpExists:
		return there
	}
	return !there
}

// RulerOf returns the StatefulSingleton that manages a new pod, its ruler: the oldest one that
// selects it, and one that is being deleted only if there is no other; nil if there is none.
func RulerOf(have labels.Set, all []v1.StatefulSingleton) *v1.StatefulSingleton {
	var ruler *v1.StatefulSingleton
	for i := range all {
		s := &all[i]
		if !HoldsNewPods(s) || !Selects(s, have) {
			continue
		}
		if ruler == nil || precedes(s, ruler) {
			ruler = s
		}
	}
	return ruler
}

// precedes reports whether the first of two objects that select a new pod manages it.
func precedes(a, b *v1.StatefulSingleton) bool {
	deleted := a.DeletionTimestamp != nil
	if deleted != (b.DeletionTimestamp != nil) {
		return !deleted
	}
	return Older(a, b)
}

// HoldsNewPods reports whether new pods get the gate. An object that is being deleted still
// holds them, until the operator removes its finalizer: a deletion may begin in the middle of
// a rollout, when the old pod is already being deleted and its ReplicaSet recreates it.
func HoldsNewPods(s *v1.StatefulSingleton) bool {
	if s.DeletionTimestamp == nil {
		return true
	}
	return controllerutil.ContainsFinalizer(s, v1.FinalizerSingleton)
}

// Older orders objects by age, and objects of the same second by name.
func Older(a, b *v1.StatefulSingleton) bool {
	if a.CreationTimestamp.Equal(&b.CreationTimestamp) {
		return a.Name < b.Name
	}
	return a.CreationTimestamp.Before(&b.CreationTimestamp)
}

// Conflicting returns the other objects of the namespace whose selectors overlap.
// Terminating objects count, because they still have pods.
func Conflicting(s *v1.StatefulSingleton, all []v1.StatefulSingleton) []*v1.StatefulSingleton {
	if !Usable(s.Spec.Selector) {
		return nil
	}
	var found []*v1.StatefulSingleton
	required := requirements(s.Spec.Selector)
	for i := range all {
		if other := &all[i]; other.Name != s.Name && overlapWith(s.Spec.Selector, required, other.Spec.Selector) {
			found = append(found, other)
		}
	}
	slices.SortFunc(found, func(a, b *v1.StatefulSingleton) int { return strings.Compare(a.Name, b.Name) })
	return found
}

// WithinLimit returns the objects of a namespace that are served, which are the oldest
// ones.
func WithinLimit(all []v1.StatefulSingleton) []v1.StatefulSingleton {
	if len(all) <= MaxPerNamespace {
		return all
	}
	return ByAge(all)[:MaxPerNamespace]
}

// ByAge returns the objects sorted by age, oldest first.
func ByAge(all []v1.StatefulSingleton) []v1.StatefulSingleton {
	return slices.SortedFunc(slices.Values(all), func(a, b v1.StatefulSingleton) int {
		if Older(&a, &b) {
			return -1
		}
		return 1
	})
}

// BeyondLimit reports whether the namespace has MaxPerNamespace older objects.
func BeyondLimit(s *v1.StatefulSingleton, all []v1.StatefulSingleton) bool {
	before := 0
	for i := range all {
		if all[i].Name != s.Name && Older(&all[i], s) {
			before++
		}
	}
	return before >= MaxPerNamespace
}

// Overlap reports whether a pod can match both selectors. The labels of a pod are
// independent, so it can if each label can satisfy both selectors. Empty, malformed and
// oversized selectors select nothing here.
func Overlap(a, b *metav1.LabelSelector) bool {
	return Usable(a) && overlapWith(a, requirements(a), b)
}

// overlapWith is Overlap with the requirements of the first selector already computed.
func overlapWith(a *metav1.LabelSelector, required map[string]*requirement, b *metav1.LabelSelector) bool {
	if !Usable(b) || plainlyApart(required, b) {
		return false
	}
	for _, r := range requirements(a, b) {
		if !r.possible() {
			return false
		}
	}
	return true
}

// plainlyApart reports whether a selector requires a different value of a label. This is
// the usual case, and no further comparison is needed.
func plainlyApart(required map[string]*requirement, other *metav1.LabelSelector) bool {
	for key, value := range other.MatchLabels {
		if required[key].rulesOut(value) {
			return true
		}
	}
	return slices.ContainsFunc(other.MatchExpressions, func(e metav1.LabelSelectorRequirement) bool {
		return e.Operator == metav1.LabelSelectorOpIn && required[e.Key].rulesOut(e.Values...)
	})
}

// Usable reports whether a selector can select anything.
func Usable(selector *metav1.LabelSelector) bool {
	if !InBounds(selector) || len(selector.MatchLabels)+len(selector.MatchExpressions) == 0 {
		return false
	}
	return !slices.ContainsFunc(selector.MatchExpressions, isMalformed)
}

// isMalformed reports whether an expression has values that its operator does not permit.
func isMalformed(e metav1.LabelSelectorRequirement) bool {
	switch e.Operator {
	case metav1.LabelSelectorOpIn, metav1.LabelSelectorOpNotIn:
		return len(e.Values) == 0
	case metav1.LabelSelectorOpExists, metav1.LabelSelectorOpDoesNotExist:
		return len(e.Values) > 0
	}
	return true
}

// requirement is everything that selectors require of one label.
type requirement struct {
	// present and absent are true if the label must exist, or must not.
	present, absent bool
	// among are the permitted values; nil permits any.
	among sets.Set[string]
	// not are the excluded values.
	not sets.Set[string]
}

// possible reports whether a pod can satisfy the requirement, with a value or without the
// label. A list never excludes all values.
func (r *requirement) possible() bool {
	switch {
	case !r.present:
		return true
	case r.absent:
		return false
	}
	return r.among == nil || r.among.Difference(r.not).Len() > 0
}

// rulesOut reports whether all of these values violate the requirement. A nil requirement
// accepts everything.
func (r *requirement) rulesOut(values ...string) bool {
	if r == nil || r.among == nil {
		return false
	}
	return !slices.ContainsFunc(values, r.among.Has)
}

// add combines the requirement with that of an expression.
func (r *requirement) add(e *metav1.LabelSelectorRequirement) {
	switch e.Operator {
	case metav1.LabelSelectorOpIn:
		r.oneOf(e.Values...)
	case metav1.LabelSelectorOpNotIn:
		r.not.Insert(e.Values...)
	case metav1.LabelSelectorOpExists:
		r.present = true
	case metav1.LabelSelectorOpDoesNotExist:
		r.absent = true
	}
}

// oneOf combines the requirement with a list of permitted values.
func (r *requirement) oneOf(values ...string) {
	r.present = true
	if r.among == nil {
		r.among = sets.New(values...)
		return
	}
	r.among = r.among.Intersection(sets.New(values...))
}

// requirements returns the combined requirements of selectors, by label.
func requirements(selectors ...*metav1.LabelSelector) map[string]*requirement {
	wanted := map[string]*requirement{}
	of := func(key string) *requirement {
		if wanted[key] == nil {
			wanted[key] = &requirement{not: sets.New[string]()}
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
			of(e.Key).add(&e)
		}
	}
	return wanted
}

// OverlapText returns the message about another object whose selector overlaps.
func OverlapText(other *v1.StatefulSingleton) string {
	text := fmt.Sprintf("a pod could also match StatefulSingleton %s, which selects %s, but may belong to only one; use a label with a different value in each selector, for example app",
		other.Name, metav1.FormatLabelSelector(other.Spec.Selector))
	if other.DeletionTimestamp != nil {
		text += ", or wait until it is gone, because it is being deleted"
	}
	return text
}
