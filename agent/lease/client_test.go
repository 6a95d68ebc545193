package lease

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/stateful-operator/stateful-operator/agent/lease/leasetest"
)

func newTestClient(t *testing.T, server *leasetest.Server) *client {
	t.Helper()
	f := Folders{Fencing: t.TempDir()}
	server.WriteFolder(f.Fencing, "a", "1")
	config := Config{Name: leasetest.Name, Label: LabelSingleton, Duration: 15 * time.Second, Folders: f}
	c, err := newClient(server.URL, leasetest.Namespace, config)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (c *client) must(t *testing.T, operation Operation, known Lease) Lease {
	t.Helper()
	l, err := c.request(t.Context(), operation, known)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// TestALeaseWithoutTheLabelHasNoHolder tests a Lease that another client has created in place of the operator's.
func TestALeaseWithoutTheLabelHasNoHolder(t *testing.T) {
	server := leasetest.New(t, self)
	server.Name(other)
	server.Update(func(l *coordinationv1.Lease) { l.Labels = nil })
	if l := newTestClient(t, server).must(t, Get, Lease{}); l.Holder != "" || l.Successor != "" {
		t.Errorf("its holder is %q, its successor %q", l.Holder, l.Successor)
	}
}

// TestTheLeaseOfAMemberMustExist tests that a Lease of another client, or none, is a failure for a member.
func TestTheLeaseOfAMemberMustExist(t *testing.T) {
	server := leasetest.New(t, self)
	c := newTestClient(t, server)
	c.label, c.mustExist = LabelMember, true
	fails := func(operation Operation, known Lease) {
		t.Helper()
		if l, err := c.request(t.Context(), operation, known); outcomeOf(err) != Missing || l != (Lease{}) {
			t.Errorf("operation %d: %+v, %v", operation, l, err)
		}
	}
	fails(Get, Lease{})
	fails(Renew, Lease{Version: server.Lease().ResourceVersion})
	server.Update(func(l *coordinationv1.Lease) { l.Labels = map[string]string{LabelMember: "x"} })
	if l := c.must(t, Renew, c.must(t, Get, Lease{})); l.Holder != self {
		t.Errorf("the Lease is %+v", l)
	}
	server.Delete()
	fails(Get, Lease{})
	fails(Renew, Lease{Version: "1"})
}

func TestRequests(t *testing.T) {
	server := leasetest.New(t, self)
	c := newTestClient(t, server)
	read := c.must(t, Get, Lease{})
	if read.Holder != self || read.Successor != "" || read.Version == "" {
		t.Errorf("the Lease is %+v", read)
	}
	renewed := c.must(t, Renew, read)
	l := server.Lease()
	if renewed.Version == read.Version || l.Spec.RenewTime == nil || *l.Spec.LeaseDurationSeconds != 15 {
		t.Errorf("the renewed Lease is %+v: %+v", renewed, l.Spec)
	}
	server.Name(other)
	for _, operation := range []Operation{Renew, HandOver} {
		if _, err := c.request(t.Context(), operation, renewed); outcomeOf(err) != Outdated {
			t.Errorf("operation %d with an old version: %v", operation, err)
		}
	}
	handedOver := c.must(t, HandOver, c.must(t, Get, Lease{}))
	l = server.Lease()
	if handedOver.Holder != other || handedOver.Epoch != 1 || handedOver.Successor != "" || l.Spec.AcquireTime == nil {
		t.Errorf("the Lease is %+v: %+v", handedOver, l.Spec)
	}
	if _, found := l.Annotations[leasetest.Next]; found {
		t.Error("the annotation remains")
	}
}

func TestFailures(t *testing.T) {
	server := leasetest.New(t, self)
	c := newTestClient(t, server)
	for fault, want := range map[leasetest.Fault]string{leasetest.Silent: "has not responded in time", leasetest.Refused: "EOF"} {
		server.Fail(fault)
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		_, err := c.request(ctx, Get, Lease{})
		cancel()
		if outcomeOf(err) != Failed || !strings.Contains(describe(err), want) {
			t.Errorf("fault %d: %v: %s", fault, err, describe(err))
		}
	}
	server.Fail(leasetest.None)
	c.must(t, Get, Lease{})
	server.Delete()
	if _, err := c.request(t.Context(), Renew, Lease{Version: "1"}); outcomeOf(err) != Failed || !strings.Contains(describe(err), "not found") {
		t.Errorf("a missing Lease: %v", err)
	}
}

func TestOutcomeOf(t *testing.T) {
	for err, want := range map[error]Outcome{
		nil: Succeeded, errors.New("x"): Failed, context.DeadlineExceeded: Failed, context.Canceled: Outdated,
	} {
		if got := outcomeOf(err); got != want {
			t.Errorf("%v: %d, want %d", err, got, want)
		}
	}
}

func TestIsRefusal(t *testing.T) {
	leases := schema.GroupResource{Resource: resource}
	missing := apierrors.NewNotFound(leases, "x")
	for _, err := range []error{
		missing, fmt.Errorf("%w: %w", errNoLease, missing), apierrors.NewConflict(leases, "x", nil), apierrors.NewForbidden(leases, "x", nil),
		apierrors.NewInvalid(schema.GroupKind{}, "x", nil), apierrors.NewUnauthorized("x"), apierrors.NewTooManyRequests("x", 1),
	} {
		if !isRefusal(err) {
			t.Errorf("%v is no refusal", err)
		}
	}
	for _, err := range []error{
		nil, errors.New("x"), context.DeadlineExceeded, context.Canceled, errNoLease, apierrors.NewInternalError(errNoLease),
		apierrors.NewTimeoutError("x", 1), apierrors.NewServerTimeout(leases, "patch", 1), apierrors.NewServiceUnavailable("x"),
		apierrors.NewGenericServerResponse(408, "patch", leases, "x", "", 0, true),
	} {
		if isRefusal(err) {
			t.Errorf("%v is a refusal", err)
		}
	}
}

func TestDescribeOmitsPorts(t *testing.T) {
	err := fmt.Errorf("get: %w", &net.OpError{Op: "dial", Net: "tcp", Addr: &net.TCPAddr{Port: 4711}, Err: errors.New("refused")})
	if got := describe(err); got != "dial: refused" {
		t.Errorf("the text is %q", got)
	}
}

func TestServerAddress(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "fd00::1")
	t.Setenv("KUBERNETES_SERVICE_PORT", "")
	if _, err := serverAddress(); err == nil {
		t.Error("without a port there is no error")
	}
	t.Setenv("KUBERNETES_SERVICE_PORT", "443")
	if got, err := serverAddress(); err != nil || got != "https://[fd00::1]:443" {
		t.Errorf("the address is %q (%v)", got, err)
	}
}
