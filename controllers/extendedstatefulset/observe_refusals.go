package extendedstatefulset

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// refusalsFirst is how long pods have to be missing before it is asked why: mostly
	// they come at once.
	refusalsFirst = time.Second
	// refusalsAgain is when it is asked again. No event of ours tells that a pod was
	// refused.
	refusalsAgain = 5 * time.Second
)

// refusals remembers why pods are not there that a StatefulSet should have. It may be
// lost: it is asked again then.
type refusals struct {
	mu    sync.Mutex
	known map[types.NamespacedName]answer
}

// answer is what the events of the StatefulSets of one object said.
type answer struct {
	due  time.Time // when to ask again
	said map[string]string
}

// readRefusals finds out why pods are not there that should be. Only the StatefulSet
// controller is told, and it says so in an event of the StatefulSet and nowhere else.
func (r *Reconciler) readRefusals(ctx context.Context, w *world) error {
	key := client.ObjectKeyFromObject(w.set)
	absent := w.absentees(0)
	if len(absent) == 0 || w.set.DeletionTimestamp != nil {
		r.refusals.forget(key)
		return nil
	}
	known, due := r.refusals.of(key, w.now)
	if due {
		said := map[string]string{}
		for _, c := range w.children {
			var events corev1.EventList
			of := client.MatchingFields{"involvedObject.kind": "StatefulSet", "involvedObject.uid": string(c.set.UID)}
			if err := r.Live.List(ctx, &events, client.InNamespace(w.set.Namespace), of); err != nil {
				return fmt.Errorf("list the events of StatefulSet %s: %w", c.set.Name, err)
			}
			for pod, why := range refusalsIn(events.Items, absent) {
				said[pod] = why
			}
		}
		known = answer{w.now.Add(refusalsAgain), said}
		r.refusals.learn(key, known)
	}
	w.refusals, w.refusalsDue = known.said, known.due
	return nil
}

// of is what is known, and whether it is time to ask again.
func (r *refusals) of(key types.NamespacedName, now time.Time) (answer, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	known, ok := r.known[key]
	if !ok {
		if r.known == nil {
			r.known = map[types.NamespacedName]answer{}
		}
		known = answer{due: now.Add(refusalsFirst)}
		r.known[key] = known
	}
	return known, !now.Before(known.due)
}

func (r *refusals) learn(key types.NamespacedName, now answer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.known[key] = now
}

func (r *refusals) forget(key types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.known, key)
}
