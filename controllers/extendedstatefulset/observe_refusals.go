package extendedstatefulset

import (
	"context"
	"slices"

	"github.com/stateful-operator/stateful-operator/controllers/internal/causes"
)

// readRefusals determines why pods are missing. Only the StatefulSet controller gets the error, and it
// reports the error only in an event of the StatefulSet. Only the deletion of surplus pods depends on
// the result, so a failed read blocks nothing; the failure is reported as the reason.
func (r *reader) readRefusals(ctx context.Context, w *world) {
	why := &r.of(w.set).whyMissing
	if w.set.DeletionTimestamp != nil || !slices.ContainsFunc(w.children, (*child).lacksPods) {
		*why = whyMissing{}
		return
	}
	if why.Begin(w.now); !w.now.Before(why.Due) {
		why.Learn(r.askRefusals(ctx, w), w.now)
	}
	w.refusals, w.refusalsDue = why.Said, why.Due
}

// askRefusals reads the events of the StatefulSets that lack pods. An entry with the name of a
// StatefulSet applies to all its pods.
func (r *reader) askRefusals(ctx context.Context, w *world) map[string]string {
	said := map[string]string{}
	for _, c := range w.children {
		if !c.lacksPods() {
			continue
		}
		events, err := causes.ReadEvents(ctx, r.live, w.set.Namespace, "StatefulSet", c.set.UID)
		if err != nil {
			said[c.set.Name] = "it is missing, and the events with the reason cannot be read: " + err.Error()
		}
		for pod, why := range causes.RefusalsIn(events, c.lacks) {
			said[pod] = "it cannot be created: " + why
		}
	}
	return said
}
