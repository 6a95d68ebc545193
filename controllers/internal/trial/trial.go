// Package trial asks the API server, by dry run, whether it would take what the
// operator is going to make.
//
// The operator may make more than those who ask it to. A trial tells what is there
// and what is forbidden in a namespace, so it is made only for who may create pods
// there himself, of one namespace few at a time, and its answer is given in words of
// our own. What an API server says of the fields of an object is said of the object
// that was sent, and passed on (package rejection).
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

// The max of concurrent trials. Further ones are skipped, and do not wait: a request that waits delays
// others of the same webhook.
const (
	maxOfNamespace = 4
	maxInAll       = 12
)

// Court holds trials.
type Court struct {
	// client asks what people may do.
	client client.Client
	// dryRun creates objects with the API server's dry run.
	dryRun client.Client

	mu      sync.Mutex
	running map[string]int // by namespace
	inAll   int
}

// NewCourt makes a Court that asks by that client.
func NewCourt(c client.Client) *Court {
	return &Court{client: c, dryRun: client.NewDryRunClient(c), running: map[string]int{}}
}

// Open begins a trial in a namespace, for who sent the admission request of ctx. It
// says why none can be; if it can, end has to be called.
func (c *Court) Open(ctx context.Context, namespace string) (end func(), why string) {
	request, err := admission.RequestFromContext(ctx)
	if err != nil || namespace == "" || request.Namespace != namespace {
		return nil, "nobody knows who asks"
	}
	if !c.enter(namespace) {
		return nil, "too many objects are tried out at one time"
	}
	if !c.mayCreatePods(ctx, &request.UserInfo, namespace) {
		c.leave(namespace)
		return nil, "only who may create pods in this namespace is told whether they would be taken"
	}
	return func() { c.leave(namespace) }, ""
}

// mayCreatePods reports whether a person may create pods in a namespace. It is false
// where nobody says so.
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

// Try asks whether the API server would take an object, and warns of what it would leave
// out. at says where a field of the object comes from.
func (c *Court) Try(ctx context.Context, object client.Object, at func(path string) string) (admission.Warnings, error) {
	sent := specOf(object)
	if err := c.dryRun.Create(ctx, object); err != nil {
		return nil, err
	}
	return leftOut(sent, specOf(object), at), nil
}

// enter takes a place, and reports whether there is one.
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

func (c *Court) leave(namespace string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.inAll--
	if c.running[namespace]--; c.running[namespace] == 0 {
		delete(c.running, namespace)
	}
}

// WhyNot says what kept an object from being taken that is not invalid, and what
// helps. It has no word of the API server's: these may tell what else is there.
func WhyNot(err error) string {
	switch {
	case rejection.IsFullQuota(err):
		return "a quota of the namespace has no room; make room"
	case apierrors.IsForbidden(err) && strings.Contains(err.Error(), "violates PodSecurity"):
		return "the Pod Security level of the namespace forbids it; change the template so that it meets the level"
	case apierrors.IsForbidden(err):
		return "a policy forbids it, or something that it names is missing, such as a service account, a priority class or a runtime class; " +
			"once the object is there, its conditions say which"
	}
	return "the API server gives no answer to that now; once the object is there, its conditions say whether that lasts"
}
