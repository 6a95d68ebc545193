package spec

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/excerpt"
	"github.com/stateful-operator/stateful-operator/controllers/internal/order"
	"github.com/stateful-operator/stateful-operator/controllers/internal/unread"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/application"
)

// maxNameLength is the max length of the name of a set: its pods have the label value
// rss-<name>-<hash of 10>. The names of pods, Services and claims are shorter.
const maxNameLength = validation.LabelValueMaxLength - len("rss-") - len("-") - 10

// Validate checks an object with defaults, without reading other objects. The CRD schema rejects
// most of these errors with the same messages. Validate finds them in objects that were stored
// under an older schema. The operator creates no children of an invalid set and runs no commands in
// its members.
func Validate(set *v1alpha1.ReplicatedStatefulSet) field.ErrorList {
	if errs := unread.Validate(set.Spec.Problem); len(errs) > 0 {
		return errs
	}
	whole, left, errs := WithTemplate(set)
	if len(errs) > 0 {
		return errs // nothing else can be checked if the template cannot be parsed
	}
	errs = Places{set}.rename(validateWhole(whole))
	errs = append(errs, application.Validate(set, &left)...)
	errs = append(errs, validateSize(&set.Spec, field.NewPath("spec"))...)
	if t, _ := templateOf(&set.Spec.Pod); set.Spec.Pod.Template != nil {
		errs = append(errs, validateTemplate(set, &t)...)
	}
	return errs
}

// validateWhole checks a set whose template is merged into spec and spec.pod.
func validateWhole(set *v1alpha1.ReplicatedStatefulSet) field.ErrorList {
	spec, at := &set.Spec, field.NewPath("spec")
	errs := validateName(set.Name, field.NewPath("metadata", "name"))
	errs = append(errs, ValidateLabels(set.Labels, field.NewPath("metadata", "labels"))...)
	errs = append(errs, validateCounts(spec, at)...)
	errs = append(errs, validateBounds(spec, at)...)
	errs = append(errs, validateDuration(spec.ReconcileInterval, at.Child("reconcileInterval"))...)
	errs = append(errs, validateDuration(spec.FailureWindow, at.Child("failureWindow"))...)
	errs = append(errs, validateEvictions(spec, at)...)
	errs = append(errs, validateFailover(spec, at.Child("failover"))...)
	errs = append(errs, validateRetention(spec.PersistentVolumeClaimRetentionPolicy, at.Child("persistentVolumeClaimRetentionPolicy"))...)
	errs = append(errs, validateServicePorts(spec.ServicePorts, at.Child("servicePorts"))...)
	errs = append(errs, ValidateConfig(set, at.Child("updateOnEnvChange"))...)
	errs = append(errs, validateSecrets(spec.Secrets, at.Child("secrets"))...)
	if spec.RuleSelector != nil {
		errs = append(
			errs,
			metavalidation.ValidateLabelSelector(
				spec.RuleSelector,
				metavalidation.LabelSelectorValidationOptions{},
				at.Child("ruleSelector"),
			)...,
		)
	}
	return append(errs, validatePod(set, at.Child("pod"))...)
}

func validateName(name string, at *field.Path) field.ErrorList {
	if len(name) > maxNameLength {
		return field.ErrorList{field.Invalid(at, name, fmt.Sprintf(
			"may have at most %d characters: pods carry rss-<name>-<hash> as the value of a label, which has at most %d", maxNameLength, validation.LabelValueMaxLength))}
	}
	if len(validation.IsDNS1035Label(name)) > 0 {
		return field.ErrorList{field.Invalid(at, name,
			"must begin with a letter and go on with lower-case letters, digits and hyphens: Services are named after it")}
	}
	return nil
}

// ValidateLabels rejects keys that are reserved for the operator.
func ValidateLabels(labels map[string]string, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, key := range sets.List(sets.KeySet(labels)) {
		if key == v1alpha1.LabelApp || strings.HasPrefix(key, "rss") || strings.HasPrefix(key, v1alpha1.Prefix) {
			errs = append(errs, field.Forbidden(at.Key(key),
				"label app and labels that begin with rss or clusterlabs.org/ are reserved for the operator; remove or rename it"))
		}
	}
	return errs
}

func validateCounts(spec *v1alpha1.ReplicatedStatefulSetSpec, at *field.Path) field.ErrorList {
	replicas := *spec.Replicas
	var errs field.ErrorList
	switch p := at.Child("replicas"); {
	case replicas < 0:
		errs = append(errs, field.Invalid(p, replicas, "must be 0 or more; 0 stops the set"))
	case replicas > MaxReplicas:
		errs = append(
			errs,
			field.Invalid(p, replicas, fmt.Sprintf("may be at most %d; lower it", MaxReplicas)),
		)
	}
	primaries := ptr.Deref(spec.Primaries, replicas)
	switch p := at.Child("primaries"); {
	case primaries < 0 && spec.Primaries != nil:
		errs = append(errs, field.Invalid(p, primaries, "must be 1 or more"))
	case primaries == 0 && replicas > 0:
		errs = append(
			errs,
			field.Invalid(
				p,
				primaries,
				"may be 0 only with replicas 0; to stop the set, set replicas to 0 and keep primaries",
			),
		)
	case primaries > replicas && replicas > 0:
		errs = append(errs, field.Invalid(p, primaries, fmt.Sprintf(
			"may not be more than replicas, which is %d; lower it, or remove it so that it follows replicas", replicas)))
	}
	if _, follow := spec.Pod.Commands[v1alpha1.CommandSecondary]; spec.Seeding == v1alpha1.SeedingQuorum && primaries < replicas && !follow {
		errs = append(errs, field.Invalid(at.Child("seeding"), string(spec.Seeding),
			"requires command secondary if not all members are primary: the others would have outdated copies; add spec.pod.commands.secondary, or use All"))
	}
	return errs
}

func validateDuration(text v1alpha1.Duration, at *field.Path) field.ErrorList {
	if text == "" {
		return nil // not set; the schema rejects an empty string
	}
	if _, err := ParseDuration(string(text)); err != nil {
		return field.ErrorList{field.Invalid(at, string(text), err.Error())}
	}
	return nil
}

// validateFailover enforces the rules of the schema.
func validateFailover(spec *v1alpha1.ReplicatedStatefulSetSpec, at *field.Path) field.ErrorList {
	if spec.Failover == nil {
		return nil
	}
	errs := validateDuration(spec.Failover.RecreateUnresponsiveAfter, at.Child("recreateUnresponsiveAfter"))
	known := []v1alpha1.RestartPrimary{"", v1alpha1.RestartNever, v1alpha1.RestartIfNewest}
	if n := spec.Failover.MaxLoss; n != nil && *n < 0 {
		errs = append(errs, field.Invalid(at.Child("maxLoss"), *n, "must be 0 or more"))
	} else if n != nil && len(spec.Pod.VolumeClaimTemplates) == 0 {
		errs = append(errs, field.Forbidden(at.Child("maxLoss"), "without spec.pod.volumeClaimTemplates the copy of the former primary is lost with its pod; remove it, or add a claim"))
	}
	if !slices.Contains(known, spec.Failover.RestartPrimary) {
		errs = append(errs, field.NotSupported(at.Child("restartPrimary"), spec.Failover.RestartPrimary, known[1:]))
	}
	return errs
}

// validateEvictions enforces the rules of the schema.
func validateEvictions(spec *v1alpha1.ReplicatedStatefulSetSpec, at *field.Path) field.ErrorList {
	errs := validateDuration(spec.EvictionTimeout, at.Child("evictionTimeout"))
	known := []v1alpha1.EvictionPolicy{"", v1alpha1.EvictionHandover, v1alpha1.EvictionAllow}
	if !slices.Contains(known, spec.EvictionPolicy) {
		errs = append(errs, field.NotSupported(at.Child("evictionPolicy"), spec.EvictionPolicy, known[1:]))
	}
	b, in := spec.PodDisruptionBudget, at.Child("podDisruptionBudget")
	if b == nil {
		return errs
	}
	for _, one := range []struct {
		have *int32
		at   *field.Path
	}{{b.MinAvailable, in.Child("minAvailable")}, {b.MaxUnavailable, in.Child("maxUnavailable")}} {
		if n := ptr.Deref(one.have, 0); n < 0 || n > MaxReplicas {
			errs = append(errs, field.Invalid(one.at, n, fmt.Sprintf("must be from 0 to %d", MaxReplicas)))
		}
	}
	if b.MinAvailable != nil && b.MaxUnavailable != nil {
		errs = append(errs, field.Invalid(in.Child("minAvailable"), *b.MinAvailable,
			"may not be set together with maxUnavailable; remove one of them"))
	}
	if numbers := b.MinAvailable != nil || b.MaxUnavailable != nil; b.Disabled && numbers {
		errs = append(errs, field.Invalid(in.Child("disabled"), true,
			"disables the budget; remove minAvailable and maxUnavailable, or disabled"))
	}
	return errs
}

// validateRetention enforces the rules of the schema.
func validateRetention(policy *v1alpha1.ClaimRetentionPolicy, at *field.Path) field.ErrorList {
	retention := ptr.Deref(policy, v1alpha1.ClaimRetentionPolicy{})
	known := []v1alpha1.RetentionPolicy{"", v1alpha1.RetainClaims, v1alpha1.DeleteClaims}
	var errs field.ErrorList
	for _, one := range []struct {
		have v1alpha1.RetentionPolicy
		at   *field.Path
	}{{retention.WhenDeleted, at.Child("whenDeleted")}, {retention.WhenScaled, at.Child("whenScaled")}} {
		if !slices.Contains(known, one.have) {
			errs = append(errs, field.NotSupported(one.at, one.have, known[1:]))
		}
	}
	return errs
}

// ValidateMaintenance rejects names that no member can ever have. Such a name does not invalidate
// the spec: admission rejects it, and otherwise a condition reports it.
func ValidateMaintenance(set *v1alpha1.ReplicatedStatefulSet) field.ErrorList {
	at := field.NewPath("spec", "maintenance")
	var errs field.ErrorList
	for i, name := range set.Spec.Maintenance {
		if n, ok := OrdinalOf(set, name); !ok || n >= MaxReplicas {
			errs = append(errs, field.Invalid(at.Index(i), excerpt.Message(name), fmt.Sprintf(
				"the members of a set are named rss-<name of the set>-<ordinal from 0 to %d>; remove or correct it", MaxReplicas-1)))
		}
	}
	return errs
}

func validateServicePorts(ports []corev1.ServicePort, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, port := range ports {
		if port.NodePort != 0 {
			errs = append(errs, field.Forbidden(at.Index(i).Child("nodePort"),
				`these Services have no node ports; create a separate Service that selects app: <name> and rss-active-member: "true"`))
		}
	}
	return errs
}

func validateSecrets(secrets []string, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, name := range secrets {
		switch {
		case slices.Contains(secrets[:i], name):
			errs = append(errs, field.Duplicate(at.Index(i), name))
		case len(validation.IsDNS1123Label(secretVolumeName(name))) > 0 || name == "":
			errs = append(errs, field.Invalid(at.Index(i), name,
				"the volume name secret-<name> contains it: it may have at most 56 lower-case letters, digits and hyphens, with no hyphen at either end"))
		}
	}
	return errs
}

// ValidateOverrides checks the annotations that contain orders. A wrong one does not invalidate the
// spec: admission rejects it, and otherwise it is ignored.
func ValidateOverrides(set *v1alpha1.ReplicatedStatefulSet) field.ErrorList {
	at := field.NewPath("metadata", "annotations")
	var errs field.ErrorList
	for _, name := range OrderNames {
		key := AnnotationOf[name]
		if pod, ok := set.Annotations[key]; ok {
			errs = append(errs, validateMember(set, pod, at.Key(key))...)
		}
	}
	return errs
}

// validateMember rejects a name that no member has. For a stopped set it accepts the former
// members, because a seed order is given before the set is scaled up.
func validateMember(set *v1alpha1.ReplicatedStatefulSet, pod string, at *field.Path) field.ErrorList {
	count := int(max(*set.Spec.Replicas, set.Status.RestoreReplicas))
	if n, known := OrdinalOf(set, pod); known && n < count {
		return nil
	}
	return field.ErrorList{field.Invalid(at, pod, fmt.Sprintf(
		"is not the name of a member; the members are %s to %s", MemberName(set, 0), MemberName(set, max(0, count-1))))}
}

// ValidateOrders checks the orders in the spec. A wrong one does not invalidate the spec: admission
// rejects it, and otherwise it is ignored.
func ValidateOrders(set *v1alpha1.ReplicatedStatefulSet) field.ErrorList {
	var errs field.ErrorList
	for _, name := range OrderNames {
		o, at := OrderIn(&set.Spec, name), field.NewPath("spec", string(name))
		if o == nil {
			continue
		}
		errs = append(errs, validateMember(set, o.Member, at.Child("member"))...)
		if !order.IsID(o.ID) {
			errs = append(errs, field.Invalid(at.Child("id"), excerpt.Message(o.ID),
				"an id has lower-case letters, digits and hyphens, with no hyphen at either end, for example 2026-11-25; correct it"))
		}
	}
	return errs
}

func validatePod(set *v1alpha1.ReplicatedStatefulSet, at *field.Path) field.ErrorList {
	pod := &set.Spec.Pod
	errs := validateCommands(pod.Commands, at.Child("commands"))
	errs = append(errs, validateContainers(&set.Spec, at)...)
	errs = append(errs, validateVolumes(&set.Spec, at.Child("volumes"))...)
	errs = append(errs, validateClaims(set, at.Child("volumeClaimTemplates"))...)
	errs = append(errs, ValidateLabels(pod.Labels, at.Child("labels"))...)
	return append(errs, validateAnnotations(pod.Annotations, at.Child("annotations"))...)
}

// validateAnnotations rejects keys that are reserved for the operator.
func validateAnnotations(annotations map[string]string, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, key := range sets.List(sets.KeySet(annotations)) {
		if strings.HasPrefix(key, v1alpha1.Prefix) {
			errs = append(
				errs,
				field.Forbidden(
					at.Key(key),
					"annotations that begin with clusterlabs.org/ are reserved for the operator; remove it",
				),
			)
		}
	}
	return errs
}

func validateCommands(commands map[string]v1alpha1.Command, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, name := range NeededCommands {
		if _, ok := commands[name]; !ok {
			errs = append(
				errs,
				field.Required(at.Key(name), "add the command that "+commandPurposes[name]),
			)
		}
	}
	known := slices.Concat(NeededCommands, OptionalCommands)
	for _, name := range sets.List(sets.KeySet(commands)) {
		command := commands[name]
		if !slices.Contains(known, name) {
			errs = append(errs, field.NotSupported(at, name, known))
		}
		if len(command.Command) == 0 || command.Command[0] == "" {
			errs = append(
				errs,
				field.Required(
					at.Key(name).Child("command"),
					`set the program and its arguments, for example ["/status.sh"]`,
				),
			)
		}
		errs = append(errs, validateDuration(command.Timeout, at.Key(name).Child("timeout"))...)
	}
	return append(errs, validatePreStop(commands[v1alpha1.CommandPreStop], at.Key(v1alpha1.CommandPreStop))...)
}

// validatePreStop rejects the epoch placeholder, which is not substituted in preStop.
func validatePreStop(command v1alpha1.Command, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, arg := range command.Command {
		if usesEpoch(arg) {
			errs = append(errs, field.Invalid(at.Child("command").Index(i), field.OmitValueType{},
				"the kubelet runs preStop, and does not substitute the epoch; remove "+epochWord+" and "+createdWord))
		}
	}
	return errs
}

func validateContainers(spec *v1alpha1.ReplicatedStatefulSetSpec, at *field.Path) field.ErrorList {
	pod := &spec.Pod
	var errs field.ErrorList
	if len(pod.Containers) == 0 {
		errs = append(
			errs,
			field.Required(
				at.Child("containers"),
				"a pod must have at least one container, in which commands run",
			),
		)
	}
	for _, list := range []struct {
		containers []corev1.Container
		at         *field.Path
	}{{pod.InitContainers, at.Child("initContainers")}, {pod.Containers, at.Child("containers")}} {
		for i := range list.containers {
			c := &list.containers[i]
			if c.Image == "" {
				errs = append(
					errs,
					field.Required(
						list.at.Index(i).Child("image"),
						"each container needs an image",
					),
				)
			}
			errs = append(errs, validateMounts(spec, c, list.at.Index(i).Child("volumeMounts"))...)
		}
	}
	if name := pod.Container; name != "" && !slices.ContainsFunc(pod.Containers, func(c corev1.Container) bool { return c.Name == name }) {
		errs = append(errs, field.Invalid(at.Child("container"), name,
			"is not in pod.containers; use the name of a container, or remove it to use the first"))
	}
	return errs
}

func validateMounts(spec *v1alpha1.ReplicatedStatefulSetSpec, c *corev1.Container, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, mount := range c.VolumeMounts {
		if slices.ContainsFunc(OwnMounts(spec), func(own corev1.VolumeMount) bool { return own.MountPath == mount.MountPath }) {
			errs = append(errs, field.Invalid(at.Index(i).Child("mountPath"), mount.MountPath,
				"the operator mounts its own volume there; use another path"))
		}
	}
	return errs
}

// reservedVolumes returns the names of the operator's volumes, used or not, and of the volumes of
// spec.secrets.
func reservedVolumes(spec *v1alpha1.ReplicatedStatefulSetSpec) sets.Set[string] {
	names := sets.New(volumePodInfo, volumePeerTLS, volumeServerTLS)
	for _, secret := range spec.Secrets {
		names.Insert(secretVolumeName(secret))
	}
	return names
}

func validateVolumes(spec *v1alpha1.ReplicatedStatefulSetSpec, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen, reserved := sets.New[string](), reservedVolumes(spec)
	for i, v := range spec.Pod.Volumes {
		switch name := at.Index(i).Child("name"); {
		case reserved.Has(v.Name):
			errs = append(
				errs,
				field.Invalid(name, v.Name, "this name is reserved for a volume of the operator; rename it"),
			)
		case seen.Has(v.Name):
			errs = append(errs, field.Duplicate(name, v.Name))
		}
		seen.Insert(v.Name)
	}
	return errs
}

// validateClaims checks the names of the claim templates: each is also a volume name and the prefix
// of claim names.
func validateClaims(set *v1alpha1.ReplicatedStatefulSet, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	taken := reservedVolumes(&set.Spec)
	for _, v := range set.Spec.Pod.Volumes {
		taken.Insert(v.Name)
	}
	seen := sets.New[string]()
	for i, t := range set.Spec.Pod.VolumeClaimTemplates {
		switch name := at.Index(i).Child("metadata", "name"); {
		case t.Name == "":
			errs = append(errs, field.Required(name, "the claim is mounted under this name"))
		case seen.Has(t.Name):
			errs = append(errs, field.Duplicate(name, t.Name))
		case taken.Has(t.Name):
			errs = append(
				errs,
				field.Invalid(name, t.Name, "a volume has the same name; rename one of them"),
			)
		case len(validation.IsDNS1123Label(t.Name)) > 0:
			errs = append(
				errs,
				field.Invalid(name, t.Name, strings.Join(validation.IsDNS1123Label(t.Name), "; ")),
			)
		}
		seen.Insert(t.Name)
	}
	return errs
}
