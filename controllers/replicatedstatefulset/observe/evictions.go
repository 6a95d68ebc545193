package observe

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/facts"
)

// +kubebuilder:rbac:groups="",namespace=system,roleName=own-namespace-role,resources=configmaps,resourceNames=stateful-operator-evictions,verbs=list;watch

// The eviction book is one ConfigMap in the operator's own namespace. With it the webhooks notify
// the controllers of primaries whose eviction was requested. It has one key for each pod UID. An
// entry does not force a handover: all preconditions of a switchover apply. If the ConfigMap is
// missing or cannot be read, the budget still protects the primary.

// RequestedAt returns when the eviction of the pod was requested. It returns zero if the book has
// no entry.
func (b *EvictionBook) RequestedAt(pod types.UID) time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Entries[pod].At
}

// Learn stores the entries of the book. It returns the new ones, and the queue for the sets to
// reconcile.
func (b *EvictionBook) Learn(data map[string]string) (map[types.UID]bool, workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	entries, isNew := facts.EntriesOf(data), map[types.UID]bool{}
	b.mu.Lock()
	defer b.mu.Unlock()
	for uid, now := range entries {
		if !now.At.Equal(b.Entries[uid].At) {
			isNew[uid] = true
		}
	}
	b.Entries = entries
	return isNew, b.queue
}

// Lead stores the queue of the controller, which exists once this process leads.
func (b *EvictionBook) Lead(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.queue = queue
	return nil
}

// OnBook requeues the sets that have pods with new entries in the book. When a process begins to
// lead, all sets are reconciled anyway.
func (r *Reader) OnBook(ctx context.Context, book *corev1.ConfigMap) {
	isNew, queue := r.Book.Learn(book.Data)
	if queue == nil || len(isNew) == 0 {
		return
	}
	for _, request := range r.setsOf(ctx, func(p *corev1.Pod) bool { return isNew[p.UID] }) {
		queue.Add(request)
	}
}
