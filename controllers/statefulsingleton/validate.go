package statefulsingleton

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/order"
	"github.com/stateful-operator/stateful-operator/controllers/internal/policy"
	"github.com/stateful-operator/stateful-operator/controllers/internal/unread"
)

// withDefaults returns a copy with the defaults of the schema, for objects that the API
// server has not defaulted.
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
	if spec.OnEviction == "" {
		spec.OnEviction = v1.EvictionReplaces
	}
	return s
}

// problem returns the validation errors of a spec; "" if there are none.
func problem(s *v1.StatefulSingleton) string {
	if errs := validate(s); len(errs) > 0 {
		return errs.ToAggregate().Error()
	}
	return ""
}

// validate validates an object on its own, after defaults.
func validate(s *v1.StatefulSingleton) field.ErrorList {
	if errs := unread.Validate(s.Spec.Problem); len(errs) > 0 {
		return errs
	}
	spec, at := &s.Spec, field.NewPath("spec")
	var errs field.ErrorList
	if name := field.NewPath("metadata", "name"); len(s.Name) > validation.LabelValueMaxLength {
		errs = append(errs, field.Invalid(name, s.Name, fmt.Sprintf(
			"must have at most %d characters, because it is a label value of pods", validation.LabelValueMaxLength)))
	}
	errs = append(errs, validateSelector(spec.Selector, at.Child("selector"))...)
	if t := *spec.MaxTransitionTime; t < 1 || t > 3600 {
		errs = append(errs, field.Invalid(at.Child("maxTransitionTime"), t, "must be from 1 to 3600 seconds"))
	}
	return append(errs, validateContainers(spec.Containers, at.Child("containers"))...)
}

func validateSelector(selector *metav1.LabelSelector, at *field.Path) field.ErrorList {
	if selector == nil || len(selector.MatchLabels)+len(selector.MatchExpressions) == 0 {
		return field.ErrorList{field.Required(at, "set the labels of the pods, for example matchLabels: {app: my-app}; an empty selector would match every pod")}
	}
	if !saysWhich(selector) {
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

// saysWhich reports whether a selector requires the value of a label.
func saysWhich(selector *metav1.LabelSelector) bool {
	return len(selector.MatchLabels) > 0 || slices.ContainsFunc(selector.MatchExpressions, func(e metav1.LabelSelectorRequirement) bool {
		return e.Operator == metav1.LabelSelectorOpIn
	})
}

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

// warnings returns warnings about valid settings that are probably mistakes, each with its
// remedy. operator is the operator's own namespace.
func warnings(s *v1.StatefulSingleton, operator string) []string {
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
		all = append(all, fmt.Sprintf("metadata.namespace: %s; a pod that is created there while the operator's webhook is unavailable runs its program immediately; use another namespace", notGuarded(s.Namespace)))
	}
	return append(all, releaseWarnings(s)...)
}

// releaseWarnings returns warnings about when an order in spec.release is executed.
func releaseWarnings(s *v1.StatefulSingleton) []string {
	o := s.Spec.Release
	if o == nil || s.DeletionTimestamp != nil {
		return nil
	}
	if order.IsNew(s.Generation, s.Status.ObservedGeneration) {
		return []string{fmt.Sprintf(
			"spec.release.id: order %s is ignored, because the object is created with it; to release the pods, set another id after the creation",
			o.ID,
		)}
	}
	return []string{
		"spec.release: when the StatefulSingleton is deleted, all its waiting pods start at the same time",
	}
}

func notGuarded(namespace string) string {
	return "the operator does not guard namespace " + namespace
}

// annotationWarnings returns warnings about annotations that do not do what their author
// may expect. The domains of the operator's names and of its API differ by one word.
func annotationWarnings(s *v1.StatefulSingleton) []string {
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

// maxContainers is the max number of containers of a pod, including init containers.
// maxOurs is the max number of containers that we add, besides one for each image.
// maxFaults is the max number of errors of one kind.
const (
	maxContainers = 200
	maxOurs       = 3
	maxFaults     = 10
)

func tooManyContainers(count int) *field.Error {
	return field.Forbidden(field.NewPath("spec", "containers"), fmt.Sprintf(
		"%d containers, including the init containers, exceed the max of %d; split the pod, or give it labels that the StatefulSingleton does not select", count, maxContainers))
}

// refusals returns why a pod cannot get the gate, each error with its remedy.
func refusals(pod *corev1.Pod, s *v1.StatefulSingleton, mode v1.GateMode, volumes []corev1.Volume) field.ErrorList {
	podSpec := field.NewPath("spec")
	if count := theirs(pod.Spec.Containers) + theirs(pod.Spec.InitContainers); count > maxContainers {
		return field.ErrorList{tooManyContainers(count)}
	}
	if os := pod.Spec.OS; os != nil && os.Name == corev1.Windows {
		return field.ErrorList{field.NotSupported(podSpec.Child("os", "name"), os.Name, []corev1.OSName{corev1.Linux})}
	}
	errs := append(clashes(pod, volumes, podSpec), trespasses(pod, s, mode, podSpec)...)
	if mode == v1.GateInit {
		return errs
	}
	fixed := readOnlyVolumes(pod)
	for i := range pod.Spec.Containers {
		if c, at := &pod.Spec.Containers[i], podSpec.Child("containers").Index(i); isProgram(c, s) {
			errs = append(errs, obstacles(c, at, mode)...)
			errs = append(errs, mountClashes(c, fixed, mode, at)...)
		}
	}
	return errs
}

// lacking returns the names in podSpec.containers that no container of the pod has.
func lacking(pod *corev1.Pod, s *v1.StatefulSingleton) []string {
	if s.Spec.GateMode == v1.GateInit {
		return nil // which ignores spec.containers
	}
	return slices.DeleteFunc(slices.Clone(s.Spec.Containers), func(name string) bool {
		return slices.ContainsFunc(pod.Spec.Containers, func(c corev1.Container) bool { return c.Name == name && !isSidecar(c) })
	})
}

// obstacles returns why a program cannot wait in its container. Mode Init avoids all of
// them.
func obstacles(c *corev1.Container, at *field.Path, mode v1.GateMode) field.ErrorList {
	if isHeld(c) {
		return nil
	}
	const remedy = "set spec.gateMode of the StatefulSingleton to Auto or Init"
	var errs field.ErrorList
	if len(c.Command) == 0 {
		errs = append(errs, field.Required(at.Child("command"), fmt.Sprintf(
			"gate mode %s runs the command of the container, and the entrypoint of the image is unknown; set the command, or "+remedy+
				", or list the containers of the program in its spec.containers if this is not one", mode)))
	}
	if c.StartupProbe != nil && !isOurProbe(c.StartupProbe) {
		errs = append(errs, field.Forbidden(at.Child("startupProbe"), "it would fail and stop the container while the program waits; "+remedy))
	}
	if c.Lifecycle != nil && c.Lifecycle.PostStart != nil {
		errs = append(errs, field.Forbidden(at.Child("lifecycle", "postStart"), "it would run while the program waits, and stop the container if it fails; "+remedy))
	}
	if c.LivenessProbe != nil && c.LivenessProbe.InitialDelaySeconds > 0 {
		errs = append(errs, field.Forbidden(at.Child("livenessProbe", "initialDelaySeconds"), "it begins with the start of the container, and would be over when the program starts; "+remedy))
	}
	return errs
}

// trespasses returns an error for each mount of our volumes by a container that may not
// mount them, or in a different way than ours. A client that can write to the gate's
// volume, or mounts another folder as the signal, could start a program without a grant.
func trespasses(pod *corev1.Pod, s *v1.StatefulSingleton, mode v1.GateMode, podSpec *field.Path) field.ErrorList {
	ours := sets.New(v1.VolumeSignal, homeOf(mode).volume)
	mayMount := func(c *corev1.Container) bool { return isOurs(c) || isProgram(c, s) }
	errs := append(trespassesOf(pod.Spec.Containers, podSpec.Child("containers"), ours, mayMount),
		trespassesOf(pod.Spec.InitContainers, podSpec.Child("initContainers"), ours, isOurs)...)
	return errs[:min(len(errs), maxFaults)]
}

func trespassesOf(list []corev1.Container, at *field.Path, ours sets.Set[string], mayMount func(*corev1.Container) bool) field.ErrorList {
	var errs field.ErrorList
	for i := range list {
		c := &list[i]
		for j := range c.VolumeMounts {
			m := &c.VolumeMounts[j]
			if !ours.Has(m.Name) || len(errs) >= maxFaults {
				continue
			}
			if mayMount(c) && isOurMount(c, m) {
				continue
			}
			errs = append(errs, field.Forbidden(at.Index(i).Child("volumeMounts").Index(j).Child("name"),
				fmt.Sprintf("volume %s belongs to the operator, which holds back programs with it; mount another volume", m.Name)))
		}
	}
	return errs
}

// isOurMount reports whether one of our volumes is mounted the way we mount it. The guard
// makes the same check.
func isOurMount(c *corev1.Container, m *corev1.VolumeMount) bool {
	places := map[string]string{v1.VolumeSignal: v1.PathSignal, v1.VolumeGate: v1.PathGate, v1.VolumeScripts: v1.PathScripts}
	if m.MountPath != places[m.Name] || m.SubPath != "" || m.SubPathExpr != "" {
		return false
	}
	switch {
	case m.ReadOnly, m.Name == v1.VolumeSignal: // which no container can write
		return true
	}
	return c.Name == v1.ContainerInstall
}

// intact reports whether all mounts of our volumes are the ones that we make. The volume of
// the gate follows from the container that installs it.
func intact(pod *corev1.Pod) bool {
	ours := sets.New(v1.VolumeSignal)
	for _, mode := range []v1.GateMode{v1.GateBinary, v1.GateScript} {
		if at := homeOf(mode); slices.ContainsFunc(pod.Spec.InitContainers, func(c corev1.Container) bool { return is(&c, v1.ContainerInstall, at.installCommand()) }) {
			ours.Insert(at.volume)
		}
	}
	return !slices.ContainsFunc(slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers), func(c corev1.Container) bool {
		return slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return ours.Has(m.Name) && !isOurMount(&c, &m) })
	})
}

// clashes returns an error for each of our names that the pod uses for something else.
// Otherwise a volume that another client fills could be taken for the grant.
func clashes(pod *corev1.Pod, volumes []corev1.Volume, podSpec *field.Path) field.ErrorList {
	const remedy = "the operator adds its own to the pod; choose another name"
	var errs field.ErrorList
	for i := range pod.Spec.Volumes {
		if len(errs) >= maxFaults {
			break
		}
		for j := range volumes {
			if v := &pod.Spec.Volumes[i]; v.Name == volumes[j].Name && !same(v, &volumes[j]) {
				errs = append(errs, field.Invalid(podSpec.Child("volumes").Index(i).Child("name"), v.Name, remedy))
			}
		}
	}
	errs = append(errs, nameClashes(pod.Spec.InitContainers, podSpec.Child("initContainers"), remedy)...)
	return append(errs, nameClashes(pod.Spec.Containers, podSpec.Child("containers"), remedy)...)
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

// theirs returns the number of containers that are not the operator's.
func theirs(containers []corev1.Container) (count int) {
	for i := range containers {
		if !isOurs(&containers[i]) {
			count++
		}
	}
	return count
}

// reserved reports whether a container name is one of ours.
func reserved(name string) bool {
	switch name {
	case v1.ContainerInstall, v1.ContainerWait, v1.ContainerSidecar:
		return true
	}
	return strings.HasPrefix(name, v1.ContainerImagePrefix)
}
