// Package turns limits concurrency, in total and per peer, and serves waiting peers round robin.
package turns

import (
	"context"
	"slices"
	"sync"
	"time"
)

// Turns limits concurrency, in total and per peer. A turn is the permission to process one request.
// Waiting peers get turns round robin, so a peer waits for at most one turn of each other peer.
type Turns struct {
	// all is the max number of turns in total, and each the max for one peer.
	all, each int64
	// first is the number of additional turns for peers that have none, one each. Without them, a few
	// peers with slow requests could hold all turns.
	first int64

	mu    sync.Mutex
	taken int64
	peers map[string]*peer
	// line contains the waiting peers, next one first.
	line []*peer
}

// peer is the state of one peer, for example an address or a namespace.
type peer struct {
	held int64
	// waiting contains the waiting requests, oldest first. A request's channel is closed when it gets
	// its turn.
	waiting []chan struct{}
}

// New returns Turns with a max of all in total and each for one peer. Peers that have none share first
// additional turns, one for each.
func New(all, each, first int64) *Turns {
	return &Turns{all: all, each: each, first: first, peers: map[string]*peer{}}
}

// Enter waits for a turn of a peer. The caller must call leave after the request. Enter returns an error
// if the peer gets no turn before ctx ends or, if wait is not 0, within wait.
func (t *Turns) Enter(ctx context.Context, name string, wait time.Duration) (leave func(), err error) {
	if wait > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, wait)
		defer stop()
	}
	turn := t.ask(name)
	select {
	case <-turn:
	case <-ctx.Done():
		if !t.withdraw(name, turn) {
			return nil, ctx.Err()
		}
	}
	return func() { t.leave(name) }, nil
}

// ask queues a request of a peer. The channel is closed when the request gets its turn.
func (t *Turns) ask(name string) chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.peers[name]
	if p == nil {
		p = &peer{}
		t.peers[name] = p
	}
	if len(p.waiting) == 0 {
		t.line = append(t.line, p)
	}
	turn := make(chan struct{})
	p.waiting = append(p.waiting, turn)
	t.serve()
	return turn
}

// withdraw removes a request from the queue. It returns true if the request got its turn meanwhile.
func (t *Turns) withdraw(name string, turn chan struct{}) (got bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.peers[name]
	at := slices.Index(p.waiting, turn)
	if at < 0 {
		return true
	}
	p.waiting = slices.Delete(p.waiting, at, at+1)
	if len(p.waiting) == 0 {
		t.line = slices.DeleteFunc(t.line, func(one *peer) bool { return one == p })
	}
	t.forget(name, p)
	return false
}

// leave returns a turn.
func (t *Turns) leave(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.peers[name]
	p.held--
	t.taken--
	t.forget(name, p)
	t.serve()
}

// serve assigns available turns to waiting peers. A peer with more waiting requests moves to the end of
// the line.
func (t *Turns) serve() {
	for {
		at := slices.IndexFunc(t.line, t.may)
		if at < 0 {
			return
		}
		p := t.line[at]
		t.line = slices.Delete(t.line, at, at+1)
		close(p.waiting[0])
		p.waiting = p.waiting[1:]
		p.held++
		t.taken++
		if len(p.waiting) > 0 {
			t.line = append(t.line, p)
		}
	}
}

// may reports whether a peer may get another turn.
func (t *Turns) may(p *peer) bool {
	if p.held == 0 {
		return t.taken < t.all+t.first
	}
	return p.held < t.each && t.taken < t.all
}

// forget deletes a peer that has no turns and no waiting requests.
func (t *Turns) forget(name string, p *peer) {
	if p.held == 0 && len(p.waiting) == 0 {
		delete(t.peers, name)
	}
}

// Known returns the number of peers that have turns or wait for one.
func (t *Turns) Known() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.peers)
}
