package spec

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/bounds"
	"github.com/stateful-operator/stateful-operator/controllers/internal/configuration"
)

// Max sizes in a spec. The CRD schema has the same limits, but an object may be older than the
// schema.
const (
	MaxReplicas = 1000
	MaxRules    = 100 // ConfigMaps of spec.ruleSelector
	maxPorts    = 100
	maxSecrets  = 64
	maxTolerate = 128
	maxArgs     = 1024
	maxArg      = 32 << 10

	maxMaintenance = 64 // members of spec.maintenance
)

// validateBounds enforces the limits of the CRD schema for objects that are older than that part of
// the schema, and for fields that spec.pod.template adds.
func validateBounds(spec *v1alpha1.ReplicatedStatefulSetSpec, at *field.Path) field.ErrorList {
	pod, in := &spec.Pod, at.Child("pod")
	errs := bounds.Selector(spec.RuleSelector, at.Child("ruleSelector"))
	for _, one := range []struct {
		have, most int
		at         *field.Path
	}{
		{len(spec.ServicePorts), maxPorts, at.Child("servicePorts")},
		{len(spec.Secrets), maxSecrets, at.Child("secrets")},
		{len(spec.ImagePullSecrets), maxSecrets, at.Child("imagePullSecrets")},
		{len(spec.NodeSelector), bounds.Words, at.Child("nodeSelector")},
		{len(spec.Maintenance), maxMaintenance, at.Child("maintenance")},
		{len(spec.Tolerations), maxTolerate, at.Child("tolerations")},
		{len(pod.InitContainers), bounds.Containers, in.Child("initContainers")},
		{len(pod.Containers), bounds.Containers, in.Child("containers")},
		{len(pod.Volumes), bounds.Volumes, in.Child("volumes")},
		{len(pod.VolumeClaimTemplates), bounds.Claims, in.Child("volumeClaimTemplates")},
		{len(pod.Labels), bounds.Words, in.Child("labels")},
		{len(pod.Annotations), bounds.Words, in.Child("annotations")},
		{len(pod.NodeSelector), bounds.Words, in.Child("nodeSelector")},
	} {
		errs = append(errs, bounds.AtMost(one.have, one.most, one.at)...)
	}
	for _, name := range sets.List(sets.KeySet(pod.Commands)) {
		argv := in.Child("commands").Key(name).Child("command")
		errs = append(errs, bounds.AtMost(len(pod.Commands[name].Command), maxArgs, argv)...)
		for i, arg := range pod.Commands[name].Command[:min(len(pod.Commands[name].Command), maxArgs)] {
			if len(arg) > maxArg {
				errs = append(errs, field.Invalid(argv.Index(i), field.OmitValueType{}, fmt.Sprintf(
					"has %d bytes, and the max is %d; move the script into the image or a ConfigMap", len(arg), maxArg)))
			}
		}
	}
	return errs
}

// ValidateConfig rejects a set whose pods use more ConfigMaps and Secrets than can be followed.
func ValidateConfig(set *v1alpha1.ReplicatedStatefulSet, at *field.Path) field.ErrorList {
	if !set.Spec.UpdateOnEnvChange || len(configuration.Origins(PodOfConfig(set))) <= configuration.MaxSources {
		return nil
	}
	return field.ErrorList{field.Invalid(at, true, fmt.Sprintf(
		"supports at most %d ConfigMaps and Secrets, and the pods use more; use fewer, or set this to false", configuration.MaxSources))}
}

// validateSize rejects a spec that is too large, and pods that are too large in total.
func validateSize(spec *v1alpha1.ReplicatedStatefulSetSpec, at *field.Path) field.ErrorList {
	errs := bounds.Pods(int(ptr.Deref(spec.Replicas, 1)), &spec.Pod, at.Child("replicas"))
	return append(errs, bounds.Spec(spec, at)...)
}
