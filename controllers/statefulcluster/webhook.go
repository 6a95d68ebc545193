package statefulcluster

import (
	"context"
	"fmt"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/identity"
	"github.com/stateful-operator/stateful-operator/controllers/internal/rejection"
	"github.com/stateful-operator/stateful-operator/controllers/internal/trial"
)

// +kubebuilder:webhook:path=/validate-enge-me-v1alpha1-statefulcluster,mutating=false,failurePolicy=ignore,sideEffects=None,groups=enge.me,resources=statefulclusters,verbs=create;update,versions=v1alpha1,name=statefulclusters.enge.me,admissionReviewVersions=v1,timeoutSeconds=5
// +kubebuilder:rbac:groups=enge.me,resources=statefulclusters,verbs=list;watch,roleName=webhook-role
// +kubebuilder:rbac:groups="",resources=pods;persistentvolumeclaims,verbs=create,roleName=webhook-role

// validator answers admission. It fails open (failurePolicy Ignore): what must
// never slip past is a rule of the schema, and what does is a condition.
type validator struct {
	cache client.Reader
	// court tries out what the operator would create, for who may create it himself.
	court *trial.Court
}

var _ admission.Validator[*v1alpha1.StatefulCluster] = &validator{}

// SetupWebhook registers the admission of StatefulClusters.
func SetupWebhook(mgr ctrl.Manager) error {
	return ctrl.NewWebhookManagedBy(mgr, &v1alpha1.StatefulCluster{}).
		WithValidator(&validator{cache: mgr.GetCache(), court: trial.NewCourt(mgr.GetClient())}).
		Complete()
}

func (v *validator) ValidateCreate(ctx context.Context, set *v1alpha1.StatefulCluster) (admission.Warnings, error) {
	set = withDefaults(set)
	return v.answer(ctx, set, validate(set), v.selectorInUse, v.tryTemplates)
}

func (v *validator) ValidateUpdate(ctx context.Context, old, set *v1alpha1.StatefulCluster) (admission.Warnings, error) {
	old.Spec.DeletionProtection = set.Spec.DeletionProtection // it can be switched off whatever else the spec holds
	if set.DeletionTimestamp != nil || apiequality.Semantic.DeepEqual(old.Spec, set.Spec) {
		return nil, nil // finalizers and labels must pass whatever the spec says
	}
	old, set = withDefaults(old), withDefaults(set)
	errs := append(validate(set), validateChange(old, set)...)
	if apiequality.Semantic.DeepEqual(recorded(&old.Spec), recorded(&set.Spec)) {
		return v.answer(ctx, set, errs)
	}
	return v.answer(ctx, set, errs, v.tryTemplates)
}

func (v *validator) ValidateDelete(context.Context, *v1alpha1.StatefulCluster) (admission.Warnings, error) {
	return nil, nil
}

// look is a look at a set that tells what else is in its namespace.
type look func(context.Context, *v1alpha1.StatefulCluster) (admission.Warnings, field.ErrorList)

// answer says what is wrong with a set. Where all is right so far, it looks further,
// for who may be told.
func (v *validator) answer(ctx context.Context, set *v1alpha1.StatefulCluster, errs field.ErrorList, further ...look) (admission.Warnings, error) {
	var warnings admission.Warnings
	if len(errs) == 0 && len(further) > 0 {
		warnings, errs = v.lookFurther(ctx, set, further)
		warnings = append(warnings, advise(set)...)
	}
	if len(errs) > 0 {
		return warnings, apierrors.NewInvalid(v1alpha1.GroupVersion.WithKind("StatefulCluster").GroupKind(), set.Name, errs)
	}
	return warnings, nil
}

func (v *validator) lookFurther(ctx context.Context, set *v1alpha1.StatefulCluster, looks []look) (warnings admission.Warnings, errs field.ErrorList) {
	end, why := v.court.Open(ctx, set.Namespace)
	if why != "" {
		return admission.Warnings{"spec.template was not tried out: " + why}, nil
	}
	defer end()
	for _, look := range looks {
		warned, found := look(ctx, set)
		if warnings = append(warnings, warned...); len(found) > 0 {
			return warnings, found
		}
	}
	return warnings, nil
}

// selectorInUse refuses a second set with the same selector: a Service or a
// /scale of one would speak of the pods of both.
func (v *validator) selectorInUse(ctx context.Context, set *v1alpha1.StatefulCluster) (admission.Warnings, field.ErrorList) {
	var others v1alpha1.StatefulClusterList
	if err := v.cache.List(ctx, &others, client.InNamespace(set.Namespace)); err != nil {
		return nil, nil // a full cache is a convenience here; members are known by their owner
	}
	for i := range others.Items {
		if o := &others.Items[i]; o.Name != set.Name && apiequality.Semantic.DeepEqual(o.Spec.Selector, set.Spec.Selector) {
			return nil, field.ErrorList{field.Invalid(field.NewPath("spec", "selector"), metav1.FormatLabelSelector(set.Spec.Selector), fmt.Sprintf(
				"StatefulCluster %q in this namespace has the same selector; give each its own label, for example app: %s", o.Name, set.Name))}
		}
	}
	return nil, nil
}

// tryTemplates asks the API server, by dry run, whether it would take a pod and
// the claims of this set. Invalid (422) refuses. Forbidden may be a quota or a
// policy of the moment, and any other answer says nothing about the template:
// both are warnings. What is said of fields is said of what the user wrote; all else
// is in our own words.
func (v *validator) tryTemplates(ctx context.Context, set *v1alpha1.StatefulCluster) (admission.Warnings, field.ErrorList) {
	if set.UID == "" {
		set.UID = types.UID("00000000-0000-0000-0000-000000000000")
	}
	w := &world{settings: settings{set}}
	id := identity.Fresh(1, func(string) bool { return false })[0]
	pod := buildPod(w, buildRevision(w), id)
	pod.OwnerReferences = nil // the owner may not exist yet
	trials := []tried{{pod, field.NewPath("spec", "template")}}
	for i := range set.Spec.VolumeClaimTemplates {
		c := buildClaim(w, &set.Spec.VolumeClaimTemplates[i], id)
		c.OwnerReferences = nil
		trials = append(trials, tried{c, field.NewPath("spec", "volumeClaimTemplates").Index(i)})
	}
	var warnings admission.Warnings
	for _, t := range trials {
		leftOut, err := v.court.Try(ctx, t.object, t.at)
		warnings = append(warnings, leftOut...)
		switch {
		case err == nil:
		case apierrors.IsInvalid(err):
			return nil, rejection.Explain(err, t.at)
		default:
			warnings = append(warnings, fmt.Sprintf("%s could not be tried out; members cannot be created while this lasts: %s", t.path, trial.WhyNot(err)))
		}
	}
	return warnings, nil
}

// tried is an object that is tried out, and where it is in the set.
type tried struct {
	object client.Object
	path   *field.Path
}

// at is the path of a field of the object in the set; "" is the whole object.
func (t tried) at(name string) string {
	if name == "" {
		return t.path.String()
	}
	return t.path.Child(name).String()
}
