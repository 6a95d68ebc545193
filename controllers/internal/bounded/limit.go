package bounded

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/stateful-operator/stateful-operator/controllers/internal/bounds"
)

// limits of what is done at one time. An answer that is not 200 is an error to the API
// server, which then follows the webhook's failurePolicy.
type limits struct {
	// body is the most bytes of a request. An AdmissionReview has the object twice, and the
	// API server stores objects of up to 1.5 MiB.
	body int64
	// requests are worked on at one time, and of one peer. Others wait.
	requests, requestsPeer int64
	// memory is the most bytes that all requests take when they are decoded, estimated by
	// weigh; one request may take a third of it.
	memory int64
	// wait is for a turn, read for the arrival of the body, work for the answer.
	wait, read, work time.Duration
}

// webhookLimits fit into the memory limit of config/manager, as test/hostile shows.
var webhookLimits = limits{
	body: 3 << 20, requests: 24, requestsPeer: 16, memory: 128 << 20,
	wait: 5 * time.Second, read: 5 * time.Second, work: 10 * time.Second,
}

// plainLimits are for requests without a body: metrics, probes.
var plainLimits = limits{
	body: 4 << 10, requests: 16, requestsPeer: 8, memory: 1 << 20,
	wait: 5 * time.Second, read: 5 * time.Second, work: 30 * time.Second,
}

// limited gives a handler these bounds.
func limited(handler http.Handler, l limits) http.Handler {
	return &limiter{handler: handler, limits: l, all: semaphore.NewWeighted(l.requests),
		decoded: semaphore.NewWeighted(l.memory), peers: map[string]*peer{}}
}

type limiter struct {
	limits
	handler      http.Handler
	all, decoded *semaphore.Weighted

	mu    sync.Mutex
	peers map[string]*peer
}

// peer has the turns of one address.
type peer struct {
	turns *semaphore.Weighted
	users int
}

func (l *limiter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ctx, stop := context.WithTimeout(r.Context(), l.work)
	defer stop()
	leave, err := l.enter(ctx, hostOf(r.RemoteAddr))
	if err != nil {
		http.Error(w, "too many requests at one time: try again", http.StatusTooManyRequests)
		return
	}
	defer leave()
	body, err := l.readBody(w, r)
	if tooLarge := new(http.MaxBytesError); errors.As(err, &tooLarge) {
		http.Error(w, fmt.Sprintf("the request has more than %d bytes: make the object smaller", l.body), http.StatusRequestEntityTooLarge)
		return
	}
	if err != nil {
		http.Error(w, "the request did not arrive whole", http.StatusBadRequest)
		return
	}
	weight := weigh(body)
	if weight > l.memory/3 {
		http.Error(w, "the object has too many parts: make its lists shorter", http.StatusRequestEntityTooLarge)
		return
	}
	if l.decoded.Acquire(ctx, weight) != nil {
		http.Error(w, "too many large requests at one time: try again", http.StatusTooManyRequests)
		return
	}
	defer l.decoded.Release(weight)
	if err := bounds.Quantities(body); err != nil {
		http.Error(w, "the request "+err.Error(), http.StatusBadRequest)
		return
	}
	r = r.WithContext(ctx)
	r.Body = io.NopCloser(bytes.NewReader(body))
	l.handler.ServeHTTP(w, r)
}

// enter waits for a turn: first among those of a peer, so that one peer that sends much
// waits for itself, and then among all.
func (l *limiter) enter(ctx context.Context, address string) (leave func(), err error) {
	ctx, stop := context.WithTimeout(ctx, l.wait)
	defer stop()
	mine := l.peer(address)
	if err := mine.turns.Acquire(ctx, 1); err != nil {
		l.forget(address)
		return nil, err
	}
	if err := l.all.Acquire(ctx, 1); err != nil {
		mine.turns.Release(1)
		l.forget(address)
		return nil, err
	}
	return func() {
		l.all.Release(1)
		mine.turns.Release(1)
		l.forget(address)
	}, nil
}

func (l *limiter) peer(address string) *peer {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.peers[address]
	if p == nil {
		p = &peer{turns: semaphore.NewWeighted(l.requestsPeer)}
		l.peers[address] = p
	}
	p.users++
	return p
}

// forget lets go of a peer that nobody uses.
func (l *limiter) forget(address string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if p := l.peers[address]; p.users > 1 {
		p.users--
		return
	}
	delete(l.peers, address)
}

// readBody reads all of a request. One that sends slowly holds its turn no longer than it
// may.
func (l *limiter) readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	connection := http.NewResponseController(w)
	// A writer of a test has no deadline.
	_ = connection.SetReadDeadline(time.Now().Add(l.read))
	var body bytes.Buffer
	body.Grow(int(max(0, min(r.ContentLength, l.body)) + bytes.MinRead)) // -1 is not known
	if _, err := body.ReadFrom(http.MaxBytesReader(w, r.Body, l.body)); err != nil {
		// The server reads what is left, which the deadline ends.
		w.Header().Set("Connection", "close")
		return nil, err
	}
	// Without one again, the server sees when the caller goes, and ends the context.
	_ = connection.SetReadDeadline(time.Time{})
	return body.Bytes(), nil
}

// weigh estimates the bytes that a body takes when it is decoded, with its copies. An element of a list may
// take five bytes of JSON, and 1 KiB as an empty container. Each but the first has a comma
// before it, and each that has something in it a brace.
func weigh(body []byte) int64 {
	parts := bytes.Count(body, []byte{','}) + bytes.Count(body, []byte{'{'}) + bytes.Count(body, []byte{'['})
	return 8*int64(len(body)) + 1024*int64(parts)
}
