package extendedstatefulset

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
)

// cleanUp deletes StatefulSets: of zones that were taken off the spec, and once an
// upgrade is over of all versions but the one that serves. Those have given back
// all their pods before. Claims stay.
func cleanUp(w *world, p *plan) {
	var gone []action.Chain
	for _, c := range w.children {
		switch {
		case c.going():
		case !w.wanted(c.zone):
			if w.zoneMayGo() {
				gone = append(gone, action.Chain{{Verb: action.Delete, Object: c.set, Reason: reasonZoneGone}})
			} else {
				p.WaitFor("", "another zone serves all its replicas")
			}
		case !w.over(c) || c.span().replicas > 0 || len(c.pods) > 0:
		case c.set.Status.ObservedGeneration < c.set.Generation: // it may be about to make a pod that it shall not have
			p.WaitFor("", fmt.Sprintf("StatefulSet %s is observed by its controller", c.set.Name))
		default:
			gone = append(gone, action.Chain{{Verb: action.Delete, Object: c.set, Reason: reasonOld}})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(w.jobs)) {
		job := w.jobs[name]
		number, _ := strconv.ParseInt(job.Labels[v1alpha1.LabelVersion], 10, 64)
		if w.books.Phase == v1alpha1.PhaseStable && number < w.books.CurrentVersion && job.DeletionTimestamp == nil {
			gone = append(gone, action.Chain{{Verb: action.Delete, Object: job, Reason: reasonOld}})
		}
	}
	p.Then(gone...)
}

// over tells whether nothing will be asked of a version any more: one below that
// which serves, or once an upgrade is over any other.
func (w *world) over(c *child) bool {
	if w.books.Update != nil && c.version == w.books.UpdateVersion || c.version == w.books.CurrentVersion {
		return false
	}
	return c.version < w.books.CurrentVersion || w.books.Phase == v1alpha1.PhaseCleaningUp
}

// zoneMayGo tells whether a zone that is wanted serves all that it shall: one pod of
// it is not yet what the zone that goes has served.
func (w *world) zoneMayGo() bool {
	return slices.ContainsFunc(w.zones, func(z zone) bool {
		c := w.child(z.index, w.books.CurrentVersion)
		return c != nil && w.serving(c, w.replicas) == w.replicas
	})
}
