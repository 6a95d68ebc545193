package application

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/stateful-operator/stateful-operator/agent/settings"
	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
)

// Validate checks spec.application of a filled set, and the fields that it requires. pod is the part
// of the pod template that spec and spec.pod do not have.
func Validate(set *v1alpha1.ReplicatedStatefulSet, pod *corev1.PodSpec) field.ErrorList {
	spec := &set.Spec
	errs := validateFencing(spec)
	if spec.Application == nil {
		return errs
	}
	at := field.NewPath("spec", "application")
	validate, ok := validations[spec.Application.Type]
	if !ok {
		return field.ErrorList{field.NotSupported(at.Child("type"), spec.Application.Type, slices.Sorted(maps.Keys(validations)))}
	}
	if p := ptr.Deref(spec.Primaries, 1); p > 1 && hasOnePrimary(spec.Application.Type) {
		errs = append(errs, field.Invalid(field.NewPath("spec", "primaries"), p, string(spec.Application.Type)+" has one primary; set it to 1, or remove it"))
	}
	if why := apivalidation.NameIsDNSSubdomain(spec.Application.CredentialsSecret, false); len(why) > 0 {
		errs = append(errs, field.Invalid(at.Child("credentialsSecret"), spec.Application.CredentialsSecret, why[0]))
	}
	errs = append(errs, validateRequirements(spec, pod)...)
	return append(errs, validate(spec, at)...)
}

// validations check what only one type requires.
var validations = map[v1alpha1.ApplicationType]func(*v1alpha1.ReplicatedStatefulSetSpec, *field.Path) field.ErrorList{
	v1alpha1.ApplicationPostgreSQL:    validatePostgreSQL,
	v1alpha1.ApplicationRedis:         validateRedis,
	v1alpha1.ApplicationEtcd:          validateEtcd,
	v1alpha1.ApplicationMariaDBGalera: validateGalera,
	v1alpha1.ApplicationRabbitMQ:      validateRabbitMQ,
}

// validateAllPrimaries checks an application whose members are all primaries. why is the reason for which a
// field of sets with one primary is refused.
func validateAllPrimaries(spec *v1alpha1.ReplicatedStatefulSetSpec, why string) (errs field.ErrorList) {
	if p := spec.Primaries; p != nil && spec.Replicas != nil && *p < *spec.Replicas {
		errs = append(errs, field.Invalid(field.NewPath("spec", "primaries"), *p, why))
	}
	for _, name := range []string{v1alpha1.CommandSecondary, v1alpha1.CommandPromote, v1alpha1.CommandDemote} {
		if _, isSet := spec.Pod.Commands[name]; isSet {
			errs = append(errs, field.Forbidden(field.NewPath("spec", "pod", "commands").Key(name), why))
		}
	}
	if spec.Seeding == v1alpha1.SeedingQuorum {
		errs = append(errs, field.Forbidden(field.NewPath("spec", "seeding"),
			"a majority of new volumes would create a second cluster while the first one has data; remove it"))
	}
	if spec.TLS != nil {
		errs = append(errs, field.Forbidden(field.NewPath("spec", "TLS"),
			fmt.Sprintf("type %s does not support TLS yet; remove it, and restrict the network", spec.Application.Type)))
	}
	return errs
}

// maxSecondaries is the max number of secondaries for which a primary can wait.
const maxSecondaries = 63

func invalidSettings(problems []settings.Problem, at *field.Path) (errs field.ErrorList) {
	for _, p := range problems {
		errs = append(errs, field.Forbidden(at.Key(p.Setting), p.Reason+"; remove or correct it"))
	}
	return errs
}

// validateRequirements checks the fields of the pod on which the agent depends.
func validateRequirements(spec *v1alpha1.ReplicatedStatefulSetSpec, pod *corev1.PodSpec) field.ErrorList {
	at := field.NewPath("spec", "pod")
	var errs field.ErrorList
	if len(spec.Pod.VolumeClaimTemplates) == 0 {
		errs = append(errs, field.Required(at.Child("volumeClaimTemplates"), "add a claim, on which spec.application stores its data"))
	}
	for name, shared := range map[string]bool{"shareProcessNamespace": ptr.Deref(pod.ShareProcessNamespace, false), "hostPID": pod.HostPID} {
		if shared {
			errs = append(errs, field.Forbidden(at.Child("template", "spec", name),
				"the agent of spec.application must be process 1 of its container, and ends all other processes of it; remove it"))
		}
	}
	if pod.HostIPC {
		errs = append(errs, field.Forbidden(at.Child("template", "spec", "hostIPC"), "spec.application has private files in /dev/shm; remove it"))
	}
	if i := spec.Pod.CommandContainer(); i < len(spec.Pod.Containers) && len(spec.Pod.Containers[i].Args) > 0 {
		errs = append(errs, field.Forbidden(at.Child("containers").Index(i).Child("args"),
			"spec.application sets the program of this container, which has no other arguments; remove them, and use spec.application for settings"))
	}
	return errs
}

// ValidateUpdate checks a change of a set with spec.application.
func ValidateUpdate(old, set *v1alpha1.ReplicatedStatefulSet) field.ErrorList {
	if old.Spec.Application == nil || set.Spec.Application == nil || ptr.Deref(set.Spec.Replicas, 0) == 0 {
		return nil
	}
	if hasServerSecret(&old.Spec) == hasServerSecret(&set.Spec) {
		return nil
	}
	return field.ErrorList{field.Forbidden(field.NewPath("spec", "TLS", "static", "member", "serverSecret"),
		"members with and without TLS cannot replicate from each other; set spec.replicas to 0 first")}
}

// Warnings returns warnings about valid settings that may not be intended.
func Warnings(set *v1alpha1.ReplicatedStatefulSet) (texts []string) {
	if set.Spec.Application == nil {
		return nil
	}
	replicas := ptr.Deref(set.Spec.Replicas, 0)
	warn := func(name string, secondaries int32, effect string) {
		if secondaries > 0 && replicas > 0 && replicas <= secondaries+1 {
			texts = append(texts, fmt.Sprintf("spec.application.%s is %d, and spec.replicas %d: "+
				"while a secondary is not connected, %s; set replicas to %d or more", name, secondaries, replicas, effect, secondaries+2))
		}
	}
	if o := set.Spec.Application.PostgreSQL; o != nil {
		warn("postgreSQL.synchronousStandbys", o.SynchronousStandbys, "commits wait")
	}
	if o := set.Spec.Application.Redis; o != nil {
		warn("redis.minReplicasToWrite", o.MinReplicasToWrite, "writes are refused")
	}
	if FencedByLease(set) && replicas == 1 {
		texts = append(texts, "spec.replicas is 1: no other member can become primary when the Lease of spec.fencing expires; set replicas to 2 or more, or spec.fencing.mode to Proof")
	}
	if t := set.Spec.Application.Type; !hasOnePrimary(t) && replicas > 0 && replicas%2 == 0 {
		texts = append(texts, fmt.Sprintf("spec.replicas is %d: %d members of %s survive the loss of as many members as %d; set an odd number", replicas, replicas, t, replicas-1))
	}
	return texts
}
