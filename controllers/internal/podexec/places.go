package podexec

import (
	"context"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// maxRunning is the max number of concurrent commands of this process, for all objects of all kinds.
// Each command holds a connection with buffers of about 100 KiB.
const maxRunning = 512

// shared are the places of this process.
var shared = places{most: maxRunning}

// places limits the number of concurrent commands. Each command holds one place while it runs.
//
// A namespace or object with many commands must leave places for others. A namespace may hold at most
// as many places as are free, and an object at most as many as are free after subtracting those of its
// namespace. If all commands of one object hang, it holds a third of the places. One such namespace
// holds half of them, and the next one half of the rest. The timeouts of commands release their places.
type places struct {
	most int

	mu          sync.Mutex
	taken       int
	ofNamespace map[string]int
	ofOwner     map[types.NamespacedName]int
	queue       []*turn // first in, first out
}

// turn is a command that holds a place or waits for one.
type turn struct {
	owner types.NamespacedName
	came  chan struct{} // closed when it gets its place
}

// has reports whether the command holds a place.
func (t *turn) has() bool {
	select {
	case <-t.came:
		return true
	default:
		return false
	}
}

// lineUp takes a place, or queues the command.
func (p *places) lineUp(owner types.NamespacedName) *turn {
	p.mu.Lock()
	defer p.mu.Unlock()
	t := &turn{owner: owner, came: make(chan struct{})}
	if !p.admit(t) { // no queued command can get a place now either
		p.queue = append(p.queue, t)
	}
	return t
}

// admit takes a place for a command if it may have one. The caller holds the lock.
func (p *places) admit(t *turn) bool {
	if p.ofOwner[t.owner] >= p.most-p.taken-p.ofNamespace[t.owner.Namespace] {
		return false
	}
	if p.ofOwner == nil {
		p.ofOwner, p.ofNamespace = map[types.NamespacedName]int{}, map[string]int{}
	}
	p.taken++
	p.ofNamespace[t.owner.Namespace]++
	p.ofOwner[t.owner]++
	close(t.came)
	return true
}

// wait waits for a place for at most the given time, and reports whether the command got one.
func (p *places) wait(ctx context.Context, t *turn, atMost time.Duration) bool {
	timer := time.NewTimer(atMost)
	defer timer.Stop()
	select {
	case <-t.came:
		return true
	case <-timer.C:
	case <-ctx.Done():
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.queue = slices.DeleteFunc(p.queue, func(q *turn) bool { return q == t })
	return t.has() // it may have got a place just now
}

// leave releases a place. The first queued command that may have one takes it.
func (p *places) leave(t *turn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.taken--
	lower(p.ofNamespace, t.owner.Namespace)
	lower(p.ofOwner, t.owner)
	p.queue = slices.DeleteFunc(p.queue, p.admit)
}

// lower decrements a counter, and removes it at 0.
func lower[K comparable](counts map[K]int, of K) {
	if counts[of]--; counts[of] == 0 {
		delete(counts, of)
	}
}
