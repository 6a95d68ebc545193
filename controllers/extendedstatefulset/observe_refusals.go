package extendedstatefulset

import (
	"context"
	"maps"
	"slices"
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
	// refusalsAgain is when it is asked again, each time after twice as long up to
	// refusalsSeldom. Nothing that is watched tells that a pod was refused.
	refusalsAgain  = 5 * time.Second
	refusalsSeldom = time.Minute
	// refusalsAtOnce is how many events of a StatefulSet are read: anybody may write some.
	refusalsAtOnce = 500
)

// refusals remembers why pods are not there that a StatefulSet should have. It may be
// lost: it is asked again then.
type refusals struct {
	mu    sync.Mutex
	known map[types.NamespacedName]answer
}

// answer is what the events of the StatefulSets of one object said.
type answer struct {
	set  types.UID // whose
	due  time.Time // when to ask again
	next time.Duration
	said map[string]string // by the name of the pod
}

// readRefusals finds out why pods are not there that should be. Only the StatefulSet
// controller is told, and it says so in an event of the StatefulSet and nowhere else.
// Nothing is decided by it, so nothing waits for it: if it cannot be read, that is said.
func (r *Reconciler) readRefusals(ctx context.Context, w *world) {
	key := client.ObjectKeyFromObject(w.set)
	if w.set.DeletionTimestamp != nil || !slices.ContainsFunc(w.children, (*child).lacksPods) {
		r.refusals.forget(key)
		return
	}
	known, due := r.refusals.of(key, w.set.UID, w.now)
	if due {
		known.said = r.askRefusals(ctx, w)
		known.due, known.next = w.now.Add(known.next), min(2*known.next, refusalsSeldom)
		r.refusals.learn(key, known)
	}
	w.refusals, w.refusalsDue = known.said, known.due
}

// askRefusals reads the events of the StatefulSets that lack pods. What is said by
// the name of a StatefulSet is of all its pods.
func (r *Reconciler) askRefusals(ctx context.Context, w *world) map[string]string {
	said := map[string]string{}
	for _, c := range w.children {
		if !c.lacksPods() {
			continue
		}
		var events corev1.EventList
		of := client.MatchingFields{"involvedObject.kind": "StatefulSet", "involvedObject.uid": string(c.set.UID)}
		if err := r.Live.List(ctx, &events, client.InNamespace(w.set.Namespace), of, client.Limit(refusalsAtOnce)); err != nil {
			said[c.set.Name] = "it is not there, and the events that say why cannot be read: " + err.Error()
		}
		maps.Copy(said, refusalsIn(events.Items, c.lacks))
	}
	return said
}

// of is what is known, and whether it is time to ask again.
func (r *refusals) of(key types.NamespacedName, set types.UID, now time.Time) (answer, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	known, ok := r.known[key]
	if !ok || known.set != set {
		if r.known == nil {
			r.known = map[types.NamespacedName]answer{}
		}
		known = answer{set: set, due: now.Add(refusalsFirst), next: refusalsAgain}
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
