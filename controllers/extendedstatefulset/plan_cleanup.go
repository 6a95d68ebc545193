package extendedstatefulset

import (
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
				p.waitFor("the other zones serve")
			}
		case w.over(c) && c.span().replicas == 0 && len(c.pods) == 0:
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
	p.then(gone...)
}

// over tells whether nothing will be asked of a version any more: one below that
// which serves, or once an upgrade is over any other.
func (w *world) over(c *child) bool {
	if w.books.Update != nil && c.version == w.books.UpdateVersion || c.version == w.books.CurrentVersion {
		return false
	}
	return c.version < w.books.CurrentVersion || w.books.Phase == v1alpha1.PhaseCleaningUp
}

// zoneMayGo tells whether what a zone served is served elsewhere: by a zone that
// was there before too, or by all of the new ones.
func (w *world) zoneMayGo() bool {
	for _, z := range w.zones {
		if c := w.child(z.index, w.books.CurrentVersion); c != nil && c.anyReady() && z.index != noZone {
			return true
		}
	}
	for _, z := range w.zones {
		if c := w.child(z.index, w.books.CurrentVersion); c == nil || w.serving(c, w.replicas) < w.replicas {
			return false
		}
	}
	return true
}
