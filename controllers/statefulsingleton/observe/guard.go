package observe

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	policyv1 "k8s.io/api/admissionregistration/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/engine"
	"github.com/stateful-operator/stateful-operator/controllers/internal/policy"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/children"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/spec"
)

// crdName is the CustomResourceDefinition that the guard takes its parameters from. It owns
// the guard, because a policy without the kind of its parameters denies every pod.
const crdName = "statefulsingletons.apps.openshift.statefulsingleton.com"

// GuardKeeper maintains the policy by which the API server rejects pods without the gate, and the one
// on the Leases.
type GuardKeeper struct {
	policy.Keeper
	// Namespace is the operator's own namespace.
	Namespace string
	// Watched are the namespaces that the operator manages; empty means all.
	Watched []string
}

// guardSubject names the policy in the log.
const guardSubject = "The guard of StatefulSingletons"

// Start maintains the policies until the context ends.
func (g *GuardKeeper) Start(ctx context.Context) error {
	policy.Look(ctx, guardSubject, spec.GuardInterval, spec.GuardRetry, func() string {
		if err := errors.Join(g.keep(ctx, children.BuildGuard), g.keep(ctx, children.BuildLeaseGuard)); err != nil {
			return "cannot install the policies: " + err.Error()
		}
		return ""
	})
	return nil
}

// builder builds a policy with its binding.
type builder func(namespace string, watched []string) (*policyv1.ValidatingAdmissionPolicy, *policyv1.ValidatingAdmissionPolicyBinding)

// keep maintains one policy.
func (g *GuardKeeper) keep(ctx context.Context, build builder) error {
	made, binding := build(g.Namespace, g.Watched)
	if err := g.Keep(ctx, []string{crdName}, made, binding); err != nil {
		return fmt.Errorf("%s: %w", made.Name, err)
	}
	return nil
}

// Guard checks whether the API server has the policy. It writes nothing, because another
// process may maintain the policy.
type Guard struct {
	Live client.Reader
	// Namespace is the operator's own namespace.
	Namespace string
	// Watched are the namespaces that the operator manages; empty means all.
	Watched []string

	// problem is the last result of the check; nil before the first one.
	problem atomic.Pointer[engine.Notice]
	// Turned receives an event when a problem appears, changes or disappears.
	Turned chan event.GenericEvent
}

// Start checks the policy until the context ends.
func (g *Guard) Start(ctx context.Context) error {
	policy.Look(ctx, guardSubject, spec.GuardInterval, spec.GuardRetry, func() string {
		problem := g.look(ctx)
		g.Note(problem)
		return problem.Message
	})
	return nil
}

// Note stores the problem, and requeues all objects if it has changed, because no watch
// event of theirs reports it. One pending event is enough.
func (g *Guard) Note(problem engine.Notice) {
	before := g.Missing()
	g.problem.Store(&problem)
	if before == problem {
		return
	}
	select {
	case g.Turned <- event.GenericEvent{Object: &v1.StatefulSingleton{}}:
	default:
	}
}

// missingIn returns why there is no guard in a namespace; empty if there is one.
func (g *Guard) missingIn(namespace string) engine.Notice {
	if slices.Contains(policy.LeftAlone(g.Namespace), namespace) {
		return engine.Notice{Reason: v1.ReasonPolicyNotInstalled, Message: spec.NotGuarded(namespace)}
	}
	return g.Missing()
}

// Missing returns why there is no guard; empty if there is one, or if it was not checked
// yet.
func (g *Guard) Missing() engine.Notice {
	if problem := g.problem.Load(); problem != nil {
		return *problem
	}
	return engine.Notice{}
}

// look returns the problem with the policies in the API server; empty if there is none.
func (g *Guard) look(ctx context.Context) engine.Notice {
	problem := g.lookAt(ctx, children.BuildGuard)
	if problem.Message == "" {
		problem = g.lookAt(ctx, children.BuildLeaseGuard)
	}
	return problem
}

// lookAt returns the problem with one policy; empty if there is none.
func (g *Guard) lookAt(ctx context.Context, build builder) engine.Notice {
	want, wantBinding := build(g.Namespace, g.Watched)
	var have policyv1.ValidatingAdmissionPolicy
	var haveBinding policyv1.ValidatingAdmissionPolicyBinding
	key := types.NamespacedName{Name: want.Name}
	err := g.Live.Get(ctx, key, &have)
	if err == nil {
		err = g.Live.Get(ctx, key, &haveBinding)
	}
	not := func(format string, args ...any) engine.Notice {
		return engine.Notice{Reason: v1.ReasonPolicyNotInstalled, Message: fmt.Sprintf(format, args...)}
	}
	switch {
	case meta.IsNoMatchError(err):
		return engine.Notice{Reason: v1.ReasonNoPolicyAPI, Message: "the API server does not support ValidatingAdmissionPolicy, which requires Kubernetes 1.30"}
	case apierrors.IsNotFound(err):
		return not("the API server does not have policy %s; the operator's installer creates it within seconds, or logs why it cannot: "+
			"kubectl logs -n %s -l %s", want.Name, g.Namespace, installerLabel)
	case err != nil:
		return not("the operator cannot read its policy: %v", err)
	}
	want.Spec.FailurePolicy = have.Spec.FailurePolicy // it is Ignore during the policy's first minute
	if !apiequality.Semantic.DeepEqual(have.Spec, want.Spec) || !apiequality.Semantic.DeepEqual(haveBinding.Spec, wantBinding.Spec) {
		return not("policy %s of the API server differs from the policy that this operator needs; the operator's installer corrects it within seconds, or logs why it cannot: "+
			"kubectl logs -n %s -l %s", want.Name, g.Namespace, installerLabel)
	}
	return engine.Notice{}
}

// installerLabel selects the pods that maintain the policy.
const installerLabel = "control-plane=installer"
