package bounded

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"
)

// turns are for what may be done so many times at one time: by all, and by one peer.
type turns struct {
	all *semaphore.Weighted
	// first are for peers that have no turn while all are taken: two that send much would
	// have all, and keep others waiting.
	first *semaphore.Weighted
	each  int64 // of one peer

	mu    sync.Mutex
	peers map[string]*peer
}

// peer has the turns of one address.
type peer struct {
	turns *semaphore.Weighted
	users int
	// held is how many turns it has.
	held atomic.Int64
}

func newTurns(all, each, first int64) *turns {
	return &turns{all: semaphore.NewWeighted(all), first: semaphore.NewWeighted(first), each: each, peers: map[string]*peer{}}
}

// enter waits for a turn: first among those of a peer, so that one peer that sends much
// waits for itself, and then among all.
func (t *turns) enter(ctx context.Context, address string, wait time.Duration) (leave func(), err error) {
	ctx, stop := context.WithTimeout(ctx, wait)
	defer stop()
	mine := t.peer(address)
	if err := mine.turns.Acquire(ctx, 1); err != nil {
		t.forget(address)
		return nil, err
	}
	from, err := t.take(ctx, mine)
	if err != nil {
		mine.turns.Release(1)
		t.forget(address)
		return nil, err
	}
	mine.held.Add(1)
	return func() {
		mine.held.Add(-1)
		from.Release(1)
		mine.turns.Release(1)
		t.forget(address)
	}, nil
}

// take waits for a turn among those of all, and returns where it has to be given back.
func (t *turns) take(ctx context.Context, by *peer) (*semaphore.Weighted, error) {
	if t.all.TryAcquire(1) {
		return t.all, nil
	}
	if by.held.Load() == 0 && t.first.TryAcquire(1) {
		return t.first, nil
	}
	return t.all, t.all.Acquire(ctx, 1)
}

func (t *turns) peer(address string) *peer {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.peers[address]
	if p == nil {
		p = &peer{turns: semaphore.NewWeighted(t.each)}
		t.peers[address] = p
	}
	p.users++
	return p
}

// forget lets go of a peer that nobody uses.
func (t *turns) forget(address string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if p := t.peers[address]; p.users > 1 {
		p.users--
		return
	}
	delete(t.peers, address)
}

// known is the number of peers that have turns or wait for them.
func (t *turns) known() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.peers)
}
