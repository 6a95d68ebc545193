// Package freeze runs operators as processes of this machine, each behind its own proxy. An operator
// can be stopped at exactly one of its writes and continued when another one is the leader.
//
//	operator A -- HTTP on loopback --> Proxy --+
//	                                           +-- TLS --> API server
//	operator B -- HTTP on loopback --> Proxy --+
//
// A stopped process (SIGSTOP) behaves like a paused virtual machine, a container during a checkpoint,
// or a machine that is out of memory: it does nothing while its clocks continue, and afterwards it is
// not aware of the pause. Requests that it sent before may arrive at any time.
package freeze

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"

	"k8s.io/client-go/rest"
)

// Mode defines how the proxy handles the write at which a process is frozen.
type Mode string

// Modes of a Trap.
const (
	// Lost: the request never arrives.
	Lost Mode = "whose request is lost"
	// Unanswered: the request takes effect, and the process receives the response after it is
	// continued.
	Unanswered Mode = "whose response is late"
	// Late: the request arrives when it is released (Trap.LetGo), long after the decision.
	Late Mode = "whose request is late"
)

// Modes are all modes.
var Modes = []Mode{Lost, Unanswered, Late}

// errLost aborts a request that must be lost.
var errLost = errors.New("this request is dropped")

// Trap freezes a process at one of its writes.
type Trap struct {
	// Matches selects the writes that are counted.
	Matches func(Write) bool
	// At is the number of the matching write at which the process is frozen, starting at 1. 0 disables
	// the trap.
	At   int
	Mode Mode
	// Freeze stops the process. It is called once.
	Freeze func() error

	counted int
	sprung  chan struct{} // closed when the process is frozen
	letGo   chan struct{} // closed when a late request may arrive
	arrived chan struct{} // closed when the late request was answered
	err     error         // of Freeze; read after sprung
}

// Sprung returns a channel that is closed when the process is frozen.
func (t *Trap) Sprung() <-chan struct{} { return t.sprung }

// Err returns why the process could not be frozen. Call it after the trap has sprung.
func (t *Trap) Err() error { return t.err }

// LetGo releases a late request and waits for its response. It does nothing in other modes.
func (t *Trap) LetGo(ctx context.Context) error {
	if t.Mode != Late {
		return nil
	}
	close(t.letGo)
	select {
	case <-t.arrived:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("the late request got no response: %w", ctx.Err())
	}
}

// Proxy is between one operator and the API server. It records the operator's writes in the order of
// their arrival.
type Proxy struct {
	server   *http.Server
	listener net.Listener
	to       http.RoundTripper

	mu     sync.Mutex // guards the fields below and a Trap's count
	writes []*Write
	trap   *Trap
}

// NewProxy forwards to the API server of config with its credentials. Clients of the proxy need none.
func NewProxy(config *rest.Config) (*Proxy, error) {
	config = rest.CopyConfig(config)
	config.NextProtos = []string{"http/1.1"} // others cannot be upgraded to a WebSocket
	config.Timeout = 0
	to, err := rest.TransportFor(config)
	if err != nil {
		return nil, err
	}
	target, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, err
	}
	return serve(target, to)
}

func serve(target *url.URL, to http.RoundTripper) (*Proxy, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &Proxy{listener: listener, to: to}
	quiet := log.New(io.Discard, "", 0) // aborted requests are expected
	p.server = &http.Server{ErrorLog: quiet, Handler: &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:     p,
		FlushInterval: -1, // flush watch events immediately
		ErrorLog:      quiet,
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) {
			panic(http.ErrAbortHandler) // the operator's connection is closed
		},
	}}
	go p.server.Serve(listener) //nolint:errcheck // it ends by Close
	return p, nil
}

// URL returns the URL that the operator uses as API server.
func (p *Proxy) URL() string { return "http://" + p.listener.Addr().String() }

// Close closes the proxy and all connections through it.
func (p *Proxy) Close() error { return p.server.Close() }

// Set sets a trap and replaces an earlier one.
func (p *Proxy) Set(t *Trap) {
	t.sprung, t.letGo, t.arrived = make(chan struct{}), make(chan struct{}), make(chan struct{})
	p.mu.Lock()
	defer p.mu.Unlock()
	p.trap = t
}

// Disarm disables the trap, and reports whether it was in time: the write at which the process is
// frozen has not arrived yet. Writes are still counted.
func (p *Proxy) Disarm() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.trap.counted >= p.trap.At {
		return false
	}
	p.trap.At = 0
	return true
}

// Counted returns the number of writes that matched the trap since it was set.
func (p *Proxy) Counted() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.trap == nil {
		return 0
	}
	return p.trap.counted
}

// Writes returns the wanted writes so far.
func (p *Proxy) Writes(wanted func(Write) bool) []Write {
	p.mu.Lock()
	defer p.mu.Unlock()
	var found []Write
	for _, w := range p.writes {
		if wanted(*w) {
			found = append(found, *w)
		}
	}
	return found
}

// RoundTrip forwards a request, unless a trap intercepts it.
func (p *Proxy) RoundTrip(r *http.Request) (*http.Response, error) {
	w, writes := parse(r)
	if !writes {
		return p.to.RoundTrip(r)
	}
	// The body must be read now, because a stopped process sends no more data.
	if r.Body != nil {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	trap := p.note(&w)
	switch {
	case trap == nil:
		return p.forward(r, &w)
	case trap.Mode == Lost:
		trap.spring()
		return nil, errLost
	case trap.Mode == Late:
		defer close(trap.arrived)
		trap.spring()
		select {
		case <-trap.letGo:
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
		return p.forward(r, &w)
	}
	response, err := p.forward(r, &w)
	trap.spring()
	return response, err
}

// note records a write. It returns the trap if the write springs it.
func (p *Proxy) note(w *Write) *Trap {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.writes = append(p.writes, w)
	if p.trap == nil || !p.trap.Matches(*w) {
		return nil
	}
	if p.trap.counted++; p.trap.counted != p.trap.At {
		return nil
	}
	w.Held = true
	return p.trap
}

func (t *Trap) spring() {
	t.err = t.Freeze()
	close(t.sprung)
}

func (p *Proxy) forward(r *http.Request, w *Write) (*http.Response, error) {
	response, err := p.to.RoundTrip(r)
	if err == nil {
		p.mu.Lock()
		w.Status = response.StatusCode
		p.mu.Unlock()
	}
	return response, err
}
