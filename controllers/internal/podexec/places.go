package podexec

import (
	"context"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// mostRunning is how many commands run at one time in this process, for all objects
// of all kinds. Each holds a connection with its buffers, of some 100 KiB.
const mostRunning = 512

// shared are the places of this process.
var shared = places{most: mostRunning}

// places are what commands take while they run.
//
// Who has many may take no more than what is left for others: of a namespace fewer
// run than places are free, and of an object fewer than are left of these. One object
// whose commands all hang gets a third, one namespace the half, and the next one half
// of what is left. The timeouts of commands give places back.
type places struct {
	most int

	mu          sync.Mutex
	taken       int
	ofNamespace map[string]int
	ofOwner     map[types.NamespacedName]int
	queue       []*turn // in the order in which they came
}

// turn is one that takes a place, or waits for it.
type turn struct {
	owner types.NamespacedName
	came  chan struct{} // closed when it has its place
}

// has reports whether the place is taken.
func (t *turn) has() bool {
	select {
	case <-t.came:
		return true
	default:
		return false
	}
}

// lineUp takes a place, or gets into the queue.
func (p *places) lineUp(owner types.NamespacedName) *turn {
	p.mu.Lock()
	defer p.mu.Unlock()
	t := &turn{owner: owner, came: make(chan struct{})}
	if !p.admit(t) { // those in the queue have not been let in by anything since
		p.queue = append(p.queue, t)
	}
	return t
}

// admit gives a place to who may have one; the lock is held.
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

// wait waits for the place, not longer than that, and reports whether it is there.
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
	return t.has() // it may have come at this very moment
}

// leave gives a place back, to the first who may have it.
func (p *places) leave(t *turn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.taken--
	lower(p.ofNamespace, t.owner.Namespace)
	lower(p.ofOwner, t.owner)
	p.queue = slices.DeleteFunc(p.queue, p.admit)
}

// lower counts down, and forgets what is 0.
func lower[K comparable](counts map[K]int, of K) {
	if counts[of]--; counts[of] == 0 {
		delete(counts, of)
	}
}
