package extendedstatefulset

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/causes"
	"github.com/stateful-operator/stateful-operator/controllers/internal/memory"
	"github.com/stateful-operator/stateful-operator/controllers/internal/undone"
)

// remembered is the state that this process keeps for one object between passes. It may be lost,
// because it can be determined again.
type remembered struct {
	refusal    memory.Refusal
	undone     undone.Memory
	whyMissing whyMissing
	causes     causes.Known
	// jobsMissing maps the UID of each missing recorded Job to the time when it was first missing.
	jobsMissing map[types.UID]time.Time
}

// of returns the memory of an object.
func (r *reader) of(set *v1alpha1.ExtendedStatefulSet) *remembered {
	known, _ := r.memory.Get(client.ObjectKeyFromObject(set), set.UID)
	return known
}

// forget drops the state that is kept for a deleted object.
func (r *reader) forget(ctx context.Context, key types.NamespacedName) {
	r.memory.Forget(key)
	r.ends.Forget(key)
	if r.config != nil {
		r.config.forget(ctx, key)
	}
	if r.board != nil {
		r.board.Keep(key)
	}
}

// keepBoard removes pods that no longer exist from the Board.
func (r *reader) keepBoard(w *world) {
	if r.board == nil {
		return
	}
	uids := make([]types.UID, 0, len(w.probes))
	for uid := range w.probes {
		uids = append(uids, uid)
	}
	r.board.Keep(client.ObjectKeyFromObject(w.set), uids...)
}

// whyMissing has the reasons why pods of a StatefulSet are missing, by pod name.
type whyMissing = causes.Turns[map[string]string]
