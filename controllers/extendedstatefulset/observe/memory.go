package observe

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/internal/causes"
	"github.com/stateful-operator/stateful-operator/controllers/internal/decisions"
	"github.com/stateful-operator/stateful-operator/controllers/internal/memory"
	"github.com/stateful-operator/stateful-operator/controllers/internal/undone"
)

// Remembered is the state that this process keeps for one object between passes. It may be lost,
// because it can be determined again.
type Remembered struct {
	Refusal memory.Refusal
	Undone  undone.Memory
	// Decisions are those that the status does not have yet.
	Decisions  decisions.Buffer
	whyMissing whyMissing
	causes     causes.Known
	// jobsMissing maps the UID of each missing recorded Job to the time when it was first missing.
	jobsMissing map[types.UID]time.Time
}

// whyMissing has the reasons why pods of a StatefulSet are missing, by pod name.
type whyMissing = causes.Turns[map[string]string]

// Of returns the state that is remembered for an object. Callers may change it.
func (r *Reader) Of(set *v1alpha1.ExtendedStatefulSet) *Remembered {
	remembered, _ := r.memory.Get(client.ObjectKeyFromObject(set), set.UID)
	return remembered
}

// Forget drops the state that is kept for a deleted object.
func (r *Reader) Forget(ctx context.Context, key types.NamespacedName) {
	r.memory.Forget(key)
	r.Ends.Forget(key)
	if r.Config != nil {
		r.Config.forget(ctx, key)
	}
	if r.Board != nil {
		r.Board.Keep(key)
	}
}

// KeepBoard drops the command results of pods that no longer exist from the Board.
func (r *Reader) KeepBoard(w *facts.World) {
	if r.Board == nil {
		return
	}
	uids := make([]types.UID, 0, len(w.Probes))
	for uid := range w.Probes {
		uids = append(uids, uid)
	}
	r.Board.Keep(client.ObjectKeyFromObject(w.Set), uids...)
}
