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

// Durations of restart slots.
const (
	// SlotLimit is the max time that a restart holds its slot. If a restart hangs because a pod is
	// never Ready, others can continue after that. Each StatefulSet stops at its first pod that is not
	// Ready, so a bad edit affects one pod of each.
	SlotLimit = 10 * time.Minute
	// SlotRetry is the requeue delay of a waiting object.
	SlotRetry = 15 * time.Second
	// SlotForgotten is when a waiting object that no longer asks is removed from the queue.
	SlotForgotten = 4 * SlotRetry
	// SlotMemory is how long the last grant of a namespace is remembered.
	SlotMemory = time.Hour
)

// Slot is the response to a request to restart pods after a change of configuration. If the slot is not
// granted, it contains the position in the queue.
type Slot struct {
	Granted    bool
	busy, most int // slots that are taken, and the max
	mine       int // taken slots of the same namespace
	ahead      int // objects that get a slot earlier
}

// String describes why the slot is not granted; "" if it is, or if there is no limit.
func (t Slot) String() string {
	if t.most == 0 {
		return ""
	}
	mine := ""
	if t.busy < t.most && t.mine >= t.most-t.busy {
		mine = fmt.Sprintf(", %d of them in this namespace, which has reached its current share", t.mine)
	}
	return fmt.Sprintf(": %d of at most %d restarts are in progress%s, and %d are ahead of it", t.busy, t.most, mine, t.ahead)
}

// Limiter limits how many objects restart pods concurrently. The active restarts are derived from the
// StatefulSets, also after a restart of the operator. The Limiter itself stores only which objects
// wait, and which slots were granted but are not visible in the cache yet.
//
// Namespaces take turns, and the objects of a namespace are ordered by waiting time. A namespace gets
// another slot only while the number of free slots exceeds its own number, so at most 5 of 10. Restarts
// that never complete in one namespace thus leave slots for others.
type Limiter struct {
	// Most is the max number of concurrent restarts; 0 or less means no limit.
	Most int
	// Watch returns when this process was able to observe the cluster; nil means always.
	Watch func() leadership.Watch

	mu      sync.Mutex
	waiting map[types.NamespacedName]wait
	// granted contains the granted slots whose restarts are not visible in the cache yet, with the time
	// of the grant. On a busy machine the cache can be late, and a write may have succeeded even if it is
	// not visible. So such a slot is held for SlotLimit, unless a later pass of the object finds
	// nothing to restart.
	granted map[types.NamespacedName]time.Time
	// served is when a namespace last got a slot.
	served map[string]time.Time
}

// wait is the record of a waiting object.
type wait struct {
	since time.Time // when the change was detected
	asked time.Time // time of the last request
}

// Ask requests a slot for an object whose change was detected at since. restarting contains the objects
// whose restarts are visible in the cache, with their start times. An object that is already restarting
// need not wait, because the edit may fix its problem.
func (t *Limiter) Ask(key types.NamespacedName, since, now time.Time, restarting map[types.NamespacedName]time.Time) Slot {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, already := restarting[key]
	at, granted := t.granted[key]
	holds := granted && t.inTime(at, now)
	if t.Most <= 0 || already || holds {
		delete(t.waiting, key)
		return Slot{Granted: true}
	}
	if t.waiting == nil {
		t.waiting, t.granted, t.served = map[types.NamespacedName]wait{}, map[types.NamespacedName]time.Time{}, map[string]time.Time{}
	}
	if granted {
		// Its write was rejected until the slot expired, so it moves to the end of the queue. Otherwise
		// all rejected objects could start together, and one that is always rejected would always be
		// first.
		delete(t.granted, key)
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
	t.granted[key], t.served[key.Namespace] = now, now
	return Slot{Granted: true}
}

// inTime reports whether a slot that was taken at the given time is still held. The time during which
// the API server is unreachable does not count, because restarts do not progress then.
func (t *Limiter) inTime(at, now time.Time) bool {
	var watch leadership.Watch
	if t.Watch != nil {
		watch = t.Watch()
	}
	return watch.Elapsed(at, now) < SlotLimit
}

// busy counts the active restarts and the granted slots, in total and by namespace. At most half of all
// slots are counted for one namespace, because pick grants no more. This matters because any user who
// can create StatefulSets can make them look as if they were restarting.
func (t *Limiter) busy(now time.Time, restarting map[types.NamespacedName]time.Time) (n int, held map[string]int) {
	held = map[string]int{}
	for key, at := range t.granted {
		if _, visible := restarting[key]; visible {
			delete(t.granted, key)
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

// order returns the waiting objects in the order of their turns, and removes those that no longer ask.
// First is the namespace with the fewest slots, then the one that was served least recently. Within a
// namespace, the longest waiting object is first.
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
	// rank is the number of slots of the namespace when all earlier waiting objects of it have one.
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

// pick returns the objects that can get a slot now, in the given order. held is the number of slots of
// each namespace, and busy their total.
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

// Next returns the objects that can get a slot now, to requeue them.
func (t *Limiter) Next(now time.Time, restarting map[types.NamespacedName]time.Time) []types.NamespacedName {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.waiting) == 0 {
		return nil
	}
	busy, held := t.busy(now, restarting)
	return t.pick(t.order(now, held), busy, held)
}

// Forget removes an object that has nothing to restart or was deleted.
func (t *Limiter) Forget(key types.NamespacedName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.waiting, key)
	delete(t.granted, key)
}

// None reports whether no object is waiting.
func (t *Limiter) None() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.waiting) == 0
}
