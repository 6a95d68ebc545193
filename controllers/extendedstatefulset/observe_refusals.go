package extendedstatefulset

import (
	"context"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stateful-operator/stateful-operator/controllers/internal/excerpt"
)

// refusalsAtMost is how many events of a StatefulSet are read, and refusalsAtOnce how many
// at one time: anyone may write some, each of a megabyte.
const (
	refusalsAtMost = 500
	refusalsAtOnce = 20
)

// readRefusals finds out why pods are not there that should be. Only the StatefulSet
// controller is told, and it says so in an event of the StatefulSet and nowhere else.
// Nothing is decided by it, so nothing waits for it: if it cannot be read, that is said.
func (r *Reconciler) readRefusals(ctx context.Context, w *world) {
	known, _ := r.memory.Get(client.ObjectKeyFromObject(w.set), w.set.UID)
	why := &known.whyMissing
	if w.set.DeletionTimestamp != nil || !slices.ContainsFunc(w.children, (*child).lacksPods) {
		*why = whyMissing{}
		return
	}
	if why.begin(w.now); !w.now.Before(why.due) {
		why.learn(r.askRefusals(ctx, w), w.now)
	}
	w.refusals, w.refusalsDue = why.said, why.due
}

// askRefusals reads the events of the StatefulSets that lack pods. What is said by
// the name of a StatefulSet is of all its pods.
func (r *Reconciler) askRefusals(ctx context.Context, w *world) map[string]string {
	said := map[string]string{}
	for _, c := range w.children {
		if !c.lacksPods() {
			continue
		}
		events, err := r.readEvents(ctx, w, c.set.UID)
		if err != nil {
			said[c.set.Name] = "it is not there, and the events that say why cannot be read: " + err.Error()
		}
		maps.Copy(said, refusalsIn(events, c.lacks))
	}
	return said
}

// readEvents reads the events of a StatefulSet, few at one time, and keeps of each what
// refusals are found in.
func (r *Reconciler) readEvents(ctx context.Context, w *world, set types.UID) ([]corev1.Event, error) {
	of := client.MatchingFields{"involvedObject.kind": "StatefulSet", "involvedObject.uid": string(set)}
	var kept []corev1.Event
	for next := ""; len(kept) < refusalsAtMost; {
		var page corev1.EventList
		if err := r.Live.List(ctx, &page, client.InNamespace(w.set.Namespace), of, client.Limit(refusalsAtOnce), client.Continue(next)); err != nil {
			return kept, err
		}
		for i := range page.Items {
			e := &page.Items[i]
			kept = append(kept, corev1.Event{
				Reason: e.Reason, Message: excerpt.Message(e.Message), Series: e.Series, LastTimestamp: e.LastTimestamp, EventTime: e.EventTime,
			})
		}
		if next = page.Continue; next == "" {
			break
		}
	}
	return kept, nil
}
