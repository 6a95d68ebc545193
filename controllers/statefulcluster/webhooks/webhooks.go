package webhooks

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
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/children"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/spec"
)

// +kubebuilder:webhook:path=/validate-enge-me-v1alpha1-statefulcluster,mutating=false,failurePolicy=ignore,sideEffects=None,groups=enge.me,resources=statefulclusters,verbs=create;update,versions=v1alpha1,name=statefulclusters.enge.me,admissionReviewVersions=v1,timeoutSeconds=5
// +kubebuilder:rbac:groups=enge.me,resources=statefulclusters,verbs=list;watch,roleName=webhook-role
// +kubebuilder:rbac:groups="",resources=pods;persistentvolumeclaims,verbs=create,roleName=webhook-role

// Validator is the validating webhook of StatefulClusters. It fails open (failurePolicy Ignore):
// objects that must never be admitted are also rejected by the schema, and other invalid objects
// get a condition.
type Validator struct {
	Cache client.Reader
	// Court runs dry-run creates of pods and claims, if the requester may create such objects.
	Court *trial.Court
}

var _ admission.Validator[*v1alpha1.StatefulCluster] = &Validator{}

// SetupWebhook registers the webhook of StatefulClusters.
func SetupWebhook(mgr ctrl.Manager) error {
	return ctrl.NewWebhookManagedBy(mgr, &v1alpha1.StatefulCluster{}).
		WithValidator(&Validator{Cache: mgr.GetCache(), Court: trial.NewCourt(mgr.GetClient())}).
		Complete()
}

// ValidateCreate validates a new set.
func (v *Validator) ValidateCreate(ctx context.Context, set *v1alpha1.StatefulCluster) (admission.Warnings, error) {
	set = spec.WithDefaults(set)
	return v.respond(ctx, set, spec.Validate(set), v.selectorInUse, v.tryTemplates)
}

// ValidateUpdate validates a changed set. The dry runs are made only if pods or claims would change.
func (v *Validator) ValidateUpdate(ctx context.Context, old, set *v1alpha1.StatefulCluster) (admission.Warnings, error) {
	old.Spec.DeletionProtection = set.Spec.DeletionProtection // the field can be changed even if the rest of the spec is invalid
	if set.DeletionTimestamp != nil || apiequality.Semantic.DeepEqual(old.Spec, set.Spec) {
		return nil, nil // changes of finalizers and labels must be admitted even if the spec is invalid
	}
	old, set = spec.WithDefaults(old), spec.WithDefaults(set)
	errs := append(spec.Validate(set), spec.ValidateChange(old, set)...)
	if apiequality.Semantic.DeepEqual(children.DataOfSpec(&old.Spec), children.DataOfSpec(&set.Spec)) {
		return v.respond(ctx, set, errs)
	}
	return v.respond(ctx, set, errs, v.tryTemplates)
}

// ValidateDelete admits all deletions.
func (v *Validator) ValidateDelete(context.Context, *v1alpha1.StatefulCluster) (admission.Warnings, error) {
	return nil, nil
}

// check validates a set against other objects in its namespace and the API server.
type check func(context.Context, *v1alpha1.StatefulCluster) (admission.Warnings, field.ErrorList)

// respond returns the response for a set. If errs is empty, it also runs the checks that need reads
// or dry runs.
func (v *Validator) respond(ctx context.Context, set *v1alpha1.StatefulCluster, errs field.ErrorList, checks ...check) (admission.Warnings, error) {
	var warnings admission.Warnings
	if len(errs) == 0 && len(checks) > 0 {
		warnings, errs = v.runChecks(ctx, set, checks)
		warnings = append(warnings, spec.Advise(set)...)
	}
	if len(errs) > 0 {
		return warnings, apierrors.NewInvalid(v1alpha1.GroupVersion.WithKind("StatefulCluster").GroupKind(), set.Name, errs)
	}
	return warnings, nil
}

// runChecks runs the checks in order, until one finds an error. If no dry run is possible, it runs none
// and returns a warning.
func (v *Validator) runChecks(ctx context.Context, set *v1alpha1.StatefulCluster, checks []check) (warnings admission.Warnings, errs field.ErrorList) {
	end, why := v.Court.Open(ctx, set.Namespace)
	if why != "" {
		return admission.Warnings{"spec.template was not validated with a dry-run create: " + why}, nil
	}
	defer end()
	for _, check := range checks {
		warned, found := check(ctx, set)
		if warnings = append(warnings, warned...); len(found) > 0 {
			return warnings, found
		}
	}
	return warnings, nil
}

// selectorInUse rejects a second set with the same selector, because a Service or the scale
// subresource of one would select the pods of both.
func (v *Validator) selectorInUse(ctx context.Context, set *v1alpha1.StatefulCluster) (admission.Warnings, field.ErrorList) {
	var others v1alpha1.StatefulClusterList
	if err := v.Cache.List(ctx, &others, client.InNamespace(set.Namespace)); err != nil {
		return nil, nil // best effort: membership is decided by the owner
	}
	for i := range others.Items {
		if o := &others.Items[i]; o.Name != set.Name && apiequality.Semantic.DeepEqual(o.Spec.Selector, set.Spec.Selector) {
			return nil, field.ErrorList{field.Invalid(field.NewPath("spec", "selector"), metav1.FormatLabelSelector(set.Spec.Selector), fmt.Sprintf(
				"StatefulCluster %q in this namespace has the same selector; give each its own label, for example app: %s", o.Name, set.Name))}
		}
	}
	return nil, nil
}

// tryTemplates asks the API server, with dry-run creates, whether it would accept a pod and the
// claims of this set. An Invalid error (422) rejects the set. A Forbidden error may come from a
// quota or policy that changes, and any other error is not about the template: both give warnings.
// Messages about fields name the fields of the set that the user wrote; all other messages are the
// operator's own.
func (v *Validator) tryTemplates(ctx context.Context, set *v1alpha1.StatefulCluster) (admission.Warnings, field.ErrorList) {
	if set.UID == "" {
		set.UID = types.UID("00000000-0000-0000-0000-000000000000")
	}
	s := spec.Settings{Set: set}
	id := identity.Fresh(1, func(string) bool { return false })[0]
	pod := children.BuildPod(s, children.BuildRevision(s, nil), id)
	pod.OwnerReferences = nil // the owner may not exist yet
	trials := []tried{{pod, field.NewPath("spec", "template")}}
	for i := range set.Spec.VolumeClaimTemplates {
		c := children.BuildClaim(s, &set.Spec.VolumeClaimTemplates[i], id)
		c.OwnerReferences = nil
		trials = append(trials, tried{c, field.NewPath("spec", "volumeClaimTemplates").Index(i)})
	}
	var warnings admission.Warnings
	for _, t := range trials {
		leftOut, err := v.Court.Try(ctx, t.object, t.at)
		warnings = append(warnings, leftOut...)
		switch {
		case err == nil:
		case apierrors.IsInvalid(err):
			return nil, rejection.Explain(err, t.at)
		default:
			warnings = append(warnings, fmt.Sprintf("dry-run create of %s failed; members cannot be created until this is resolved: %s", t.path, trial.WhyNot(err)))
		}
	}
	return warnings, nil
}

// tried is an object for a dry-run create, and its path in the set.
type tried struct {
	object client.Object
	path   *field.Path
}

// at returns the path in the set for a field of the object; for "" it returns the path of the whole
// object.
func (t tried) at(name string) string {
	if name == "" {
		return t.path.String()
	}
	return t.path.Child(name).String()
}
