package statefulsingleton

import (
	"context"
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
)

// crdName is of the definition that the guard takes its parameters from, and goes with: a
// policy whose parameters have no kind denies every pod.
const crdName = "statefulsingletons.apps.openshift.statefulsingleton.com"

// GuardKeeper keeps the policy that makes the API server itself refuse pods without
// the gate.
type GuardKeeper struct {
	policy.Keeper
	// Namespace is the operator's own.
	Namespace string
	// Watched are the namespaces that the operator acts in; none means all.
	Watched []string
}

// guardSubject is what the log calls the policy.
const guardSubject = "The guard of StatefulSingletons"

// Start keeps the policy until the context ends.
func (g *GuardKeeper) Start(ctx context.Context) error {
	policy.Look(ctx, guardSubject, guardInterval, guardRetry, func() string {
		made, binding := buildGuard(g.Namespace, g.Watched)
		if err := g.Keep(ctx, []string{crdName}, made, binding); err != nil {
			return "the policy cannot be installed: " + err.Error()
		}
		return ""
	})
	return nil
}

// Guard knows whether the API server has the policy. Who keeps it there may be another
// process: nothing is written here.
type Guard struct {
	Live client.Reader
	Options

	problem atomic.Pointer[engine.Notice]
	// turned is told when something is wrong, something else, or nothing any more.
	turned chan event.GenericEvent
}

// Start looks at the policy until the context ends.
func (g *Guard) Start(ctx context.Context) error {
	policy.Look(ctx, guardSubject, guardInterval, guardRetry, func() string {
		problem := g.look(ctx)
		g.note(problem)
		return problem.Message
	})
	return nil
}

// note keeps what is wrong, and has all objects looked at when that has changed: no event
// of theirs tells. One event that waits to be read is enough.
func (g *Guard) note(problem engine.Notice) {
	before := g.missing()
	g.problem.Store(&problem)
	if before == problem {
		return
	}
	select {
	case g.turned <- event.GenericEvent{Object: &v1.StatefulSingleton{}}:
	default:
	}
}

// missingIn says why there is no guard in a namespace; empty if there is one.
func (g *Guard) missingIn(namespace string) engine.Notice {
	if slices.Contains(policy.LeftAlone(g.Namespace), namespace) {
		return engine.Notice{Reason: v1.ReasonPolicyNotInstalled, Message: notGuarded(namespace)}
	}
	return g.missing()
}

// missing says why there is no guard; empty if there is one, or if the operator has not
// looked yet.
func (g *Guard) missing() engine.Notice {
	if problem := g.problem.Load(); problem != nil {
		return *problem
	}
	return engine.Notice{}
}

// look says what is wrong with the policy in the API server.
func (g *Guard) look(ctx context.Context) engine.Notice {
	want, wantBinding := buildGuard(g.Namespace, g.Watched)
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
		return engine.Notice{Reason: v1.ReasonNoPolicyAPI, Message: "the API server has no ValidatingAdmissionPolicy, which needs Kubernetes 1.30"}
	case apierrors.IsNotFound(err):
		return not("the API server has no policy %s; the operator's installer makes it within seconds, and its log says what keeps it from that: "+
			"kubectl logs -n %s -l %s", want.Name, g.Namespace, installerLabel)
	case err != nil:
		return not("the operator cannot look at its policy: %v", err)
	}
	want.Spec.FailurePolicy = have.Spec.FailurePolicy // Ignore in its first minute
	if !apiequality.Semantic.DeepEqual(have.Spec, want.Spec) || !apiequality.Semantic.DeepEqual(haveBinding.Spec, wantBinding.Spec) {
		return not("policy %s of the API server is not as this operator needs it; the operator's installer puts it right within seconds, and its log says what keeps it from that: "+
			"kubectl logs -n %s -l %s", want.Name, g.Namespace, installerLabel)
	}
	return engine.Notice{}
}

// installerLabel is on the pods that keep the policy.
const installerLabel = "control-plane=installer"
