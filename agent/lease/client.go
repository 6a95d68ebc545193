package lease

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
)

// The labels of the operator's Leases. A policy protects Leases with them.
const (
	// LabelSingleton is the label of the Lease of a StatefulSingleton.
	LabelSingleton = "apps.statefulsingleton.com/singleton"
	// LabelMember is the label of the Lease of a member of a ReplicatedStatefulSet.
	LabelMember = "clusterlabs.org/lease"
)

const (
	// successorAnnotation is the annotation of a Lease with the identity of the next holder.
	successorAnnotation = "apps.statefulsingleton.com/next"

	watchSeconds = 300
)

// client reads and writes one Lease. It has the rights to get, watch and patch it, but not to list Leases. A typed
// client would add the types of all APIs of Kubernetes to the program, which more than double its size and memory.
type client struct {
	api       rest.Interface
	http      *http.Client
	namespace string
	name      string
	seconds   int32  // the duration of the Lease
	label     string // of the operator's Leases
	// mustExist is set if a Lease that is missing or lacks the label is an error. Otherwise a Lease without the
	// label has no holder.
	mustExist bool
}

// errNoLease is the error of a request if the operator's Lease does not exist.
var errNoLease = errors.New("the operator's Lease does not exist")

const resource = "leases"

// serverAddress returns the address of the API server.
func serverAddress() (string, error) {
	host, port := os.Getenv("KUBERNETES_SERVICE_HOST"), os.Getenv("KUBERNETES_SERVICE_PORT")
	if host == "" || port == "" {
		return "", errors.New("KUBERNETES_SERVICE_HOST or KUBERNETES_SERVICE_PORT is not set")
	}
	return "https://" + net.JoinHostPort(host, port), nil
}

func newClient(server, namespace string, settings Config) (*client, error) {
	config := &rest.Config{
		Host:            server,
		BearerTokenFile: filepath.Join(settings.Folders.Fencing, tokenFile),
		// With HTTP/1.1, each request that failed closes its connection, and the next one dials again.
		TLSClientConfig: rest.TLSClientConfig{CAFile: filepath.Join(settings.Folders.Fencing, caFile), NextProtos: []string{"http/1.1"}},
		ContentConfig:   rest.ContentConfig{ContentType: "application/json", AcceptContentTypes: "application/json"},
		QPS:             -1, // the agent has its own pauses
		WarningHandler:  rest.NoWarnings{},
		UserAgent:       "stateful-operator-agent",
		// Variables for a proxy are those of the program.
		Proxy: func(*http.Request) (*url.URL, error) { return nil, nil },
	}
	transport, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	scheme := runtime.NewScheme()
	if err := coordinationv1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	config.APIPath, config.GroupVersion = "/apis", &coordinationv1.SchemeGroupVersion
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	api, err := rest.RESTClientForConfigAndClient(config, transport)
	if err != nil {
		return nil, err
	}
	return &client{
		api: api, http: transport, namespace: namespace, name: settings.Name, label: settings.Label,
		seconds: int32(settings.Duration / time.Second),
	}, nil
}

// leaseOf returns the part of an object that the protocol uses. A Lease without the label has no holder: only the
// operator can create one with it.
func (c *client) leaseOf(object *coordinationv1.Lease) Lease {
	l := Lease{Version: object.ResourceVersion, Successor: object.Annotations[successorAnnotation]}
	if object.Labels[c.label] == "" {
		return Lease{Version: object.ResourceVersion}
	}
	if object.Spec.HolderIdentity != nil {
		l.Holder = *object.Spec.HolderIdentity
	}
	if object.Spec.LeaseTransitions != nil {
		l.Epoch = int64(*object.Spec.LeaseTransitions)
	}
	return l
}

// request executes an operation. Writes are bound to the version of the known Lease.
func (c *client) request(ctx context.Context, operation Operation, known Lease) (Lease, error) {
	now := metav1.NewMicroTime(time.Now())
	switch operation {
	case Renew:
		return c.patch(ctx, known, nil, map[string]any{"renewTime": now, "leaseDurationSeconds": c.seconds})
	case HandOver:
		return c.patch(ctx, known, map[string]any{successorAnnotation: nil}, map[string]any{
			"holderIdentity": known.Successor, "leaseTransitions": known.Epoch + 1, "acquireTime": now, "renewTime": now,
		})
	}
	return c.answer(ctx, c.api.Get().Name(c.name))
}

func (c *client) patch(ctx context.Context, known Lease, annotations, spec map[string]any) (Lease, error) {
	metadata := map[string]any{"resourceVersion": known.Version}
	if annotations != nil {
		metadata["annotations"] = annotations
	}
	patch, err := json.Marshal(map[string]any{"metadata": metadata, "spec": spec})
	if err != nil {
		return Lease{}, err
	}
	return c.answer(ctx, c.api.Patch(types.MergePatchType).Name(c.name).Body(patch))
}

// bare returns a request without retries, because the agent has its own.
func (c *client) bare(request *rest.Request) *rest.Request {
	return request.Namespace(c.namespace).Resource(resource).MaxRetries(0)
}

// answer sends a request and returns the Lease of the response.
func (c *client) answer(ctx context.Context, request *rest.Request) (Lease, error) {
	var object coordinationv1.Lease
	err := c.bare(request).Do(ctx).Into(&object)
	switch {
	case err != nil:
		utilnet.CloseIdleConnectionsFor(c.http.Transport)
		if c.mustExist && apierrors.IsNotFound(err) {
			err = fmt.Errorf("%w: %w", errNoLease, err)
		}
		return Lease{}, err
	case c.mustExist && object.Labels[c.label] == "":
		return Lease{}, fmt.Errorf("%w: %q has no label %s", errNoLease, c.name, c.label)
	}
	return c.leaseOf(&object), nil
}

// watch reports changes after a version.
func (c *client) watch(ctx context.Context, version string) (watch.Interface, error) {
	return c.bare(c.api.Get()).
		Param("watch", "true").
		Param("resourceVersion", version).
		Param("fieldSelector", fields.OneTermEqualSelector(metav1.ObjectNameField, c.name).String()).
		Param("timeoutSeconds", strconv.Itoa(watchSeconds)).
		Watch(ctx)
}

// outcomeOf returns the outcome of a request. If the agent has canceled it, the outcome is unknown.
func outcomeOf(err error) Outcome {
	switch {
	case err == nil:
		return Succeeded
	case errors.Is(err, errNoLease):
		return Missing
	case apierrors.IsConflict(err), errors.Is(err, context.Canceled):
		return Outdated
	}
	return Failed
}

// isRefusal reports whether the API server has definitely not executed a request. A proxy in between can respond that
// the request has timed out.
func isRefusal(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false
	}
	code := status.Status().Code
	isClientError := code >= 400 && code < 500
	return isClientError && code != http.StatusRequestTimeout
}

// describe returns a text that is equal for equal errors: ports of connections are omitted.
func describe(err error) string {
	var operation *net.OpError
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return "the API server has not responded in time"
	case errors.As(err, &operation):
		return operation.Op + ": " + operation.Err.Error()
	}
	return err.Error()
}
