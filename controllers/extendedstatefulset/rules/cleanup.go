package rules

import (
	"fmt"
	"maps"
	"slices"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/children"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
)

// cleanUp deletes StatefulSets of zones that were removed from the spec. After an upgrade it also
// deletes the StatefulSets of all versions except the current one, once they have no pods, and the Jobs
// of earlier versions. Claims are kept.
func cleanUp(f *facts.Facts, p *Plan) {
	var deletions []action.Chain
	remove := func(a action.Action) {
		a.Verb = action.Delete
		deletions = append(deletions, action.Chain{a})
	}
	for _, c := range f.Children {
		switch {
		case c.Terminating():
		case !f.Wanted(c.Zone) && zoneMayGo(f):
			remove(action.Action{Object: c.Set, Reason: ReasonZoneGone})
		case !f.Wanted(c.Zone):
			p.waitFor("another zone serves all its replicas")
		case !isObsolete(f.Record, c.Version) || !c.Empty():
		case !c.Observed():
			p.waitFor(fmt.Sprintf("StatefulSet %s is observed by its controller", c.Set.Name))
		default:
			remove(action.Action{Object: c.Set, Reason: ReasonOld})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(f.Jobs)) {
		job := f.Jobs[name]
		if f.Record.Phase == v1alpha1.PhaseStable && facts.VersionOfJob(job) < f.Record.CurrentVersion && job.DeletionTimestamp == nil {
			remove(action.Action{Object: job, Reason: ReasonOld})
		}
	}
	p.Then(deletions...)
}

// isObsolete reports whether a version is no longer needed: it is older than the current version, or the
// upgrade is complete and it is any other version. A newer version of an upgrade that was given up is
// kept with 0 pods, because the template may return to it.
func isObsolete(s *v1alpha1.ExtendedStatefulSetStatus, number int64) bool {
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
func zoneMayGo(f *facts.Facts) bool {
	return slices.ContainsFunc(f.Zones, func(z children.Zone) bool {
		c := f.Children.Find(z.Index, f.Record.CurrentVersion)
		return c != nil && f.AvailablePods(c) == f.Replicas
	})
}
