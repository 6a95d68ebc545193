package extendedstatefulset

import (
	"fmt"
	"maps"
	"slices"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
)

// cleanUp deletes StatefulSets: of zones that were taken off the spec, and once an
// upgrade is over of all versions but the one that serves. Those have given back
// all their pods before. Claims stay.
func cleanUp(w *world, p *plan) {
	var gone []action.Chain
	remove := func(a action.Action) {
		a.Verb = action.Delete
		gone = append(gone, action.Chain{a})
	}
	for _, c := range w.children {
		switch {
		case c.terminating():
		case !w.wanted(c.zone) && zoneMayGo(w):
			remove(action.Action{Object: c.set, Reason: reasonZoneGone})
		case !w.wanted(c.zone):
			p.waitFor("another zone serves all its replicas")
		case !over(w.record, c.version) || !c.empty():
		case !c.observed():
			p.waitFor(fmt.Sprintf("StatefulSet %s is observed by its controller", c.set.Name))
		default:
			remove(action.Action{Object: c.set, Reason: reasonOld})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(w.jobs)) {
		job := w.jobs[name]
		if w.record.Phase == v1alpha1.PhaseStable && versionOfJob(job) < w.record.CurrentVersion && job.DeletionTimestamp == nil {
			remove(action.Action{Object: job, Reason: reasonOld})
		}
	}
	p.Then(gone...)
}

// over reports whether nothing will be asked of a version any more: one below that
// which serves, or once an upgrade is over any other.
func over(s *v1alpha1.ExtendedStatefulSetStatus, number int64) bool {
	switch {
	case number == s.CurrentVersion:
		return false
	case s.Update != nil && number == s.UpdateVersion:
		return false
	case number < s.CurrentVersion:
		return true
	}
	return s.Phase == v1alpha1.PhaseCleaningUp
}

// zoneMayGo reports whether a zone that is wanted serves all that it has to: one pod of
// it is not yet what the zone that goes has served.
func zoneMayGo(w *world) bool {
	return slices.ContainsFunc(w.zones, func(z zone) bool {
		c := w.children.find(z.index, w.record.CurrentVersion)
		return c != nil && w.serving(c) == w.replicas
	})
}
