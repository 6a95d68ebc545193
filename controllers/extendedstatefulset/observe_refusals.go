package extendedstatefulset

import (
	"context"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// refusalsAtOnce is how many events of a StatefulSet are read: anyone may write some.
const refusalsAtOnce = 500

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
		var events corev1.EventList
		of := client.MatchingFields{"involvedObject.kind": "StatefulSet", "involvedObject.uid": string(c.set.UID)}
		if err := r.Live.List(ctx, &events, client.InNamespace(w.set.Namespace), of, client.Limit(refusalsAtOnce)); err != nil {
			said[c.set.Name] = "it is not there, and the events that say why cannot be read: " + err.Error()
		}
		maps.Copy(said, refusalsIn(events.Items, c.lacks))
	}
	return said
}
