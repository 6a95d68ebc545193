// Package trial checks by dry run whether the API server would accept the objects that the operator is
// going to create.
//
// The operator may have more permissions than the requester. A dry run reveals existing objects and
// restrictions of a namespace. So it is made only for requesters that can create pods there themselves.
// The number of concurrent dry runs per namespace is limited. The result is reported in our own words.
// Only the API server's errors about fields of the object are mapped to the requester's object and
// passed on (package rejection).
package trial

import (
	"context"
	"strings"
	"sync"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/stateful-operator/stateful-operator/controllers/internal/rejection"
)

// The max number of concurrent dry runs. Further ones are skipped and do not wait, because a waiting
// request would delay other requests of the same webhook.
const (
	maxOfNamespace = 4
	maxInAll       = 12
)

// Court runs dry runs.
type Court struct {
	// client checks the permissions of requesters.
	client client.Client
	// dryRun creates objects by dry run.
	dryRun client.Client

	mu      sync.Mutex
	running map[string]int // by namespace
	inAll   int
}

// NewCourt returns a Court that uses the given client.
func NewCourt(c client.Client) *Court {
	return &Court{client: c, dryRun: client.NewDryRunClient(c), running: map[string]int{}}
}

// Open starts a dry run in a namespace, for the requester of the admission request in ctx. If it is not
// possible, Open returns the reason. Otherwise end must be called.
func (c *Court) Open(ctx context.Context, namespace string) (end func(), why string) {
	request, err := admission.RequestFromContext(ctx)
	if err != nil || namespace == "" || request.Namespace != namespace {
		return nil, "the requester is unknown"
	}
	if !c.enter(namespace) {
		return nil, "too many concurrent dry runs"
	}
	if !c.mayCreatePods(ctx, &request.UserInfo, namespace) {
		c.leave(namespace)
		return nil, "only a user who can create pods in this namespace sees whether they would be accepted"
	}
	return func() { c.leave(namespace) }, ""
}

// mayCreatePods reports whether a user may create pods in a namespace. It returns false if the check
// fails.
func (c *Court) mayCreatePods(ctx context.Context, user *authenticationv1.UserInfo, namespace string) bool {
	extra := make(map[string]authorizationv1.ExtraValue, len(user.Extra))
	for k, v := range user.Extra {
		extra[k] = authorizationv1.ExtraValue(v)
	}
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: user.Username, Groups: user.Groups, UID: user.UID, Extra: extra,
		ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: namespace, Verb: "create", Version: "v1", Resource: "pods"}}}
	return c.client.Create(ctx, review) == nil && review.Status.Allowed
}

// Try checks whether the API server would accept an object. It returns warnings about fields that would
// be dropped. The function at maps the path of a field to its origin.
func (c *Court) Try(ctx context.Context, object client.Object, at func(path string) string) (admission.Warnings, error) {
	sent := specOf(object)
	if err := c.dryRun.Create(ctx, object); err != nil {
		return nil, err
	}
	return leftOut(sent, specOf(object), at), nil
}

// enter takes a slot, and reports whether one was free.
func (c *Court) enter(namespace string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.running[namespace] >= maxOfNamespace || c.inAll >= maxInAll {
		return false
	}
	c.running[namespace]++
	c.inAll++
	return true
}

// leave releases a slot.
func (c *Court) leave(namespace string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.inAll--
	if c.running[namespace]--; c.running[namespace] == 0 {
		delete(c.running, namespace)
	}
}

// WhyNot describes why an object was rejected that is not invalid, and how to resolve it. It contains
// no text of the API server, which could reveal other objects.
func WhyNot(err error) string {
	switch {
	case rejection.IsFullQuota(err):
		return "a quota of the namespace is exceeded; raise it or free some of it"
	case apierrors.IsForbidden(err) && strings.Contains(err.Error(), "violates PodSecurity"):
		return "the Pod Security level of the namespace forbids it; change the template to meet the level"
	case apierrors.IsForbidden(err):
		return "a policy forbids it, or a referenced object such as a service account, a priority class or a runtime class is missing; " +
			"see the conditions of the object once it is created"
	}
	return "the API server cannot answer that now; if the problem persists, the conditions of the object report it once it is created"
}
