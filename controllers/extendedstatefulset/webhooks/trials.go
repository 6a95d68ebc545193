package webhooks

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/children"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/spec"
	"github.com/stateful-operator/stateful-operator/controllers/internal/rejection"
	"github.com/stateful-operator/stateful-operator/controllers/internal/trial"
)

// ifPermitted runs check, which reads other objects of the namespace and makes dry runs, if the
// requester may create pods there and the limit of concurrent dry runs allows it. Otherwise it returns a
// warning. Other users must not learn from the result which objects exist.
func (v *Validator) ifPermitted(ctx context.Context, set *v1alpha1.ExtendedStatefulSet,
	check func() (admission.Warnings, field.ErrorList)) (admission.Warnings, field.ErrorList) {
	end, why := v.Court.Open(ctx, set.Namespace)
	if why != "" {
		return admission.Warnings{"dry run of spec.template skipped: " + why}, nil
	}
	defer end()
	return check()
}

// dryRun is an object for a dry run. at maps the field paths of the object to those of the set.
type dryRun struct {
	Object client.Object
	at     func(path string) string
}

// Trials returns the objects for dry runs: the first StatefulSet, a claim of each template, and the
// Jobs. Their owner may not exist yet.
func Trials(set *v1alpha1.ExtendedStatefulSet) []dryRun {
	z := children.Zone{Index: children.NoZone}
	if len(set.Spec.Zones) > 0 {
		z = children.Zone{Name: set.Spec.Zones[0]}
	}
	child := children.BuildChild(set, z, children.Version{Number: 1}, children.Span{})
	all := []dryRun{{child, func(path string) string { return placeOfChild(set, child, path) }}}
	for i := range set.Spec.Template.Spec.VolumeClaimTemplates {
		all = append(all, dryRun{children.BuildClaim(set, &set.Spec.Template.Spec.VolumeClaimTemplates[i], z, 0),
			below("spec.template.spec.volumeClaimTemplates[" + strconv.Itoa(i) + "]")})
	}
	strategy := &set.Spec.UpdateStrategy
	if strategy.PreUpdateJob != nil {
		all = append(all, dryRun{children.BuildJob(set, strategy.PreUpdateJob, children.PreJob, 1, 1), below("spec.updateStrategy.preUpdateJob")})
	}
	if strategy.PostUpdateJob != nil {
		all = append(all, dryRun{children.BuildJob(set, strategy.PostUpdateJob, children.PostJob, 1, 1), below("spec.updateStrategy.postUpdateJob")})
	}
	for _, t := range all {
		t.Object.SetOwnerReferences(nil)
	}
	return all
}

// tryPod creates a pod as a dry run. Older API servers do not validate the pod template of a
// StatefulSet, so Invalid rejects the set here too. Other errors may be temporary and become warnings.
func (v *Validator) tryPod(ctx context.Context, set *v1alpha1.ExtendedStatefulSet) (admission.Warnings, field.ErrorList) {
	child := Trials(set)[0]
	pod := children.BuildTrialPod(child.Object.(*appsv1.StatefulSet))
	_, err := v.Court.Try(ctx, pod, below("")) // removed fields were already reported for its StatefulSet
	// A pod that replaces another needs no additional quota.
	replaces := set.Status.CurrentVersion != 0 && spec.HandoverOf(set) == v1alpha1.HandoverPerOrdinal
	switch {
	case err == nil, apierrors.IsAlreadyExists(err):
		return nil, nil
	case replaces && rejection.IsFullQuota(err):
		return nil, nil
	case apierrors.IsInvalid(err):
		return nil, rejection.Explain(err, func(path string) string { return child.at(strings.TrimSuffix("spec.template."+path, ".")) })
	}
	return admission.Warnings{fmt.Sprintf("pods such as %s cannot be created at present: %s", pod.Name, trial.WhyNot(err))}, nil
}

// objectsOf returns the objects of dry runs.
func objectsOf(trials []dryRun) []client.Object {
	all := make([]client.Object, len(trials))
	for i := range trials {
		all[i] = trials[i].Object
	}
	return all
}

// below returns a function that maps the field paths of an object to those below parent.
func below(parent string) func(string) string {
	return func(path string) string { return strings.TrimSuffix(parent+"."+path, ".") }
}

var (
	volumeIn = regexp.MustCompile(`^spec\.template\.spec\.volumes\[([0-9]+)\]`)
	envIn    = regexp.MustCompile(`^(spec\.template\.spec\.)(initContainers|containers)\[([0-9]+)\]\.env\[([0-9]+)\]`)
)

// placeOfChild maps a field path of a StatefulSet to the path in the set. It subtracts the volumes and
// variables that the operator adds before the user's.
func placeOfChild(set *v1alpha1.ExtendedStatefulSet, child *appsv1.StatefulSet, path string) string {
	const parent = "spec.template."
	if path == "metadata.name" {
		return path
	}
	if m := volumeIn.FindStringSubmatch(path); m != nil {
		n, _ := strconv.Atoi(m[1])
		n -= len(set.Spec.Template.Spec.VolumeClaimTemplates)
		return fmt.Sprintf("%sspec.template.spec.volumes[%d]%s", parent, n, path[len(m[0]):])
	}
	if m := envIn.FindStringSubmatch(path); m != nil {
		c, _ := strconv.Atoi(m[3])
		e, _ := strconv.Atoi(m[4])
		made, from := &child.Spec.Template.Spec, &set.Spec.Template.Spec.Template.Spec
		in, out := made.Containers, from.Containers
		if m[2] == "initContainers" {
			in, out = made.InitContainers, from.InitContainers
		}
		if c < len(in) && c < len(out) && e < len(in[c].Env) {
			name := in[c].Env[e].Name
			e = slices.IndexFunc(out[c].Env, func(v corev1.EnvVar) bool { return v.Name == name })
		}
		return fmt.Sprintf("%s%s%s[%d].env[%d]%s", parent, m[1], m[2], c, e, path[len(m[0]):])
	}
	return strings.TrimSuffix(parent+path, ".")
}

// try creates the objects as a dry run. Invalid (422) rejects the set. Forbidden may be a temporary
// quota or policy, and other errors are unrelated to the set; both become warnings. taken checks an
// object whose name is already in use.
func (v *Validator) try(ctx context.Context, set *v1alpha1.ExtendedStatefulSet, trials []dryRun,
	taken func(context.Context, *v1alpha1.ExtendedStatefulSet, client.Object) field.ErrorList) (admission.Warnings, field.ErrorList) {
	ctx, cancel := context.WithTimeout(ctx, spec.TrialTime)
	defer cancel()
	var warned admission.Warnings
	for _, t := range trials {
		leftOut, err := v.Court.Try(ctx, t.Object, t.at)
		warned = append(warned, leftOut...)
		switch {
		case err == nil:
		case apierrors.IsAlreadyExists(err):
			if errs := taken(ctx, set, t.Object); len(errs) > 0 {
				return warned, errs
			}
		case apierrors.IsInvalid(err):
			return warned, rejection.Explain(err, t.at)
		default:
			warned = append(warned, fmt.Sprintf(
				"dry run of %s %s failed, so it cannot be created at present: %s",
				kindOf(t.Object), t.Object.GetName(), trial.WhyNot(err),
			))
		}
	}
	doubts, errs := v.tryPod(ctx, set)
	return append(warned, doubts...), errs
}

// ours accepts an existing object as created by the operator.
func ours(context.Context, *v1alpha1.ExtendedStatefulSet, client.Object) field.ErrorList {
	return nil
}

// foreign rejects the name of a new set if an object with a required name belongs to another owner. It
// accepts an object of a deleted set of the same name, because that object is about to be deleted.
// claimsInUse checks claims.
func (v *Validator) foreign(ctx context.Context, set *v1alpha1.ExtendedStatefulSet, object client.Object) field.ErrorList {
	if _, ok := object.(*corev1.PersistentVolumeClaim); ok {
		return nil
	}
	found := object.DeepCopyObject().(client.Object)
	if err := v.Live.Get(ctx, client.ObjectKeyFromObject(object), found); err != nil {
		return nil // deleted in the meantime; otherwise the operator reports it in a condition
	}
	return elsewhere(set, found)
}

// elsewhere rejects the name of a new set if an existing object does not belong to a set of that name.
func elsewhere(set *v1alpha1.ExtendedStatefulSet, found client.Object) field.ErrorList {
	if owner := metav1.GetControllerOf(found); owner != nil && owner.Kind == v1alpha1.Kind && owner.Name == set.Name &&
		strings.HasPrefix(owner.APIVersion, v1alpha1.GroupVersion.Group+"/") {
		return nil
	}
	return field.ErrorList{field.Invalid(field.NewPath("metadata", "name"), set.Name, fmt.Sprintf(
		"%s %s exists and belongs to another owner; choose another name, or delete it", kindOf(found), found.GetName()))}
}

// kindOf returns the kind of an object of a dry run, for messages.
func kindOf(object client.Object) string {
	switch object.(type) {
	case *appsv1.StatefulSet:
		return "StatefulSet"
	case *corev1.PersistentVolumeClaim:
		return "PersistentVolumeClaim"
	}
	return "Job"
}
