package statefulsingleton

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
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

// warnings say what is taken and is probably not meant, each with its remedy.
// operator is the operator's own namespace.
func warnings(s *v1.StatefulSingleton, operator string) []string {
	var all []string
	spec := &s.Spec
	if spec.GateMode == v1.GateInit && len(spec.Containers) > 0 {
		all = append(all, "spec.containers is ignored in gate mode Init, which holds back the whole pod")
	}
	if grace, most := *spec.TerminationGracePeriod, int64(*spec.MaxTransitionTime); grace > most {
		all = append(all, fmt.Sprintf("spec.terminationGracePeriod: %d seconds are more than maxTransitionTime (%d): a program that takes so long to stop is reported as a handover that takes too long; "+
			"set the one lower, or spec.maxTransitionTime higher (3600 at most)", grace, most))
	}
	if slices.Contains(unguarded(operator), s.Namespace) {
		all = append(all, fmt.Sprintf("metadata.namespace: %s; a pod that is created there while the operator's webhook is away runs its program at once; use another namespace", notGuarded(s.Namespace)))
	}
	return all
}

func notGuarded(namespace string) string {
	return "the operator does not guard namespace " + namespace
}

// annotationWarnings say which annotations of an object do something else than
// its author may expect. The domains of the operator's names and of its API
// differ by a word.
func annotationWarnings(s *v1.StatefulSingleton) []string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(s.Annotations)) {
		value := s.Annotations[name]
		at := "metadata.annotations[" + name + "]: "
		domain, _, _ := strings.Cut(name, "/")
		switch {
		case !strings.HasSuffix(domain, "statefulsingleton.com"):
		case name != v1.AnnotationReleaseNow:
			all = append(all, fmt.Sprintf("%sthe operator knows no such annotation; the only one for people is %s=true", at, v1.AnnotationReleaseNow))
		case value != v1.True:
			all = append(all, fmt.Sprintf("%s%q does nothing; the value that does is %q", at, value, v1.True))
		case s.DeletionTimestamp == nil:
			all = append(all, at+"it does nothing yet; when the StatefulSingleton is deleted, all its waiting pods start at once, together")
		}
	}
	return all
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

// refusals say why a pod cannot get the gate, each with its remedy.
func refusals(pod *corev1.Pod, s *v1.StatefulSingleton, mode v1.GateMode, volumes []corev1.Volume) field.ErrorList {
	spec := field.NewPath("spec")
	if os := pod.Spec.OS; os != nil && os.Name == corev1.Windows {
		return field.ErrorList{field.NotSupported(spec.Child("os", "name"), os.Name, []corev1.OSName{corev1.Linux})}
	}
	errs := clashes(pod, volumes, spec)
	if mode == v1.GateInit {
		return errs
	}
	known := sets.New[string]()
	for _, c := range program(pod, s) {
		known.Insert(c.Name)
		at := spec.Child("containers").Index(slices.IndexFunc(pod.Spec.Containers, func(o corev1.Container) bool { return o.Name == c.Name }))
		errs = append(errs, obstacles(c, at, mode)...)
		errs = append(errs, mountClashes(pod, c, mode, at)...)
	}
	for _, name := range s.Spec.Containers {
		if !known.Has(name) {
			errs = append(errs, field.NotFound(spec.Child("containers").Key(name), name))
			errs[len(errs)-1].Detail = "spec.containers of the StatefulSingleton says that it is the program; give a container this name, or change it there"
		}
	}
	return errs
}

// obstacles say why a program cannot wait in its container. Init mode is the
// way round all of them.
func obstacles(c *corev1.Container, at *field.Path, mode v1.GateMode) field.ErrorList {
	if isHeld(c) {
		return nil
	}
	const remedy = "set spec.gateMode of the StatefulSingleton to Auto or Init"
	var errs field.ErrorList
	if len(c.Command) == 0 {
		errs = append(errs, field.Required(at.Child("command"), fmt.Sprintf(
			"gate mode %s starts the program by its command, and what the image starts by itself is not known; say the command, or "+remedy+
				", or name the containers that are the program in its spec.containers if this is none", mode)))
	}
	if c.StartupProbe != nil && !isOurProbe(c.StartupProbe) {
		errs = append(errs, field.Forbidden(at.Child("startupProbe"), "it would fail and end the container while the program waits; "+remedy))
	}
	if c.Lifecycle != nil && c.Lifecycle.PostStart != nil {
		errs = append(errs, field.Forbidden(at.Child("lifecycle", "postStart"), "it would run while the program waits, and end the container if it fails; "+remedy))
	}
	if c.LivenessProbe != nil && c.LivenessProbe.InitialDelaySeconds > 0 {
		errs = append(errs, field.Forbidden(at.Child("livenessProbe", "initialDelaySeconds"), "it counts from the start of the container, and would be over when the program starts; "+remedy))
	}
	return errs
}

// clashes are names of ours that the pod uses for something else. Two things of
// one name would be taken for each other: a volume that somebody else fills, for
// the grant.
func clashes(pod *corev1.Pod, volumes []corev1.Volume, spec *field.Path) field.ErrorList {
	const remedy = "the operator puts its own into the pod; choose another name"
	var errs field.ErrorList
	for i := range pod.Spec.Volumes {
		for j := range volumes {
			if v := &pod.Spec.Volumes[i]; v.Name == volumes[j].Name && !same(v, &volumes[j]) {
				errs = append(errs, field.Invalid(spec.Child("volumes").Index(i).Child("name"), v.Name, remedy))
			}
		}
	}
	errs = append(errs, nameClashes(pod.Spec.InitContainers, spec.Child("initContainers"), remedy)...)
	return append(errs, nameClashes(pod.Spec.Containers, spec.Child("containers"), remedy)...)
}

func nameClashes(containers []corev1.Container, at *field.Path, remedy string) field.ErrorList {
	var errs field.ErrorList
	for i := range containers {
		if c := &containers[i]; reserved(c.Name) && !isOurs(c) {
			errs = append(errs, field.Invalid(at.Index(i).Child("name"), c.Name, remedy))
		}
	}
	return errs
}

func reserved(name string) bool {
	return name == v1.ContainerInstall || name == v1.ContainerWait || name == v1.ContainerSidecar || strings.HasPrefix(name, v1.ContainerImagePrefix)
}
