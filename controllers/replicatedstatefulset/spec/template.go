package spec

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/json"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/bounds"
)

// spec.pod.template has all fields of a pod template. WithTemplate merges the fields that spec and
// spec.pod have as well, so that all their rules apply to the template too. The other fields are
// passed on, as in a StatefulSet.

// pathTemplate is the path of the template in the object.
var pathTemplate = field.NewPath("spec", "pod", "template")

// templateOf parses spec.pod.template, and returns its errors. An unknown field is an error,
// because a misspelled field would otherwise be ignored without notice.
func templateOf(pod *v1alpha1.PodPolicy) (corev1.PodTemplateSpec, field.ErrorList) {
	var t corev1.PodTemplateSpec
	if pod.Template == nil || len(pod.Template.Raw) == 0 {
		return t, nil
	}
	if err := bounds.Quantities(pod.Template.Raw); err != nil { // no schema has validated them
		return t, field.ErrorList{field.Invalid(pathTemplate, field.OmitValueType{}, err.Error())}
	}
	strict, err := json.UnmarshalStrict(pod.Template.Raw, &t)
	if err != nil {
		return corev1.PodTemplateSpec{}, field.ErrorList{field.Invalid(pathTemplate, field.OmitValueType{},
			"must be a pod template with metadata and spec, like that of a StatefulSet: "+err.Error())}
	}
	var errs field.ErrorList
	for _, fault := range strict[:min(len(strict), MaxUnknown)] {
		errs = append(errs, explainUnknown(fault))
	}
	return t, errs
}

// MaxUnknown is the max number of reported unknown fields.
const MaxUnknown = 10

// explainUnknown returns the error for an unknown or duplicate field of the template.
func explainUnknown(fault error) *field.Error {
	var at json.FieldError
	if !errors.As(fault, &at) {
		return field.Invalid(pathTemplate, field.OmitValueType{}, fault.Error())
	}
	if strings.HasPrefix(fault.Error(), "duplicate field") {
		return field.Duplicate(pathTemplate.Child(at.FieldPath()), field.OmitValueType{})
	}
	return field.Forbidden(pathTemplate.Child(at.FieldPath()),
		"unknown field of a pod template; correct its spelling (see kubectl explain pod.spec), or remove it")
}

// WithTemplate merges the template into spec and spec.pod: lists and maps are appended, and other
// fields are used if spec and spec.pod do not set them. left is the rest of the template. Without a
// template it returns the set unchanged.
func WithTemplate(set *v1alpha1.ReplicatedStatefulSet) (whole *v1alpha1.ReplicatedStatefulSet, left corev1.PodSpec, errs field.ErrorList) {
	if set.Spec.Pod.Template == nil {
		return set, left, nil
	}
	t, errs := templateOf(&set.Spec.Pod)
	whole, left = set.DeepCopy(), t.Spec
	spec, pod := &whole.Spec, &whole.Spec.Pod
	pod.Template = nil
	pod.Labels = mergedOrNil(pod.Labels, t.Labels)
	pod.Annotations = mergedOrNil(pod.Annotations, t.Annotations)
	pod.NodeSelector = mergedOrNil(pod.NodeSelector, left.NodeSelector)
	pod.Containers = append(pod.Containers, left.Containers...)
	pod.InitContainers = append(pod.InitContainers, left.InitContainers...)
	pod.Volumes = append(pod.Volumes, left.Volumes...)
	spec.Tolerations = append(spec.Tolerations, left.Tolerations...)
	spec.ImagePullSecrets = append(spec.ImagePullSecrets, left.ImagePullSecrets...)
	if pod.SecurityContext == nil {
		pod.SecurityContext = left.SecurityContext
	}
	if pod.AutomountServiceAccountToken == nil {
		pod.AutomountServiceAccountToken = left.AutomountServiceAccountToken
	}
	if spec.ServiceAccountName == "" {
		spec.ServiceAccountName = left.ServiceAccountName
	}
	if spec.Affinity == nil {
		spec.Affinity = left.Affinity
	}
	return whole, left, errs
}

// mergedOrNil merges two maps. It returns nil if both are nil.
func mergedOrNil(to, more map[string]string) map[string]string {
	if len(more) == 0 {
		return to
	}
	return Merged(to, more)
}

// validateTemplate rejects fields that the operator sets, and fields that spec or spec.pod also
// set.
func validateTemplate(set *v1alpha1.ReplicatedStatefulSet, t *corev1.PodTemplateSpec) field.ErrorList {
	in := pathTemplate.Child("spec")
	var errs field.ErrorList
	if !apiequality.Semantic.DeepEqual(t.ObjectMeta, metav1.ObjectMeta{Labels: t.Labels, Annotations: t.Annotations}) {
		errs = append(errs, field.Forbidden(pathTemplate.Child("metadata"),
			"may have only labels and annotations: names, owners and finalizers of pods are set by the StatefulSet and the operator; remove the other fields"))
	}
	for _, one := range []struct {
		isSet  bool
		name   string
		remedy string
	}{
		{t.Spec.Hostname != "", "hostname", "the StatefulSet sets the hostname of each pod, and members find each other by it; remove it"},
		{t.Spec.HostnameOverride != nil, "hostnameOverride", "the StatefulSet sets the hostname of each pod, and members find each other by it; remove it"},
		{t.Spec.Subdomain != "", "subdomain", "the operator sets it to the Service of all members; remove it"},
		{t.Spec.DeprecatedServiceAccount != "", "serviceAccount", "is deprecated; use serviceAccountName"},
		{t.Spec.TerminationGracePeriodSeconds != nil, "terminationGracePeriodSeconds", "use spec.pod.terminationGracePeriodSeconds, which has a default"},
	} {
		if one.isSet {
			errs = append(errs, field.Forbidden(in.Child(one.name), one.remedy))
		}
	}
	return append(errs, validateSetOnce(set, t)...)
}

// validateSetOnce rejects fields that are set in two places, so that no precedence rule is needed.
func validateSetOnce(set *v1alpha1.ReplicatedStatefulSet, t *corev1.PodTemplateSpec) field.ErrorList {
	spec, pod := &set.Spec, &set.Spec.Pod
	meta, in := pathTemplate.Child("metadata"), pathTemplate.Child("spec")
	var errs field.ErrorList
	for _, one := range []struct {
		here, there bool
		name, other string
	}{
		{t.Spec.SecurityContext != nil, pod.SecurityContext != nil, "securityContext", "spec.pod.securityContext"},
		{t.Spec.AutomountServiceAccountToken != nil, pod.AutomountServiceAccountToken != nil, "automountServiceAccountToken", "spec.pod.automountServiceAccountToken"},
		{t.Spec.ServiceAccountName != "", spec.ServiceAccountName != "", "serviceAccountName", "spec.serviceAccountName"},
		{t.Spec.Affinity != nil, spec.Affinity != nil, "affinity", "spec.affinity"},
	} {
		if one.here && one.there {
			errs = append(errs, setTwice(in.Child(one.name), one.other))
		}
	}
	for _, one := range []struct {
		here, there map[string]string
		at          *field.Path
		other       string
	}{
		{t.Labels, pod.Labels, meta.Child("labels"), "spec.pod.labels"},
		{t.Annotations, pod.Annotations, meta.Child("annotations"), "spec.pod.annotations"},
		{t.Spec.NodeSelector, Merged(spec.NodeSelector, pod.NodeSelector), in.Child("nodeSelector"), "spec.nodeSelector or spec.pod.nodeSelector"},
	} {
		for _, key := range slices.Sorted(maps.Keys(one.here)) {
			if HasKey(one.there, key) {
				errs = append(errs, setTwice(one.at.Key(key), one.other))
			}
		}
	}
	return append(errs, validateContainerNames(pod, t, in)...)
}

func setTwice(at *field.Path, other string) *field.Error {
	return field.Forbidden(at, other+" also sets it; set it in only one place")
}

// validateContainerNames rejects containers of the template that spec.pod has too.
func validateContainerNames(pod *v1alpha1.PodPolicy, t *corev1.PodTemplateSpec, in *field.Path) field.ErrorList {
	taken := map[string]bool{}
	for _, c := range slices.Concat(pod.InitContainers, pod.Containers) {
		taken[c.Name] = true
	}
	var errs field.ErrorList
	for _, list := range []struct {
		name       string
		containers []corev1.Container
	}{{"initContainers", t.Spec.InitContainers}, {"containers", t.Spec.Containers}} {
		for i, c := range list.containers {
			if taken[c.Name] {
				errs = append(errs, field.Duplicate(in.Child(list.name).Index(i).Child("name"),
					c.Name+"; define a container in only one place: in spec.pod, where commands run, or here"))
			}
			taken[c.Name] = true
		}
	}
	return errs
}

// Places maps paths of fields in children, and in the merged set of WithTemplate, to the paths that
// the user wrote. The API server and the validation report errors of the former.
type Places struct {
	// Set is the set as the user wrote it, with its template.
	Set *v1alpha1.ReplicatedStatefulSet
}

// counts returns how many items of each list are from spec or spec.pod. Later items are from the
// template.
func (w Places) counts() map[string]int {
	pod := &w.Set.Spec.Pod
	return map[string]int{
		"spec.pod.containers":     len(pod.Containers),
		"spec.pod.initContainers": len(pod.InitContainers),
		"spec.pod.volumes":        len(pod.Volumes),
		"spec.tolerations":        len(w.Set.Spec.Tolerations),
		"spec.imagePullSecrets":   len(w.Set.Spec.ImagePullSecrets),
	}
}

// ofLabel returns the path of a label or an annotation as the user wrote it.
func (w Places) ofLabel(path string) string {
	t, _ := templateOf(&w.Set.Spec.Pod)
	for name, words := range map[string]map[string]string{"labels": t.Labels, "annotations": t.Annotations} {
		key, ok := strings.CutPrefix(path, "spec.pod."+name+"[")
		if !ok {
			continue
		}
		if key = strings.TrimSuffix(key, "]"); HasKey(words, key) {
			return pathTemplate.Child("metadata", name).Key(key).String()
		}
	}
	return path
}

// HasKey reports whether a map has a key.
func HasKey(words map[string]string, key string) bool {
	_, there := words[key]
	return there
}

// ofItem returns the path of a list item's field as the user wrote it.
func (w Places) ofItem(path string) string {
	if w.Set.Spec.Pod.Template == nil {
		return path
	}
	for list, n := range w.counts() {
		rest, ok := strings.CutPrefix(path, list+"[")
		if !ok {
			continue
		}
		index, after, _ := strings.Cut(rest, "]")
		i, err := strconv.Atoi(index)
		if err != nil || i < n {
			return path
		}
		return fmt.Sprintf("%s.spec%s[%d]%s", pathTemplate, list[strings.LastIndex(list, "."):], i-n, after)
	}
	return path
}

// OfChild returns the path of a child's field as the user wrote it.
func (w Places) OfChild(path string) string {
	name, ok := strings.CutPrefix(path, "spec.template.spec.")
	if ok && w.Set.Spec.Pod.Template != nil && !isInSpec(name) {
		return pathTemplate.Child("spec").String() + "." + name
	}
	return w.ofItem(PathInSet(path))
}

// isInSpec reports whether a pod field also exists in spec or spec.pod.
func isInSpec(name string) bool {
	name, _, _ = strings.Cut(name, ".")
	name, _, _ = strings.Cut(name, "[")
	return slices.Contains([]string{
		"containers", "initContainers", "volumes", "tolerations", "imagePullSecrets", "affinity", "nodeSelector",
		"securityContext", "automountServiceAccountToken", "serviceAccountName", "terminationGracePeriodSeconds",
	}, name)
}

// rename replaces the paths of errors by those that the user wrote.
func (w Places) rename(errs field.ErrorList) field.ErrorList {
	for _, err := range errs {
		err.Field = w.ofItem(w.ofLabel(err.Field))
	}
	return errs
}

// fieldPaths maps path prefixes of children to paths in the set. The first match wins.
var fieldPaths = []struct{ child, set string }{
	{"spec.template.spec.tolerations", "spec.tolerations"},
	{"spec.template.spec.affinity", "spec.affinity"},
	{"spec.template.spec.imagePullSecrets", "spec.imagePullSecrets"},
	{"spec.template.spec.serviceAccountName", "spec.serviceAccountName"},
	{"spec.template.spec", "spec.pod"},
	{"spec.template.metadata", "spec.pod"},
	{"spec.template", "spec.pod"},
	{"spec.volumeClaimTemplates", "spec.pod.volumeClaimTemplates"},
	{"spec.ports", "spec.servicePorts"},
}

// PathInSet returns the path in the set for the path of a child's field.
func PathInSet(path string) string {
	for _, p := range fieldPaths {
		if rest, ok := strings.CutPrefix(path, p.child); ok {
			return p.set + rest
		}
	}
	if path == "" {
		return "spec"
	}
	return path
}
