package extendedstatefulset

import (
	"fmt"
	"maps"
	"slices"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
)

// cleanUp deletes StatefulSets of zones that were removed from the spec. After an upgrade it also
// deletes the StatefulSets of all versions except the current one, once they have no pods. Claims are
// kept.
func cleanUp(f *facts, p *plan) {
	var gone []action.Chain
	remove := func(a action.Action) {
		a.Verb = action.Delete
		gone = append(gone, action.Chain{a})
	}
	for _, c := range f.children {
		switch {
		case c.terminating():
		case !f.wanted(c.zone) && zoneMayGo(f):
			remove(action.Action{Object: c.set, Reason: reasonZoneGone})
		case !f.wanted(c.zone):
			p.waitFor("another zone serves all its replicas")
		case !over(f.record, c.version) || !c.empty():
		case !c.observed():
			p.waitFor(fmt.Sprintf("StatefulSet %s is observed by its controller", c.set.Name))
		default:
			remove(action.Action{Object: c.set, Reason: reasonOld})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(f.jobs)) {
		job := f.jobs[name]
		if f.record.Phase == v1alpha1.PhaseStable && versionOfJob(job) < f.record.CurrentVersion && job.DeletionTimestamp == nil {
			remove(action.Action{Object: job, Reason: reasonOld})
		}
	}
	p.Then(gone...)
}

// over reports whether a version is no longer needed: it is older than the current version, or the
// upgrade is complete and it is any other version.
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

// zoneMayGo reports whether a removed zone may be deleted: at least one wanted zone serves all its
// replicas. A single pod of a wanted zone cannot replace the removed zone.
func zoneMayGo(f *facts) bool {
	return slices.ContainsFunc(f.zones, func(z zone) bool {
		c := f.children.find(z.index, f.record.CurrentVersion)
		return c != nil && f.serving(c) == f.replicas
	})
}
