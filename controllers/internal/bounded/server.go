// Package bounded serves HTTP to peers that nobody vouches for: any pod of the cluster
// reaches the ports of the operator. What a request may cost is bounded before the work
// begins: connections, the size of a body, requests at one time, the memory that they take
// when they are decoded, and time. A peer that sends much waits for itself.
package bounded

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
)

// shutdownTimeout is for requests under way when the process is told to stop.
const shutdownTimeout = 5 * time.Second

// NewServer listens on [host]:port for plain requests, as of metrics and probes. The
// configuration is nil for a server without TLS. A manager starts it before its caches.
func NewServer(name, address string, config *tls.Config, handler http.Handler) (*manager.Server, error) {
	return newServer(name, address, config, limited(handler, plainLimits))
}

// Webhooks is the webhook server of a manager.
type Webhooks struct {
	webhook.Server
	address string
	tls     *tls.Config
	callers Callers
	pods    []string
	started atomic.Bool
}

// Callers separates the API server from others that reach the port.
type Callers interface {
	// Admit returns the path of a webhook that a request asks for. It is false for a caller that
	// is not the API server.
	Admit(path string) (webhook string, ok bool)
}

// NewWebhooks returns a webhook server on that port of all addresses. pods are the paths of webhooks
// that the pods of all tenants wait for. They have turns that no other webhook can take.
func NewWebhooks(port int, config *tls.Config, callers Callers, pods ...string) *Webhooks {
	return &Webhooks{Server: webhook.NewServer(webhook.Options{}), address: fmt.Sprintf(":%d", port), tls: config, callers: callers, pods: pods}
}

// Start listens and serves until ctx ends.
func (s *Webhooks) Start(ctx context.Context) error {
	server, err := newServer("webhooks", s.address, s.tls, s.lanes(s.WebhookMux(), webhookLimits))
	if err != nil {
		return err
	}
	s.started.Store(true)
	return server.Start(ctx)
}

// lanes returns a handler that answers the callers that are admitted: those of the webhooks of pods and
// those of all others with turns of their own. Others get 404 before anything is read, and no turn.
func (s *Webhooks) lanes(next http.Handler, l limits) http.Handler {
	memory := semaphore.NewWeighted(l.memory)
	pods, objects := newLimiter(next, l, memory, false), newLimiter(next, l, memory, true)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path, ok := s.callers.Admit(r.URL.Path)
		if !ok {
			turnAway(w, r, l.turnedAway)
			return
		}
		at := *r.URL
		at.Path, at.RawPath = path, ""
		r = r.WithContext(r.Context())
		r.URL = &at
		if slices.Contains(s.pods, path) {
			pods.ServeHTTP(w, r)
			return
		}
		objects.ServeHTTP(w, r)
	})
}

// turnAway answers 404 after a delay. A connection has one request at a time, so the delay bounds what
// strangers can ask for.
func turnAway(w http.ResponseWriter, r *http.Request, delay time.Duration) {
	// For what the server reads of the body afterwards. A writer of a test has no deadline.
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(2 * delay))
	select {
	case <-r.Context().Done():
	case <-time.After(delay):
	}
	http.NotFound(w, r)
}

// StartedChecker is a check that holds once the server listens.
func (s *Webhooks) StartedChecker() healthz.Checker {
	return func(*http.Request) error {
		if !s.started.Load() {
			return errors.New("the webhook server does not listen yet")
		}
		return nil
	}
}

func newServer(name, address string, config *tls.Config, handler http.Handler) (*manager.Server, error) {
	inner, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listening for %s: %w", name, err)
	}
	var outer net.Listener = newListener(inner, maxConnections)
	if config != nil {
		config = fairHandshakes(config)
		// One connection has one request at a time: HTTP/2 would let one peer open any number.
		config.NextProtos = []string{"http/1.1"}
		outer = tls.NewListener(outer, config)
	}
	timeout := shutdownTimeout
	return &manager.Server{Name: name, Listener: outer, ShutdownTimeout: &timeout, Server: &http.Server{
		ErrorLog:          log.New(newErrorLog(ctrl.Log.WithName(name)), "", 0),
		Handler:           handler,
		MaxHeaderBytes:    16 << 10,
		ReadHeaderTimeout: 10 * time.Second,
		WriteTimeout:      time.Minute,
		IdleTimeout:       90 * time.Second,
	}}, nil
}
