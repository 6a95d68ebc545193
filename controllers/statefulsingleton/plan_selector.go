package statefulsingleton

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
)

// MaxPerNamespace is how many StatefulSingletons a namespace may have: the API
// server compares every new pod with all of them.
const MaxPerNamespace = 100

// The bounds of a selector, as the schema has them. An object may be older than
// that.
const (
	mostTerms    = 32 // labels, and expressions
	mostValues   = 32 // of an expression
	longestKey   = 317
	longestValue = 63
)

// sizeOf says what of a selector is beyond its bounds; nil if nothing is.
func sizeOf(selector *metav1.LabelSelector, at *field.Path) *field.Error {
	switch {
	case len(selector.MatchLabels) > mostTerms:
		return field.TooMany(at.Child("matchLabels"), len(selector.MatchLabels), mostTerms)
	case len(selector.MatchExpressions) > mostTerms:
		return field.TooMany(at.Child("matchExpressions"), len(selector.MatchExpressions), mostTerms)
	}
	for key, value := range selector.MatchLabels {
		if len(key) > longestKey {
			return field.TooLong(at.Child("matchLabels"), "", longestKey)
		}
		if len(value) > longestValue {
			return field.TooLong(at.Child("matchLabels").Key(key), "", longestValue)
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

// expressionSize is sizeOf for one expression. It is asked for often: where that is, is
// said only if something is wrong.
func expressionSize(e *metav1.LabelSelectorRequirement, at func() *field.Path) *field.Error {
	tooLong := slices.IndexFunc(e.Values, func(value string) bool { return len(value) > longestValue })
	switch {
	case len(e.Key) > longestKey:
		return field.TooLong(at().Child("key"), "", longestKey)
	case len(e.Values) > mostValues:
		return field.TooMany(at().Child("values"), len(e.Values), mostValues)
	case tooLong >= 0:
		return field.TooLong(at().Child("values").Index(tooLong), "", longestValue)
	}
	return nil
}

// inBounds reports whether a selector can be compared with pods: what is larger
// selects nothing here. The guard still refuses the pods that it selects, and a
// condition says why.
func inBounds(selector *metav1.LabelSelector) bool {
	return selector != nil && sizeOf(selector, nil) == nil
}

// selectorOf is the selector of an object, for the API server; it matches nothing if
// the object has none that can be used.
func selectorOf(s *v1.StatefulSingleton) labels.Selector {
	selector, err := metav1.LabelSelectorAsSelector(s.Spec.Selector)
	if err != nil || !usable(s.Spec.Selector) {
		return labels.Nothing()
	}
	return selector
}

// selects reports whether an object selects a pod with these labels. It says what
// selectorOf says, and makes nothing: it is asked for each pod that changes, and for
// each object of its namespace.
func selects(s *v1.StatefulSingleton, have labels.Set) bool {
	if !usable(s.Spec.Selector) {
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

// rulerOf returns the StatefulSingleton that decides about a pod that is created now:
// the oldest that matches, and one that is being deleted only if there is no other; nil
// if there is none.
func rulerOf(have labels.Set, all []v1.StatefulSingleton) *v1.StatefulSingleton {
	var ruler *v1.StatefulSingleton
	for i := range all {
		s := &all[i]
		if !holdsNewPods(s) || !selects(s, have) {
			continue
		}
		if ruler == nil || precedes(s, ruler) {
			ruler = s
		}
	}
	return ruler
}

// precedes reports whether the first of two objects that match decides about a new pod.
func precedes(a, b *v1.StatefulSingleton) bool {
	deleted := a.DeletionTimestamp != nil
	if deleted != (b.DeletionTimestamp != nil) {
		return !deleted
	}
	return older(a, b)
}

// holdsNewPods reports whether new pods get the gate: until the operator takes its
// finalizer off. A deletion can begin in the middle of a rollout, when the old pod is
// already being deleted, and its ReplicaSet recreates it.
func holdsNewPods(s *v1.StatefulSingleton) bool {
	if s.DeletionTimestamp == nil {
		return true
	}
	return controllerutil.ContainsFinalizer(s, v1.FinalizerSingleton)
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
	if !usable(s.Spec.Selector) {
		return nil
	}
	var found []*v1.StatefulSingleton
	asked := requirements(s.Spec.Selector)
	for i := range all {
		if other := &all[i]; other.Name != s.Name && overlapWith(s.Spec.Selector, asked, other.Spec.Selector) {
			found = append(found, other)
		}
	}
	slices.SortFunc(found, func(a, b *v1.StatefulSingleton) int { return strings.Compare(a.Name, b.Name) })
	return found
}

// withinLimit are the objects of a namespace that are served: the oldest.
func withinLimit(all []v1.StatefulSingleton) []v1.StatefulSingleton {
	if len(all) <= MaxPerNamespace {
		return all
	}
	return byAge(all)[:MaxPerNamespace]
}

// byAge are the objects with the oldest first.
func byAge(all []v1.StatefulSingleton) []v1.StatefulSingleton {
	return slices.SortedFunc(slices.Values(all), func(a, b v1.StatefulSingleton) int {
		if older(&a, &b) {
			return -1
		}
		return 1
	})
}

// beyondLimit reports whether MaxPerNamespace older objects are in the namespace.
func beyondLimit(s *v1.StatefulSingleton, all []v1.StatefulSingleton) bool {
	before := 0
	for i := range all {
		if all[i].Name != s.Name && older(&all[i], s) {
			before++
		}
	}
	return before >= MaxPerNamespace
}

// overlap reports whether a pod can match both selectors. The labels of a pod are
// independent of each other, so it can if each label by itself can do what both
// ask of it. Selectors that are empty, malformed or too large select nothing here.
func overlap(a, b *metav1.LabelSelector) bool {
	return usable(a) && overlapWith(a, requirements(a), b)
}

// overlapWith is overlap, where what the first selector asks is known.
func overlapWith(a *metav1.LabelSelector, asked map[string]*requirement, b *metav1.LabelSelector) bool {
	if !usable(b) || plainlyApart(asked, b) {
		return false
	}
	for _, r := range requirements(a, b) {
		if !r.possible() {
			return false
		}
	}
	return true
}

// plainlyApart reports whether a selector wants another value of a label than is
// asked. Mostly it does, and then nothing more has to be compared.
func plainlyApart(asked map[string]*requirement, other *metav1.LabelSelector) bool {
	for key, value := range other.MatchLabels {
		if asked[key].rulesOut(value) {
			return true
		}
	}
	return slices.ContainsFunc(other.MatchExpressions, func(e metav1.LabelSelectorRequirement) bool {
		return e.Operator == metav1.LabelSelectorOpIn && asked[e.Key].rulesOut(e.Values...)
	})
}

// usable reports whether a selector selects anything.
func usable(selector *metav1.LabelSelector) bool {
	if !inBounds(selector) || len(selector.MatchLabels)+len(selector.MatchExpressions) == 0 {
		return false
	}
	return !slices.ContainsFunc(selector.MatchExpressions, isMalformed)
}

func isMalformed(e metav1.LabelSelectorRequirement) bool {
	switch e.Operator {
	case metav1.LabelSelectorOpIn, metav1.LabelSelectorOpNotIn:
		return len(e.Values) == 0
	case metav1.LabelSelectorOpExists, metav1.LabelSelectorOpDoesNotExist:
		return len(e.Values) > 0
	}
	return true
}

// requirement is all that is asked of one label.
type requirement struct {
	present, absent bool
	among           sets.Set[string] // nil: any value
	not             sets.Set[string]
}

// possible reports whether a pod can fulfil it, with a value or without the
// label. There are always more values than a list rules out.
func (r *requirement) possible() bool {
	switch {
	case !r.present:
		return true
	case r.absent:
		return false
	}
	return r.among == nil || r.among.Difference(r.not).Len() > 0
}

// rulesOut reports whether none of these values fulfils the requirement. One that is nil
// asks for nothing.
func (r *requirement) rulesOut(values ...string) bool {
	if r == nil || r.among == nil {
		return false
	}
	return !slices.ContainsFunc(values, r.among.Has)
}

// add adds what an expression asks.
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

func (r *requirement) oneOf(values ...string) {
	r.present = true
	if r.among == nil {
		r.among = sets.New(values...)
		return
	}
	r.among = r.among.Intersection(sets.New(values...))
}

// requirements collects what selectors ask together, by label.
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
