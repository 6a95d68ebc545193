// Package freeze runs operators as processes of this machine, each behind a proxy
// of its own, so that one can be stopped at exactly one of its writes and woken
// when another one leads.
//
//	operator A -- HTTP on loopback --> Proxy --+
//	                                           +-- TLS --> API server
//	operator B -- HTTP on loopback --> Proxy --+
//
// A stopped process (SIGSTOP) is what a paused virtual machine, a container of
// which a snapshot is made, or a machine without memory looks like: it does
// nothing, its clocks go on, and when it goes on it does not know that it was
// away. What it had sent before may arrive at any time.
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

// Mode is what becomes of the write that a process is frozen at.
type Mode string

// The modes.
const (
	// Lost: the request never arrives.
	Lost Mode = "whose request is lost"
	// Unanswered: it takes effect, and the process learns of that when it wakes.
	Unanswered Mode = "whose answer is late"
	// Late: it arrives when it is let go (Trap.LetGo), long after it was decided on.
	Late Mode = "whose request is late"
)

// Modes are all of them.
var Modes = []Mode{Lost, Unanswered, Late}

// errLost is the end of a request that is lost.
var errLost = errors.New("this request is to be lost")

// Trap freezes a process at one of its writes.
type Trap struct {
	// Matches chooses the writes that count.
	Matches func(Write) bool
	// At is the number of the write to freeze at, among those and from 1; 0 freezes
	// at none.
	At   int
	Mode Mode
	// Freeze stops the process; it is called once.
	Freeze func() error

	counted int
	sprung  chan struct{} // closed when the process is frozen
	letGo   chan struct{} // closed when a late request may arrive
	arrived chan struct{} // closed when that was answered
	err     error         // of Freeze; read after sprung
}

// Sprung is closed when the process is frozen.
func (t *Trap) Sprung() <-chan struct{} { return t.sprung }

// Err says why the process could not be frozen, once the trap has sprung.
func (t *Trap) Err() error { return t.err }

// LetGo has a late request arrive, and waits until it was answered. In other modes
// there is nothing to let go.
func (t *Trap) LetGo(ctx context.Context) error {
	if t.Mode != Late {
		return nil
	}
	close(t.letGo)
	select {
	case <-t.arrived:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("the late request was not answered: %w", ctx.Err())
	}
}

// Proxy is between one operator and the API server. It knows what the operator
// wrote, in the order in which that came.
type Proxy struct {
	server   *http.Server
	listener net.Listener
	to       http.RoundTripper

	mu     sync.Mutex // guards what is below, and what a Trap counts
	writes []*Write
	trap   *Trap
}

// NewProxy forwards to that API server with the rights of its configuration, which
// clients of the proxy do not need.
func NewProxy(config *rest.Config) (*Proxy, error) {
	config = rest.CopyConfig(config)
	config.NextProtos = []string{"http/1.1"} // others cannot be upgraded to a websocket
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
	quiet := log.New(io.Discard, "", 0) // requests that end early are the point
	p.server = &http.Server{ErrorLog: quiet, Handler: &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:     p,
		FlushInterval: -1, // a watch is flushed at once
		ErrorLog:      quiet,
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) {
			panic(http.ErrAbortHandler) // the operator sees its connection close
		},
	}}
	go p.server.Serve(listener) //nolint:errcheck // it ends by Close
	return p, nil
}

// URL is what the operator takes for the API server.
func (p *Proxy) URL() string { return "http://" + p.listener.Addr().String() }

// Close ends the proxy and every connection through it.
func (p *Proxy) Close() error { return p.server.Close() }

// Set sets a trap, which takes the place of an earlier one.
func (p *Proxy) Set(t *Trap) {
	t.sprung, t.letGo, t.arrived = make(chan struct{}), make(chan struct{}), make(chan struct{})
	p.mu.Lock()
	defer p.mu.Unlock()
	p.trap = t
}

// Disarm has the trap freeze at no later write, and reports whether it was in time: it
// is too late once the write to freeze at has come. Writes are counted on.
func (p *Proxy) Disarm() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.trap.counted >= p.trap.At {
		return false
	}
	p.trap.At = 0
	return true
}

// Counted is how many writes matched the trap since it was set.
func (p *Proxy) Counted() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.trap == nil {
		return 0
	}
	return p.trap.counted
}

// Writes are all that came so far and are as wanted.
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

// RoundTrip forwards a request, unless a trap says otherwise.
func (p *Proxy) RoundTrip(r *http.Request) (*http.Response, error) {
	w, writes := parse(r)
	if !writes {
		return p.to.RoundTrip(r)
	}
	// Nothing more can be read of a process that is stopped.
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

// note remembers a write. The result is the trap that it springs, if any.
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
