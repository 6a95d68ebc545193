package replicatedstatefulset

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// +kubebuilder:rbac:groups="",namespace=system,roleName=own-namespace-role,resources=configmaps,resourceNames=stateful-operator-evictions,verbs=list;watch

// The book is one ConfigMap in the operator's own namespace, by which the webhooks tell the
// controllers which primaries were to be evicted: a key for each UID of a pod. What it says is
// no order. The rules of a switchover hold, and where it is not there, or cannot be read, a
// primary is kept by its budget as ever.

// entry is what the book says of a pod.
type entry struct {
	Namespace string `json:"namespace"`
	Pod       string `json:"pod"`
	// Set is the ReplicatedStatefulSet of the pod.
	Set string `json:"set,omitempty"`
	// At is when its eviction was asked for last, and By who asked; for people who look.
	At time.Time `json:"at"`
	By string    `json:"by"`
}

// isWithin reports whether the entry is of that time, by clocks that differ.
func (e entry) isWithin(period time.Duration, now time.Time) bool {
	return now.Sub(e.At).Abs() < period
}

// entriesOf reads a book, and leaves out what is no entry.
func entriesOf(data map[string]string) map[types.UID]entry {
	entries := make(map[types.UID]entry, len(data))
	for uid, text := range data {
		var e entry
		if json.Unmarshal([]byte(text), &e) == nil {
			entries[types.UID(uid)] = e
		}
	}
	return entries
}

// evictionBook is what the controllers know of the book. The zero value is an empty one.
type evictionBook struct {
	mu      sync.Mutex
	entries map[types.UID]entry
	// queue is there while this process leads.
	queue workqueue.TypedRateLimitingInterface[reconcile.Request]
}

// askedAt is when the eviction of a pod was asked for; zero if the book does not say.
func (b *evictionBook) askedAt(pod types.UID) time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.entries[pod].At
}

// learn reads the book. It returns what is new in it, and the queue of who is to be woken.
func (b *evictionBook) learn(data map[string]string) (map[types.UID]bool, workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	entries, news := entriesOf(data), map[types.UID]bool{}
	b.mu.Lock()
	defer b.mu.Unlock()
	for uid, now := range entries {
		if !now.At.Equal(b.entries[uid].At) {
			news[uid] = true
		}
	}
	b.entries = entries
	return news, b.queue
}

// lead keeps the queue of the controller, which has one when it leads.
func (b *evictionBook) lead(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.queue = queue
	return nil
}

// onBook wakes the sets with pods of which the book says something new. All are looked at
// when a process begins to lead.
func (r *Reconciler) onBook(ctx context.Context, book *corev1.ConfigMap) {
	news, queue := r.book.learn(book.Data)
	if queue == nil || len(news) == 0 {
		return
	}
	for _, request := range r.setsOf(ctx, func(p *corev1.Pod) bool { return news[p.UID] }) {
		queue.Add(request)
	}
}
