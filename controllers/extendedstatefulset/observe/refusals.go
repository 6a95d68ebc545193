package observe

import (
	"context"
	"slices"

	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/internal/causes"
)

// readRefusals determines why pods are missing. Only the StatefulSet controller gets the error of the
// API server, and it reports the error only in an event of the StatefulSet. Of all rules, only
// deleteSurplus depends on the result, so a failed read blocks no other rule; the failure is reported as
// the reason.
func (r *Reader) readRefusals(ctx context.Context, w *facts.World) {
	why := &r.Of(w.Set).whyMissing
	if w.Set.DeletionTimestamp != nil || !slices.ContainsFunc(w.Children, (*facts.Child).LacksPods) {
		*why = whyMissing{}
		return
	}
	if why.Begin(w.Now); !w.Now.Before(why.Due) {
		why.Learn(r.refusalsInEvents(ctx, w), w.Now)
	}
	w.Refusals, w.RefusalsDue = why.Result, why.Due
}

// refusalsInEvents reads the events of the StatefulSets that lack pods. It returns the reasons by pod
// name. An entry with the name of a StatefulSet applies to all its pods.
func (r *Reader) refusalsInEvents(ctx context.Context, w *facts.World) map[string]string {
	reasons := map[string]string{}
	for _, c := range w.Children {
		if !c.LacksPods() {
			continue
		}
		events, err := causes.ReadEvents(ctx, r.Live, w.Set.Namespace, "StatefulSet", c.Set.UID)
		if err != nil {
			reasons[c.Set.Name] = "it is missing, and the events with the reason cannot be read: " + err.Error()
		}
		for pod, why := range causes.RefusalsIn(events, c.Lacks) {
			reasons[pod] = "it cannot be created: " + why
		}
	}
	return reasons
}
