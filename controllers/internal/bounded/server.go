// Package bounded serves HTTP to untrusted peers, because any pod of the cluster can reach the ports of
// the operator. It limits the cost of requests before it processes them: connections, body sizes,
// concurrent requests, memory for decoding, and time. Excess requests of a peer delay only that peer.
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

// shutdownTimeout is how long shutdown waits for active requests.
const shutdownTimeout = 5 * time.Second

// NewServer returns a server that listens on [host]:port for plain requests, such as those for metrics
// and probes. config is nil for a server without TLS. A manager starts the server before its caches.
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

// Callers separates the API server from other clients that can reach the port.
type Callers interface {
	// Admit returns the path of the requested webhook. It returns false if the caller is not the API
	// server.
	Admit(path string) (webhook string, ok bool)
}

// NewWebhooks returns a webhook server that listens on the port on all addresses. pods are the paths of
// webhooks that delay the pods of all tenants. They have their own turns, which other webhooks cannot
// take.
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

// lanes returns a handler that serves admitted callers. Pod webhooks and other webhooks have separate
// turns. Other callers get 404 without a turn, before the body is read.
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

// turnAway responds with 404 after a delay. A connection has one request at a time, so the delay limits
// the request rate of such callers.
func turnAway(w http.ResponseWriter, r *http.Request, delay time.Duration) {
	// The server still reads the rest of the body afterwards. The ResponseWriters of tests do not
	// support deadlines.
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(2 * delay))
	select {
	case <-r.Context().Done():
	case <-time.After(delay):
	}
	http.NotFound(w, r)
}

// StartedChecker returns a check that succeeds once the server listens.
func (s *Webhooks) StartedChecker() healthz.Checker {
	return func(*http.Request) error {
		if !s.started.Load() {
			return errors.New("the webhook server is not listening yet")
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
		// With HTTP/1.1, one connection has one request at a time. HTTP/2 would allow a peer any
		// number.
		config.NextProtos = []string{"http/1.1"}
		outer = tls.NewListener(outer, config)
	}
	timeout := shutdownTimeout
	return &manager.Server{Name: name, Listener: outer, ShutdownTimeout: &timeout, Server: &http.Server{
		ErrorLog: log.New(newErrorLog(ctrl.Log.WithName(name)), "", 0),
		Handler:  handler,
		// net/http would respond to "OPTIONS *" without the handler, and so without its limits.
		DisableGeneralOptionsHandler: true,
		MaxHeaderBytes:               16 << 10,
		ReadHeaderTimeout:            10 * time.Second,
		WriteTimeout:                 time.Minute,
		IdleTimeout:                  90 * time.Second,
	}}, nil
}
