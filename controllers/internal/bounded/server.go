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
	"net"
	"net/http"
	"sync/atomic"
	"time"

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
	started atomic.Bool
}

// NewWebhooks gives a webhook server on that port of all addresses.
func NewWebhooks(port int, config *tls.Config) *Webhooks {
	return &Webhooks{Server: webhook.NewServer(webhook.Options{}), address: fmt.Sprintf(":%d", port), tls: config}
}

// Start listens and serves until ctx ends. All webhooks share the bounds.
func (s *Webhooks) Start(ctx context.Context) error {
	server, err := newServer("webhooks", s.address, s.tls, limited(s.WebhookMux(), webhookLimits))
	if err != nil {
		return err
	}
	s.started.Store(true)
	return server.Start(ctx)
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
		config = config.Clone()
		// One connection has one request at a time: HTTP/2 would let one peer open any number.
		config.NextProtos = []string{"http/1.1"}
		outer = tls.NewListener(outer, config)
	}
	timeout := shutdownTimeout
	return &manager.Server{Name: name, Listener: outer, ShutdownTimeout: &timeout, Server: &http.Server{
		Handler:           handler,
		MaxHeaderBytes:    16 << 10,
		ReadHeaderTimeout: 10 * time.Second,
		WriteTimeout:      time.Minute,
		IdleTimeout:       90 * time.Second,
	}}, nil
}
