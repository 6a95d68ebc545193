package enqueue

import (
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Workers returns controller options with the given number of workers, shared fairly between
// namespaces.
func Workers(most int) controller.Options {
	return controller.Options{
		MaxConcurrentReconciles: most,
		RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](50*time.Millisecond, time.Minute),
		NewQueue: func(name string, limiter workqueue.TypedRateLimiter[reconcile.Request]) queue {
			return &fair{most: most, PriorityQueue: priorityqueue.New(name, func(o *priorityqueue.Opts[reconcile.Request]) { o.RateLimiter = limiter })}
		},
	}
}

// fair is a priority queue in which no namespace can block others, however many keys it has and however
// long they take. A namespace gets another worker only while the number of free workers exceeds its own
// number, so at most half of all. Its other keys wait outside of the queue, first in, first out.
type fair struct {
	priorityqueue.PriorityQueue[reconcile.Request]
	most int

	mu      sync.Mutex
	taken   int
	of      map[string]int      // number of workers by namespace
	waiting map[string][]parked // by namespace
	places  map[reconcile.Request]bool
}

// parked is a key that waits for a worker.
type parked struct {
	key      reconcile.Request
	priority int
}

// GetWithPriority waits for a key whose namespace may get a worker.
func (f *fair) GetWithPriority() (reconcile.Request, int, bool) {
	for {
		key, priority, shutdown := f.PriorityQueue.GetWithPriority()
		if shutdown || f.begin(key, priority) {
			return key, priority, shutdown
		}
		f.PriorityQueue.Done(key) // a concurrent Add of the key does no harm
	}
}

// Get is like GetWithPriority, without the priority.
func (f *fair) Get() (reconcile.Request, bool) {
	key, _, shutdown := f.GetWithPriority()
	return key, shutdown
}

// begin assigns a worker to a key and returns true, or parks the key and returns false.
func (f *fair) begin(key reconcile.Request, priority int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.room(key.Namespace) <= 0 {
		if f.waiting == nil {
			f.waiting, f.places = map[string][]parked{}, map[reconcile.Request]bool{}
		}
		if !f.places[key] {
			f.places[key] = true
			f.waiting[key.Namespace] = append(f.waiting[key.Namespace], parked{key, priority})
		}
		return false
	}
	if f.of == nil {
		f.of = map[string]int{}
	}
	f.taken++
	f.of[key.Namespace]++
	return true
}

// room returns how many more workers a namespace may get. The caller holds the lock.
func (f *fair) room(namespace string) int { return f.most - f.taken - f.of[namespace] }

// Done releases the worker of a key, and queues the parked keys that may now get a worker.
func (f *fair) Done(key reconcile.Request) {
	f.PriorityQueue.Done(key)
	for _, p := range f.end(key) {
		f.AddWithOpts(priorityqueue.AddOpts{Priority: ptr.To(p.priority)}, p.key)
	}
}

// end releases the worker of a key, and returns the parked keys that may now get a worker.
func (f *fair) end(key reconcile.Request) (next []parked) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.taken--
	if f.of[key.Namespace]--; f.of[key.Namespace] == 0 {
		delete(f.of, key.Namespace)
	}
	for namespace, line := range f.waiting {
		n := min(len(line), max(0, f.room(namespace)))
		for _, p := range line[:n] {
			delete(f.places, p.key)
		}
		next = append(next, line[:n]...)
		if f.waiting[namespace] = slices.Clip(line[n:]); n == len(line) {
			delete(f.waiting, namespace)
		}
	}
	return next
}
