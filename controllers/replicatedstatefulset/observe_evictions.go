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

// The eviction book is one ConfigMap in the operator's own namespace. With it the webhooks notify
// the controllers of primaries whose eviction was requested. It has one key for each pod UID. An
// entry is not a command: all preconditions of a switchover apply. If the ConfigMap is missing or
// cannot be read, the budget still protects the primary.

// entry is the eviction book's entry for a pod.
type entry struct {
	Namespace string `json:"namespace"`
	Pod       string `json:"pod"`
	// Set is the ReplicatedStatefulSet of the pod.
	Set string `json:"set,omitempty"`
	// At is when the eviction was last requested. By is the requester, for administrators.
	At time.Time `json:"at"`
	By string    `json:"by"`
}

// isWithin reports whether the entry is younger than the period. It tolerates clock skew.
func (e entry) isWithin(period time.Duration, now time.Time) bool {
	return now.Sub(e.At).Abs() < period
}

// entriesOf parses a book. It skips invalid entries.
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

// evictionBook is the controllers' copy of the eviction book. The zero value is empty.
type evictionBook struct {
	mu      sync.Mutex
	entries map[types.UID]entry
	// queue is set while this process leads.
	queue workqueue.TypedRateLimitingInterface[reconcile.Request]
}

// askedAt returns when the eviction of the pod was requested. It returns zero if the book has no
// entry.
func (b *evictionBook) askedAt(pod types.UID) time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.entries[pod].At
}

// learn stores the entries of the book. It returns the new ones, and the queue for the sets to
// reconcile.
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

// lead stores the queue of the controller, which exists once this process leads.
func (b *evictionBook) lead(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.queue = queue
	return nil
}

// onBook requeues the sets that have pods with new entries in the book. When a process begins to
// lead, all sets are reconciled anyway.
func (r *reader) onBook(ctx context.Context, book *corev1.ConfigMap) {
	news, queue := r.book.learn(book.Data)
	if queue == nil || len(news) == 0 {
		return
	}
	for _, request := range r.setsOf(ctx, func(p *corev1.Pod) bool { return news[p.UID] }) {
		queue.Add(request)
	}
}
