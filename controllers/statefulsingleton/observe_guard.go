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
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

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

// Start keeps the policy until the context ends.
func (g *GuardKeeper) Start(ctx context.Context) error {
	everyInterval(ctx, func() string {
		made, binding := buildGuard(g.Namespace, g.Watched)
		if err := g.Keep(ctx, crdName, made, binding); err != nil {
			return "the policy cannot be installed: " + err.Error()
		}
		return ""
	})
	return nil
}

// everyInterval looks until the context ends, and logs when what is wrong changes.
func everyInterval(ctx context.Context, look func() string) {
	said := ""
	for {
		problem := look()
		if problem != said && ctx.Err() == nil {
			ctrl.LoggerFrom(ctx).Info("The guard of StatefulSingletons", "problem", problem)
			said = problem
		}
		next := guardInterval
		if problem != "" {
			next = guardRetry
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(next):
		}
	}
}

// Guard knows whether the API server has the policy. Who keeps it there may be another
// process: nothing is written here.
type Guard struct {
	Live client.Reader
	Options

	problem atomic.Pointer[string]
}

// Start looks at the policy until the context ends.
func (g *Guard) Start(ctx context.Context) error {
	everyInterval(ctx, func() string {
		problem := g.look(ctx)
		g.problem.Store(&problem)
		return problem
	})
	return nil
}

// missingIn says why there is no guard in a namespace; "" if there is one.
func (g *Guard) missingIn(namespace string) string {
	if slices.Contains(unguarded(g.Namespace), namespace) {
		return notGuarded(namespace)
	}
	return g.missing()
}

// missing says why there is no guard; "" if there is one, or no one has looked.
func (g *Guard) missing() string {
	if problem := g.problem.Load(); problem != nil {
		return *problem
	}
	return ""
}

// look says what is wrong with the policy in the API server.
func (g *Guard) look(ctx context.Context) string {
	want, wantBinding := buildGuard(g.Namespace, g.Watched)
	var have policyv1.ValidatingAdmissionPolicy
	var haveBinding policyv1.ValidatingAdmissionPolicyBinding
	key := types.NamespacedName{Name: want.Name}
	err := g.Live.Get(ctx, key, &have)
	if err == nil {
		err = g.Live.Get(ctx, key, &haveBinding)
	}
	switch {
	case meta.IsNoMatchError(err):
		return noPolicyAPI
	case apierrors.IsNotFound(err):
		return fmt.Sprintf("the API server has no policy %s; the operator's installer makes it within seconds, and its log says what keeps it from that: "+
			"kubectl logs -n %s -l %s", want.Name, g.Namespace, installerLabel)
	case err != nil:
		return "the operator cannot look at its policy: " + err.Error()
	}
	want.Spec.FailurePolicy = have.Spec.FailurePolicy // Ignore in its first minute
	if !apiequality.Semantic.DeepEqual(have.Spec, want.Spec) || !apiequality.Semantic.DeepEqual(haveBinding.Spec, wantBinding.Spec) {
		return fmt.Sprintf("policy %s of the API server is not as this operator needs it; the operator's installer puts it right within seconds, and its log says what keeps it from that: "+
			"kubectl logs -n %s -l %s", want.Name, g.Namespace, installerLabel)
	}
	return ""
}

// installerLabel is on the pods that keep the policy.
const installerLabel = "control-plane=installer"
