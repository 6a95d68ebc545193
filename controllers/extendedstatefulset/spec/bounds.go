package spec

import (
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/bounds"
	"github.com/stateful-operator/stateful-operator/controllers/internal/configuration"
)

// Limits of one object. The schema has the same limits where possible. They are repeated here for
// objects that are older than a limit, and because /scale bypasses the webhook. An object above a limit
// gets a condition and no changes. Its replicas are not lowered to the limit, because that would scale
// down running pods.
const (
	MaxReplicas  = 1000 // in a zone
	MaxZones     = 64
	MaxZonesEver = 256  // in the status, which keeps removed zones because of their claims
	maxPods      = 2000 // in all zones
	maxClaims    = 4000 // of all these pods
	MaxClaimsOf  = 16   // claim templates

	maxContainers = 64
	MaxVolumes    = 256
	MaxPorts      = 256 // of all containers; each is a port of two Services
	maxKeys       = 64  // labels, annotations
	maxTerms      = 32  // of a selector
	maxValues     = 64  // of a term

	maxRetries     = 100
	maxParallel    = 100 // concurrent pods of a Job
	maxCompletions = 1000

	maxProbes    = 16
	maxArguments = 64 // of the command of a probe
	maxCommand   = 16 << 10
	maxProbe     = 3600 // seconds

	// Each zone has a copy of the spec.
	largestSpec    = 256 << 10
	largestOfZones = 4 << 20
)

// bound is the number of items in a field, and its max.
type bound struct {
	have, most int
	at         *field.Path
	// cure is how the user can reduce the number, for the error.
	cure string
}

// check returns an error if the max is exceeded.
func (b bound) check() field.ErrorList {
	if b.have <= b.most {
		return nil
	}
	return field.ErrorList{field.Invalid(b.at, b.have, fmt.Sprintf("may be at most %d; %s", b.most, b.cure))}
}

// tooMuch returns an error for each exceeded limit of a spec. It is called before other code iterates
// over fields of unlimited length.
func tooMuch(spec *v1alpha1.ExtendedStatefulSetSpec, at *field.Path) (errs field.ErrorList) {
	template, strategy := at.Child("template", "spec"), at.Child("updateStrategy")
	replicas, claims := *spec.Template.Spec.Replicas, len(spec.Template.Spec.VolumeClaimTemplates)
	for _, b := range []bound{
		{int(replicas), MaxReplicas, template.Child("replicas"), "take fewer replicas"},
		{len(spec.Zones), MaxZones, at.Child("zones"), "take fewer zones"},
		{claims, MaxClaimsOf, template.Child("volumeClaimTemplates"), "take fewer claim templates"},
		{int(ptr.Deref(spec.UpdateStrategy.Canaries, 1)), MaxReplicas, strategy.Child("canaries"), "take fewer canaries"},
		{int(spec.UpdateStrategy.RetryCount), maxRetries, strategy.Child("retryCount"), "take fewer attempts"},
		{len(spec.ActivePassiveProbes), maxProbes, at.Child("activePassiveProbes"), "take fewer probes"},
	} {
		errs = append(errs, b.check()...)
	}
	errs = append(errs, tooManyTerms(spec.Template.Spec.Selector, template.Child("selector"))...)
	errs = append(errs, tooManyKeys(&spec.Template.ObjectMeta, at.Child("template", "metadata"))...)
	errs = append(errs, tooManyInPod(&spec.Template.Spec.Template, template.Child("template"))...)
	errs = append(errs, tooMuchOfJob(spec.UpdateStrategy.PreUpdateJob, strategy.Child("preUpdateJob"))...)
	errs = append(errs, tooMuchOfJob(spec.UpdateStrategy.PostUpdateJob, strategy.Child("postUpdateJob"))...)
	if len(errs) > 0 {
		return errs
	}
	errs = append(tooManyInAll(int(replicas), max(1, len(spec.Zones)), claims, template.Child("replicas")), TooLarge(spec, at)...)
	errs = append(errs, bounds.Pods(
		int(replicas)*max(1, len(spec.Zones)),
		&spec.Template.Spec.Template,
		template.Child("replicas"),
	)...)
	if n := len(configuration.Origins(&spec.Template.Spec.Template.Spec)); spec.UpdateOnEnvChange && n > configuration.MaxSources {
		errs = append(errs, field.Invalid(at.Child("updateOnEnvChange"), true, fmt.Sprintf(
			"at most %d ConfigMaps and Secrets can be tracked, and template references more; reference fewer, or set this to false", configuration.MaxSources)))
	}
	return errs
}

// tooManyInAll returns an error if the number of pods or claims in all zones exceeds its limit.
func tooManyInAll(replicas, zones, claims int, at *field.Path) field.ErrorList {
	switch {
	case replicas*zones > maxPods:
		return field.ErrorList{field.Invalid(at, replicas, fmt.Sprintf(
			"times the number of zones may be at most %d; take fewer replicas or fewer zones", maxPods))}
	case replicas*zones*claims > maxClaims:
		return field.ErrorList{field.Invalid(at, replicas, fmt.Sprintf(
			"times the number of zones and of claim templates may be at most %d; take fewer replicas, zones or claim templates", maxClaims))}
	}
	return nil
}

// TooLarge returns an error if the size of the spec, or of its copies for all zones, exceeds its limit.
// A schema cannot express this limit.
func TooLarge(spec *v1alpha1.ExtendedStatefulSetSpec, at *field.Path) field.ErrorList {
	raw, err := json.Marshal(spec)
	switch size := len(raw); {
	case err != nil:
		return field.ErrorList{field.Invalid(at, nil, err.Error())}
	case size > largestSpec:
		return field.ErrorList{field.Invalid(at, fmt.Sprintf("%d bytes", size), fmt.Sprintf(
			"may have at most %d bytes; move long values into ConfigMaps", largestSpec))}
	case size*len(spec.Zones) > largestOfZones:
		return field.ErrorList{field.Invalid(at, fmt.Sprintf("%d bytes", size), fmt.Sprintf(
			"times the number of zones may be at most %d bytes, since each zone has a copy; take fewer zones, or move long values into ConfigMaps", largestOfZones))}
	}
	return nil
}

// tooManyTerms checks the limits of a selector.
func tooManyTerms(s *metav1.LabelSelector, at *field.Path) (errs field.ErrorList) {
	if s == nil {
		return nil
	}
	errs = append(bound{len(s.MatchLabels), maxTerms, at.Child("matchLabels"), "select by fewer labels"}.check(),
		bound{len(s.MatchExpressions), maxTerms, at.Child("matchExpressions"), "take fewer expressions"}.check()...)
	for i := range s.MatchExpressions[:min(len(s.MatchExpressions), maxTerms)] {
		errs = append(errs, bound{len(s.MatchExpressions[i].Values), maxValues, at.Child("matchExpressions").Index(i).Child("values"), "take fewer values"}.check()...)
	}
	return errs
}

// tooManyKeys checks the limits of labels and annotations.
func tooManyKeys(m *metav1.ObjectMeta, at *field.Path) field.ErrorList {
	return append(bound{len(m.Labels), maxKeys, at.Child("labels"), "take fewer labels"}.check(),
		bound{len(m.Annotations), maxKeys, at.Child("annotations"), "take fewer annotations"}.check()...)
}

// tooManyInPod checks the limits of a pod template.
func tooManyInPod(pod *corev1.PodTemplateSpec, at *field.Path) field.ErrorList {
	spec, ports := at.Child("spec"), 0
	for i := range pod.Spec.Containers {
		ports += len(pod.Spec.Containers[i].Ports)
	}
	errs := tooManyKeys(&pod.ObjectMeta, at.Child("metadata"))
	for _, b := range []bound{
		{len(pod.Spec.Containers), maxContainers, spec.Child("containers"), "take fewer containers"},
		{len(pod.Spec.InitContainers), maxContainers, spec.Child("initContainers"), "take fewer init containers"},
		{len(pod.Spec.Volumes), MaxVolumes, spec.Child("volumes"), "take fewer volumes"},
		{len(pod.Spec.ImagePullSecrets), maxContainers, spec.Child("imagePullSecrets"), "take fewer Secrets"},
		{ports, MaxPorts, spec.Child("containers"), "take fewer ports in all containers"},
	} {
		errs = append(errs, b.check()...)
	}
	return errs
}

// tooMuchOfJob checks the limits of a Job.
func tooMuchOfJob(job *v1alpha1.UpdateJob, at *field.Path) field.ErrorList {
	if job == nil {
		return nil
	}
	spec := at.Child("spec")
	errs := append(tooManyKeys(&job.ObjectMeta, at.Child("metadata")), tooManyInPod(&job.Spec.Template, spec.Child("template"))...)
	errs = append(errs, bound{int(ptr.Deref(job.Spec.Parallelism, 1)), maxParallel, spec.Child("parallelism"), "take fewer pods at a time"}.check()...)
	return append(errs, bound{int(ptr.Deref(job.Spec.Completions, 1)), maxCompletions, spec.Child("completions"), "take fewer completions"}.check()...)
}

// tooMuchOfProbe checks the limits of a probe. Its command is sent with each run.
func tooMuchOfProbe(probe *v1alpha1.ActivePassiveProbe, at *field.Path) (errs field.ErrorList) {
	var argv []string
	if probe.Exec != nil {
		argv = probe.Exec.Command
	}
	size := 0
	for _, arg := range argv {
		size += len(arg)
	}
	for _, b := range []bound{
		{len(argv), maxArguments, at.Child("exec", "command"), "take fewer arguments, or write a script"},
		{size, maxCommand, at.Child("exec", "command"), "take fewer bytes, or write a script"},
		{int(probe.PeriodSeconds), maxProbe, at.Child("periodSeconds"), "use a shorter period"},
		{int(probe.TimeoutSeconds), maxProbe, at.Child("timeoutSeconds"), "use a shorter timeout"},
	} {
		errs = append(errs, b.check()...)
	}
	return errs
}

// tooWide returns an error for scaling rules that allow more replicas than the limit. It is called only
// at admission: an existing object with such rules is still served, because they permit nothing above
// the limit.
func tooWide(rules *v1alpha1.Scaling, at *field.Path) (errs field.ErrorList) {
	if rules == nil {
		return nil
	}
	for _, b := range []struct {
		name string
		have *int32
	}{{"min", rules.Min}, {"max", rules.Max}} {
		if b.have != nil && *b.have > MaxReplicas {
			errs = append(errs, field.Invalid(
				at.Child(b.name),
				*b.have,
				fmt.Sprintf("may be at most %d, the max number of replicas; lower it", MaxReplicas),
			))
		}
	}
	return errs
}
