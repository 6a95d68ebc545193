// Package policy creates ValidatingAdmissionPolicies and keeps them up to date. The API server enforces
// them even if the operator is not running. The package also manages webhook configurations that cannot
// be in a manifest.
package policy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/owned"
)

// Keeper creates and updates policies. Only the leader writes.
type Keeper struct {
	Live   client.Reader
	Runner *action.Runner
}

// trialPeriod is how long a new policy with parameters allows requests that the API server cannot
// evaluate. The API server may not know the kind of the parameters yet, because it is as new as the
// policy. It would then deny all requests.
const trialPeriod = time.Minute

// Keep creates or updates a policy and its binding. Their owners are the CRDs with the given names,
// such as statefulclusters.enge.me, so they are deleted with the last of these CRDs. Missing CRDs are
// ignored.
func (k Keeper) Keep(ctx context.Context, crds []string, policy *admissionv1.ValidatingAdmissionPolicy, binding *admissionv1.ValidatingAdmissionPolicyBinding) error {
	owners, err := k.owners(ctx, crds)
	if err != nil {
		return err
	}
	policy.OwnerReferences, binding.OwnerReferences = owners, slices.Clone(owners)
	var havePolicy admissionv1.ValidatingAdmissionPolicy
	err = k.keep(ctx, action.Action{Verb: action.Create, Object: policy, Reason: "Policy"}, &havePolicy, func() bool {
		if policy.Spec.ParamKind != nil && (havePolicy.UID == "" || time.Since(havePolicy.CreationTimestamp.Time) < trialPeriod) {
			policy.Spec.FailurePolicy = ptr.To(admissionv1.Ignore)
		}
		return apiequality.Semantic.DeepEqual(havePolicy.Spec, policy.Spec)
	})
	if err != nil {
		return err
	}
	var haveBinding admissionv1.ValidatingAdmissionPolicyBinding
	return k.keep(ctx, action.Action{Verb: action.Create, Object: binding, Reason: "Policy"}, &haveBinding, func() bool { return apiequality.Semantic.DeepEqual(haveBinding.Spec, binding.Spec) })
}

// KeepWebhooks creates or updates a webhook configuration. The CRD with the given name owns it, so both
// are deleted together. The permission to create the configuration can be restricted to its name.
func (k Keeper) KeepWebhooks(ctx context.Context, crd string, want *admissionv1.ValidatingWebhookConfiguration) error {
	owner, err := k.owner(ctx, crd)
	if err != nil {
		return err
	}
	want.OwnerReferences = []metav1.OwnerReference{owner}
	var have admissionv1.ValidatingWebhookConfiguration
	create := action.Action{Verb: action.Create, Named: true, Object: want, Reason: "Webhook"}
	return k.keep(ctx, create, &have, func() bool {
		want.Webhooks = owned.Webhooks(have.Webhooks, want.Webhooks)
		return apiequality.Semantic.DeepEqual(have.Webhooks, want.Webhooks)
	})
}

// LeftAlone returns the namespaces that policies and webhooks exclude: kube-system and the operator's
// own, which own names. A policy that blocks pods there could block its own recovery. For example, an
// API server that does not know the kind of a policy's parameters denies every pod that the policy
// matches. Its discovery is up to 30 s old.
func LeftAlone(own string) []string { return []string{metav1.NamespaceSystem, own} }

// Namespaces returns a selector of the watched namespaces, or of all namespaces if watched is empty. It
// always excludes the namespaces of LeftAlone.
func Namespaces(own string, watched []string) *metav1.LabelSelector {
	selector := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{
		Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpNotIn, Values: LeftAlone(own)}}}
	if len(watched) > 0 {
		selector.MatchExpressions = append(selector.MatchExpressions, metav1.LabelSelectorRequirement{
			Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpIn, Values: slices.Sorted(slices.Values(watched))})
	}
	return selector
}

// Deny returns a binding that denies the requests that the policy rejects.
func Deny(policy *admissionv1.ValidatingAdmissionPolicy) *admissionv1.ValidatingAdmissionPolicyBinding {
	return &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: *policy.ObjectMeta.DeepCopy(), Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
		PolicyName:        policy.Name,
		ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
	}}
}

// Limit limits a binding to the watched namespaces, if there are any.
func Limit(binding *admissionv1.ValidatingAdmissionPolicyBinding, own string, watched []string) {
	if len(watched) > 0 {
		binding.Spec.MatchResources = &admissionv1.MatchResources{
			NamespaceSelector: Namespaces(own, watched),
			ObjectSelector:    &metav1.LabelSelector{}, MatchPolicy: ptr.To(admissionv1.Equivalent),
		}
	}
}

// owners returns owner references to the existing CRDs. It returns an error if none exists.
func (k Keeper) owners(ctx context.Context, names []string) (all []metav1.OwnerReference, err error) {
	var missing error
	for _, name := range names {
		owner, err := k.owner(ctx, name)
		switch {
		case err == nil:
			all = append(all, owner)
		case apierrors.IsNotFound(err), errors.Is(err, errGoes):
			missing = err
		default:
			return nil, err
		}
	}
	if len(all) == 0 {
		return nil, missing
	}
	return all, nil
}

// errGoes is the error for a CRD that is being deleted.
var errGoes = errors.New("it is being deleted")

// owner returns an owner reference to a CRD. The garbage collector deletes the policy with it.
func (k Keeper) owner(ctx context.Context, name string) (metav1.OwnerReference, error) {
	crd := metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition"}}
	if err := k.Live.Get(ctx, types.NamespacedName{Name: name}, &crd); err != nil {
		return metav1.OwnerReference{}, err
	}
	if crd.DeletionTimestamp != nil {
		return metav1.OwnerReference{}, fmt.Errorf("%s: %w", name, errGoes)
	}
	return metav1.OwnerReference{APIVersion: crd.APIVersion, Kind: crd.Kind, Name: crd.Name, UID: crd.UID}, nil
}

// keep creates an object, or updates it if it differs. It reads the existing object into have, and then
// calls same, which reports whether have is as wanted. same may change the wanted object.
func (k Keeper) keep(ctx context.Context, create action.Action, have client.Object, same func() bool) error {
	write, want := create, create.Object
	key := client.ObjectKeyFromObject(want)
	err := k.Live.Get(ctx, key, have)
	switch equal := same(); { // called for missing objects too
	case err == nil && equal && len(owners(have, want.GetOwnerReferences())) == len(have.GetOwnerReferences()):
		return nil
	case err == nil:
		want.SetOwnerReferences(owners(have, want.GetOwnerReferences()))
		want.SetLabels(owned.Labels(have.GetLabels(), want.GetLabels()))
		want.SetAnnotations(owned.Labels(have.GetAnnotations(), want.GetAnnotations()))
		want.SetFinalizers(have.GetFinalizers())
		want.SetUID(have.GetUID())
		want.SetResourceVersion(have.GetResourceVersion())
		write = action.Action{Verb: action.Patch, Object: want, From: have, Unchanged: true, Reason: create.Reason}
	case !apierrors.IsNotFound(err):
		return err
	}
	for _, o := range k.Runner.Run(ctx, key, action.Steps{{{write}}}) {
		if o.Err != nil {
			return o.Err
		}
	}
	return nil
}

// owners returns the owner references of an object, with those in more added.
func owners(object metav1.Object, more []metav1.OwnerReference) []metav1.OwnerReference {
	all := slices.Clone(object.GetOwnerReferences())
	for _, o := range more {
		if !slices.ContainsFunc(all, func(has metav1.OwnerReference) bool { return has.UID == o.UID }) {
			all = append(all, o)
		}
	}
	return all
}
