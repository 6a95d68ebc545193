package policy

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/stateful-operator/stateful-operator/controllers/internal/engine"
)

// installerLabel selects the pods that maintain the policies.
const installerLabel = "control-plane=installer"

// Checker checks whether the API server has the policies of a kind. It writes nothing, because another process may
// maintain the policies.
type Checker struct {
	Live client.Reader
	// Subject names the policies in the log.
	Subject string
	// Builders build the policies.
	Builders []Builder
	// Namespace is the operator's own namespace.
	Namespace string
	// Watched are the namespaces that the operator manages; empty means all.
	Watched []string
	// Interval is the time between two checks, and Retry that after a problem.
	Interval, Retry time.Duration
	// NotInstalled and NotSupported are the reasons if the API server does not have a policy, and if it supports none.
	NotInstalled, NotSupported string
	// Excluded returns the message about a namespace to which the policies do not apply.
	Excluded func(namespace string) string
	// Turned receives an event when a problem appears, changes or disappears.
	Turned chan event.GenericEvent
	// IfUsed limits the checks to the time in which an object uses the policies. See Use.
	IfUsed bool

	// problem is the last result of the check; nil before the first one.
	problem atomic.Pointer[engine.Notice]
	mu      sync.Mutex
	users   map[types.NamespacedName]bool
}

// Start checks the policies until the context ends.
func (c *Checker) Start(ctx context.Context) error {
	look(ctx, c.Subject, func() (string, time.Duration) { return c.check(ctx) })
	return nil
}

// check checks the policies if they are used. It returns the problem, and the time until the next check. If they are not
// used, that time is short: First can find a problem meanwhile.
func (c *Checker) check(ctx context.Context) (problem string, next time.Duration) {
	if !c.isUsed() {
		return "", c.Retry
	}
	found := c.look(ctx)
	c.Note(found)
	if found.Message != "" {
		return found.Message, c.Retry
	}
	return "", c.Interval
}

// Use records whether an object uses the policies. An earlier result is dropped with the first object: First then
// checks them again, since nothing has checked them in between. A nil Checker records nothing.
func (c *Checker) Use(object types.NamespacedName, uses bool) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case !uses:
		delete(c.users, object)
	case len(c.users) == 0:
		c.problem.Store(nil)
		c.users = map[types.NamespacedName]bool{object: true}
	default:
		c.users[object] = true
	}
}

// isUsed reports whether the policies must be checked.
func (c *Checker) isUsed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.IfUsed || len(c.users) > 0
}

// First checks the policies now, unless they were checked before.
func (c *Checker) First(ctx context.Context) {
	if c.problem.Load() == nil {
		c.Note(c.look(ctx))
	}
}

// Note stores the problem, and sends an event if it has changed, because no watch event of an object reports it. One
// pending event is enough.
func (c *Checker) Note(problem engine.Notice) {
	before := c.Missing()
	c.problem.Store(&problem)
	if before == problem {
		return
	}
	select {
	case c.Turned <- event.GenericEvent{Object: &metav1.PartialObjectMetadata{}}:
	default:
	}
}

// Missing returns the problem with the policies; empty if there is none, or if they were not checked yet.
func (c *Checker) Missing() engine.Notice {
	if problem := c.problem.Load(); problem != nil {
		return *problem
	}
	return engine.Notice{}
}

// MissingIn returns why the policies do not apply in a namespace; empty if they do.
func (c *Checker) MissingIn(namespace string) engine.Notice {
	if slices.Contains(LeftAlone(c.Namespace), namespace) {
		return engine.Notice{Reason: c.NotInstalled, Message: c.Excluded(namespace)}
	}
	return c.Missing()
}

// look returns the problem with the policies in the API server; empty if there is none.
func (c *Checker) look(ctx context.Context) engine.Notice {
	return engine.First(c.Builders, func(build Builder) engine.Notice { return c.lookAt(ctx, build) })
}

// lookAt returns the problem with one policy; empty if there is none.
func (c *Checker) lookAt(ctx context.Context, build Builder) engine.Notice {
	want, wantBinding := build(c.Namespace, c.Watched)
	var have admissionv1.ValidatingAdmissionPolicy
	var haveBinding admissionv1.ValidatingAdmissionPolicyBinding
	key := types.NamespacedName{Name: want.Name}
	err := c.Live.Get(ctx, key, &have)
	if err == nil {
		err = c.Live.Get(ctx, key, &haveBinding)
	}
	not := func(format string, args ...any) engine.Notice {
		return engine.Notice{Reason: c.NotInstalled, Message: fmt.Sprintf(format, args...)}
	}
	switch {
	case meta.IsNoMatchError(err):
		return engine.Notice{Reason: c.NotSupported, Message: "the API server does not support ValidatingAdmissionPolicy, which requires Kubernetes 1.30"}
	case apierrors.IsNotFound(err):
		return not("the API server does not have policy %s; the operator's installer creates it within seconds, or logs why it cannot: "+
			"kubectl logs -n %s -l %s", want.Name, c.Namespace, installerLabel)
	case err != nil:
		return not("the operator cannot read its policy: %v", err)
	}
	if want.Spec.ParamKind != nil {
		want.Spec.FailurePolicy = have.Spec.FailurePolicy // it is Ignore during the policy's first minute
	}
	if !apiequality.Semantic.DeepEqual(have.Spec, want.Spec) || !apiequality.Semantic.DeepEqual(haveBinding.Spec, wantBinding.Spec) {
		return not("policy %s of the API server differs from the policy that this operator needs; the operator's installer corrects it within seconds, or logs why it cannot: "+
			"kubectl logs -n %s -l %s", want.Name, c.Namespace, installerLabel)
	}
	return engine.Notice{}
}
