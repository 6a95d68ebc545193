package extendedstatefulset

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/stateful-operator/stateful-operator/controllers/internal/leadership"
	"github.com/stateful-operator/stateful-operator/controllers/internal/memory"
)

// remembered is what this process remembers of one object from pass to pass. It may be
// lost: it is found out again.
type remembered struct {
	refusal    memory.Refusal
	whyMissing whyMissing
}

// whyMissing remembers why pods are not there that a StatefulSet should have.
type whyMissing struct {
	due  time.Time // when to read the events again; zero while no pod is missing
	next time.Duration
	said map[string]string // by the name of the pod
}

// begin notes that pods are missing.
func (m *whyMissing) begin(now time.Time) {
	if m.due.IsZero() {
		m.due, m.next = now.Add(refusalsFirst), refusalsAgain
	}
}

// learn takes what the events said.
func (m *whyMissing) learn(said map[string]string, now time.Time) {
	m.said, m.due, m.next = said, now.Add(m.next), min(2*m.next, refusalsSeldom)
}

type address struct {
	namespace string
	origin
}

// known is what was made of the contents of one source, of that version. The
// contents themselves are not kept.
type known struct {
	edition
	key     string
	results map[string]result // by the shape of a use
}

type result struct {
	digest  string
	missing []string
}

// So much is remembered of what was read; beyond that it is forgotten, and read again.
const (
	mostRead   = 1 << 16 // sources
	mostShapes = 64      // of one of them
)

// readMemory remembers what was made of the contents of ConfigMaps and Secrets.
type readMemory struct {
	mu  sync.Mutex
	all map[address]*known
}

// find is what was made of an edition of a source with a key; none if it is not known.
func (m *readMemory) find(at address, e edition, key, shape string) (got result, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if k := m.all[at]; k.isOf(e, key) {
		got, ok = k.results[shape]
	}
	return got, ok
}

func (m *readMemory) learn(at address, e edition, key, shape string, got result) {
	m.mu.Lock()
	defer m.mu.Unlock()
	k := m.all[at]
	if !k.isOf(e, key) {
		if m.all == nil || len(m.all) == mostRead {
			m.all = map[address]*known{}
		}
		k = &known{edition: e, key: key, results: map[string]result{}}
		m.all[at] = k
	}
	if len(k.results) == mostShapes {
		clear(k.results)
	}
	k.results[shape] = got
}

func (m *readMemory) forget(at address) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.all, at)
}

// isOf reports whether it is of an edition, and was made with a key.
func (k *known) isOf(e edition, key string) bool { return k != nil && k.edition == e && k.key == key }

// slot says whether an object may begin to restart pods for a change of
// configuration, and how many are before it.
type slot struct {
	granted    bool
	busy, most int
	mine       int // of the busy ones those of its namespace
	ahead      int
}

func (t slot) String() string {
	if t.most == 0 {
		return ""
	}
	mine := ""
	if t.busy < t.most && t.mine >= t.most-t.busy {
		mine = fmt.Sprintf(", %d of them in this namespace, which may have no more while no more are free", t.mine)
	}
	return fmt.Sprintf(": %d of at most %d restart now%s, and %d wait before it", t.busy, t.most, mine, t.ahead)
}

// restartLimiter bounds how many objects restart pods at one time. How many do so is seen in
// their StatefulSets, also after a restart of the operator; what is kept here is who
// waits, and who was let go before the cache shows it.
//
// Namespaces are let go in turn, and each object of a namespace by age. A namespace
// gets another place only while more are free than it has, so 5 of 10: whatever never
// gets well in it, there are places for others.
type restartLimiter struct {
	// most is the bound; 0 or less is none.
	most int
	// watch says in which time this process could look; nil: always.
	watch func() leadership.Watch

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

// ask asks for the turn of an object whose change was seen at since. restarting are
// the objects whose restarts the cache shows, with when they began. Who restarts
// already need not wait: the edit may be what cures it.
func (t *restartLimiter) ask(key types.NamespacedName, since, now time.Time, restarting map[types.NamespacedName]time.Time) slot {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, already := restarting[key]
	at, let := t.let[key]
	holds := let && t.inTime(at, now)
	if t.most <= 0 || already || holds {
		delete(t.waiting, key)
		return slot{granted: true}
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
		return slot{busy: busy, most: t.most, mine: held[key.Namespace], ahead: slices.Index(order, key)}
	}
	delete(t.waiting, key)
	t.let[key], t.served[key.Namespace] = now, now
	return slot{granted: true}
}

// inTime reports whether a place that was taken at a time is still held. While the API
// server is away no restart goes on, so that time does not count.
func (t *restartLimiter) inTime(at, now time.Time) bool {
	var watch leadership.Watch
	if t.watch != nil {
		watch = t.watch()
	}
	return watch.Elapsed(at, now) < slotLimit
}

// busy counts who restarts, and who was just let: all, and by namespace. Of one namespace
// no more than half count, as it is let have no more (pick): who may make StatefulSets there
// can have them say that they restart.
func (t *restartLimiter) busy(now time.Time, restarting map[types.NamespacedName]time.Time) (n int, held map[string]int) {
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
		n += min(places, (t.most+1)/2)
	}
	return n, held
}

// order lists who waits, and forgets those that ask no more. Namespaces take turns:
// first comes the one that has the fewest places, and of several the one that was
// served least lately. In each of them the one that waits longest comes first.
func (t *restartLimiter) order(now time.Time, held map[string]int) []types.NamespacedName {
	keys := make([]types.NamespacedName, 0, len(t.waiting))
	for key, w := range t.waiting {
		if now.Sub(w.asked) > slotForgotten {
			delete(t.waiting, key)
			continue
		}
		keys = append(keys, key)
	}
	maps.DeleteFunc(t.served, func(_ string, at time.Time) bool { return now.Sub(at) > slotMemory })
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
func (t *restartLimiter) pick(order []types.NamespacedName, busy int, held map[string]int) (all []types.NamespacedName) {
	held = maps.Clone(held)
	for _, key := range order {
		if free := t.most - busy - len(all); free <= 0 {
			break
		} else if held[key.Namespace] < free {
			all = append(all, key)
			held[key.Namespace]++
		}
	}
	return all
}

// next lists who may go now, to be woken.
func (t *restartLimiter) next(now time.Time, restarting map[types.NamespacedName]time.Time) []types.NamespacedName {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.waiting) == 0 {
		return nil
	}
	busy, held := t.busy(now, restarting)
	return t.pick(t.order(now, held), busy, held)
}

// forget takes one off the queue that has nothing to restart, or is gone.
func (t *restartLimiter) forget(key types.NamespacedName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.waiting, key)
	delete(t.let, key)
}

// none reports whether none waits.
func (t *restartLimiter) none() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.waiting) == 0
}
