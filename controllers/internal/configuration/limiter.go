package configuration

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/stateful-operator/stateful-operator/controllers/internal/leadership"
)

// Times of the places of restarts.
const (
	// SlotLimit is how long a restart holds its place at most. One that hangs, on a pod
	// that is never Ready, lets others go on after that; each StatefulSet stops at its
	// first pod that is not Ready, so that a bad edit costs one pod of each.
	SlotLimit = 10 * time.Minute
	// SlotRetry is how often one that waits looks again, should nothing wake it.
	SlotRetry = 15 * time.Second
	// SlotForgotten is when one that waits and asked no more is taken off the queue.
	SlotForgotten = 4 * SlotRetry
	// SlotMemory is how long it is remembered that a namespace had its turn.
	SlotMemory = time.Hour
)

// Slot says whether an object may begin to restart pods for a change of
// configuration, and how many are before it.
type Slot struct {
	Granted    bool
	busy, most int
	mine       int // of the busy ones those of its namespace
	ahead      int
}

func (t Slot) String() string {
	if t.most == 0 {
		return ""
	}
	mine := ""
	if t.busy < t.most && t.mine >= t.most-t.busy {
		mine = fmt.Sprintf(", %d of them in this namespace, which may have no more while no more are free", t.mine)
	}
	return fmt.Sprintf(": %d of at most %d restart now%s, and %d wait before it", t.busy, t.most, mine, t.ahead)
}

// Limiter bounds how many objects restart pods at one time. How many do so is seen in
// their StatefulSets, also after a restart of the operator; what is kept here is who
// waits, and who was let go before the cache shows it.
//
// Namespaces are let go in turn, and each object of a namespace by age. A namespace
// gets another place only while more are free than it has, so 5 of 10: whatever never
// gets well in it, there are places for others.
type Limiter struct {
	// Most is the bound; 0 or less is none.
	Most int
	// Watch says in which time this process could look; nil: always.
	Watch func() leadership.Watch

	mu      sync.Mutex
	waiting map[types.NamespacedName]wait
	// let are those that may restart, and whose restart the cache does not show yet,
	// with when they were let. On a busy machine the cache is late, and a write that is
	// not seen may have been made all the same: so such a place is held as long as that
	// of a restart, unless a pass of the object finds that it has nothing to restart.
	let map[types.NamespacedName]time.Time
	// served is when a namespace was last let restart something.
	served map[string]time.Time
}

type wait struct {
	since time.Time // when its change was seen
	asked time.Time // when it asked last
}

// Ask asks for the turn of an object whose change was seen at since. restarting are
// the objects whose restarts the cache shows, with when they began. Who restarts
// already need not wait: the edit may be what cures it.
func (t *Limiter) Ask(key types.NamespacedName, since, now time.Time, restarting map[types.NamespacedName]time.Time) Slot {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, already := restarting[key]
	at, let := t.let[key]
	holds := let && t.inTime(at, now)
	if t.Most <= 0 || already || holds {
		delete(t.waiting, key)
		return Slot{Granted: true}
	}
	if t.waiting == nil {
		t.waiting, t.let, t.served = map[types.NamespacedName]wait{}, map[types.NamespacedName]time.Time{}, map[string]time.Time{}
	}
	if let {
		// Its write was refused for as long as a restart holds its place. It has lost
		// that, and waits behind the others: all that were refused must not begin
		// together, and one that is refused for ever must not be first for ever.
		delete(t.let, key)
		since = now
	}
	if before := t.waiting[key].since; before.After(since) {
		since = before
	}
	t.waiting[key] = wait{since, now}
	busy, held := t.busy(now, restarting)
	order := t.order(now, held)
	if !slices.Contains(t.pick(order, busy, held), key) {
		return Slot{busy: busy, most: t.Most, mine: held[key.Namespace], ahead: slices.Index(order, key)}
	}
	delete(t.waiting, key)
	t.let[key], t.served[key.Namespace] = now, now
	return Slot{Granted: true}
}

// inTime reports whether a place that was taken at a time is still held. While the API
// server is away no restart goes on, so that time does not count.
func (t *Limiter) inTime(at, now time.Time) bool {
	var watch leadership.Watch
	if t.Watch != nil {
		watch = t.Watch()
	}
	return watch.Elapsed(at, now) < SlotLimit
}

// busy counts who restarts, and who was just let: all, and by namespace. Of one namespace
// no more than half count, as it is let have no more (pick): who may make StatefulSets there
// can have them say that they restart.
func (t *Limiter) busy(now time.Time, restarting map[types.NamespacedName]time.Time) (n int, held map[string]int) {
	held = map[string]int{}
	for key, at := range t.let {
		if _, seen := restarting[key]; seen {
			delete(t.let, key)
		} else if t.inTime(at, now) {
			held[key.Namespace]++
		}
	}
	for key, began := range restarting {
		if t.inTime(began, now) {
			held[key.Namespace]++
		}
	}
	for _, places := range held {
		n += min(places, (t.Most+1)/2)
	}
	return n, held
}

// order lists who waits, and forgets those that ask no more. Namespaces take turns:
// first comes the one that has the fewest places, and of several the one that was
// served least lately. In each of them the one that waits longest comes first.
func (t *Limiter) order(now time.Time, held map[string]int) []types.NamespacedName {
	keys := make([]types.NamespacedName, 0, len(t.waiting))
	for key, w := range t.waiting {
		if now.Sub(w.asked) > SlotForgotten {
			delete(t.waiting, key)
			continue
		}
		keys = append(keys, key)
	}
	maps.DeleteFunc(t.served, func(_ string, at time.Time) bool { return now.Sub(at) > SlotMemory })
	byAge := func(a, b types.NamespacedName) int {
		return cmp.Or(t.waiting[a].since.Compare(t.waiting[b].since), cmp.Compare(a.String(), b.String()))
	}
	slices.SortFunc(keys, byAge)
	// How many places its namespace would have before it.
	has, rank := maps.Clone(held), make(map[types.NamespacedName]int, len(keys))
	for _, key := range keys {
		rank[key] = has[key.Namespace]
		has[key.Namespace]++
	}
	slices.SortFunc(keys, func(a, b types.NamespacedName) int {
		return cmp.Or(cmp.Compare(rank[a], rank[b]), t.served[a.Namespace].Compare(t.served[b.Namespace]), byAge(a, b))
	})
	return keys
}

// pick lists who may go now, of those that wait in that order.
func (t *Limiter) pick(order []types.NamespacedName, busy int, held map[string]int) (all []types.NamespacedName) {
	held = maps.Clone(held)
	for _, key := range order {
		if free := t.Most - busy - len(all); free <= 0 {
			break
		} else if held[key.Namespace] < free {
			all = append(all, key)
			held[key.Namespace]++
		}
	}
	return all
}

// Next lists who may go now, to be woken.
func (t *Limiter) Next(now time.Time, restarting map[types.NamespacedName]time.Time) []types.NamespacedName {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.waiting) == 0 {
		return nil
	}
	busy, held := t.busy(now, restarting)
	return t.pick(t.order(now, held), busy, held)
}

// Forget takes one off the queue that has nothing to restart, or is gone.
func (t *Limiter) Forget(key types.NamespacedName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.waiting, key)
	delete(t.let, key)
}

// None reports whether none waits.
func (t *Limiter) None() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.waiting) == 0
}
