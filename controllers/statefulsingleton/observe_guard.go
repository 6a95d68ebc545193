package statefulsingleton

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	policyv1 "k8s.io/api/admissionregistration/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
)

// Guard keeps the policy that makes the API server itself refuse pods without
// the gate.
type Guard struct {
	Live   client.Reader
	Runner *action.Runner
	Options

	problem atomic.Pointer[string]
}

// guardInterval is how often the policy is looked at.
const guardInterval = 15 * time.Second

// guardTrial is for how long a new policy lets pass what the API server cannot
// evaluate. It may not know the kind of the parameters yet, which is as new as
// the policy, and would deny every pod.
const guardTrial = time.Minute

// Start applies the policy until the context ends.
func (g *Guard) Start(ctx context.Context) error {
	for {
		problem := g.apply(ctx)
		if was := g.missing(); problem != was && ctx.Err() == nil {
			ctrl.LoggerFrom(ctx).Info("the guard policy", "problem", problem)
		}
		g.problem.Store(&problem)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(guardInterval):
		}
	}
}

// missingIn says why there is no guard in a namespace; "" if there is one.
func (g *Guard) missingIn(namespace string) string {
	if slices.Contains(unguarded(g.Namespace), namespace) {
		return notGuarded(namespace)
	}
	return g.missing()
}

// missing says why there is no guard; "" if there is one, or nobody has looked.
func (g *Guard) missing() string {
	if problem := g.problem.Load(); problem != nil {
		return *problem
	}
	return ""
}

func (g *Guard) apply(ctx context.Context) string {
	owner, err := g.owner(ctx)
	if err != nil {
		return "the operator cannot install its policy: " + err.Error()
	}
	policy, binding := buildGuard(g.Namespace, g.Watched, owner)
	var havePolicy policyv1.ValidatingAdmissionPolicy
	var haveBinding policyv1.ValidatingAdmissionPolicyBinding
	err = g.keep(ctx, policy, &havePolicy, func() bool {
		if havePolicy.UID == "" || time.Since(havePolicy.CreationTimestamp.Time) < guardTrial {
			policy.Spec.FailurePolicy = ptr.To(policyv1.Ignore)
		}
		return apiequality.Semantic.DeepEqual(havePolicy.Spec, policy.Spec)
	})
	if err == nil {
		err = g.keep(ctx, binding, &haveBinding, func() bool { return apiequality.Semantic.DeepEqual(haveBinding.Spec, binding.Spec) })
	}
	switch {
	case meta.IsNoMatchError(err):
		return noPolicyAPI
	case err != nil:
		return "the operator cannot install its policy: " + err.Error()
	}
	return ""
}

// keep creates an object, or makes it what it should be.
func (g *Guard) keep(ctx context.Context, want, have client.Object, same func() bool) error {
	key := client.ObjectKeyFromObject(want)
	write := action.Action{Verb: action.Create, Object: want, Reason: "Guard"}
	switch err := g.Live.Get(ctx, key, have); {
	case client.IgnoreNotFound(err) == nil && same() && err == nil && len(owned(have, want.GetOwnerReferences())) == len(have.GetOwnerReferences()):
		return nil
	case err == nil:
		want.SetOwnerReferences(owned(have, want.GetOwnerReferences()))
		want.SetUID(have.GetUID())
		want.SetResourceVersion(have.GetResourceVersion())
		write = action.Action{Verb: action.Patch, Object: want, From: have, Unchanged: true, Reason: "Guard"}
	case !apierrors.IsNotFound(err):
		return err
	}
	for _, o := range g.Runner.Run(ctx, key, action.Steps{{{write}}}) {
		if o.Err != nil {
			return o.Err
		}
	}
	return nil
}

// crdName is of the definition that the guard takes its parameters from.
const crdName = "statefulsingletons.apps.openshift.statefulsingleton.com"

// owner is the definition of StatefulSingletons, with which the garbage collector
// takes the guard away: a policy whose parameters have no kind denies every pod.
func (g *Guard) owner(ctx context.Context) (metav1.OwnerReference, error) {
	crd := metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition"}}
	if err := g.Live.Get(ctx, types.NamespacedName{Name: crdName}, &crd); err != nil {
		return metav1.OwnerReference{}, err
	}
	if crd.DeletionTimestamp != nil {
		return metav1.OwnerReference{}, fmt.Errorf("%s is being deleted", crdName)
	}
	return metav1.OwnerReference{APIVersion: crd.APIVersion, Kind: crd.Kind, Name: crd.Name, UID: crd.UID}, nil
}
