package memory

import (
	"sync"
	"time"
)

// recentTime is how long Recent keeps a value, unless newer values of its group replace it.
const recentTime = time.Hour

// pruneInterval is the min time between two searches of Recent for old values.
const pruneInterval = time.Minute

// Recent stores the newest values of each group, for recentTime at least and twice as long at most.
// Users cause these values, so the number in a group is bounded; the caller bounds the number of
// groups. The time that a call takes does not depend on the number of values. Recent is safe for
// concurrent use, and the zero value is ready to use.
type Recent[G, K comparable, V any] struct {
	mu     sync.Mutex
	groups map[G]*generations[K, V]
	pruned time.Time
}

// generations are the values of a group, in two maps. When newer is full or old, it becomes older, and
// the previous older is dropped as a whole.
type generations[K comparable, V any] struct {
	newer, older map[K]V
	turned       time.Time // when newer was created
}

// Put stores a value. The group keeps at least its most newest values, and at most twice as many.
func (r *Recent[G, K, V]) Put(in G, key K, value V, most int, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.prune(now)
	if r.groups == nil {
		r.groups = map[G]*generations[K, V]{}
	}
	group := r.groups[in]
	if group == nil {
		group = &generations[K, V]{newer: map[K]V{}, turned: now}
		r.groups[in] = group
	}
	if _, stored := group.newer[key]; !stored && len(group.newer) >= most {
		group.turn(now)
	}
	group.newer[key] = value
}

// Get returns a value, and reports whether it is stored.
func (r *Recent[G, K, V]) Get(in G, key K) (value V, stored bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	group := r.groups[in]
	if group == nil {
		return value, false
	}
	if value, stored = group.newer[key]; !stored {
		value, stored = group.older[key]
	}
	return value, stored
}

// Remove removes a value.
func (r *Recent[G, K, V]) Remove(in G, key K) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if group := r.groups[in]; group != nil {
		delete(group.newer, key)
		delete(group.older, key)
	}
}

// Forget removes all values of a group.
func (r *Recent[G, K, V]) Forget(in G) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.groups, in)
}

// prune drops old values, and the groups that are empty then. The caller holds mu.
func (r *Recent[G, K, V]) prune(now time.Time) {
	if now.Sub(r.pruned) < pruneInterval {
		return
	}
	r.pruned = now
	for in, group := range r.groups {
		if now.Sub(group.turned) >= recentTime {
			group.turn(now)
		}
		if len(group.newer)+len(group.older) == 0 {
			delete(r.groups, in)
		}
	}
}

// turn drops the older values, and makes the newer ones the older ones.
func (g *generations[K, V]) turn(now time.Time) {
	g.newer, g.older, g.turned = map[K]V{}, g.newer, now
}
