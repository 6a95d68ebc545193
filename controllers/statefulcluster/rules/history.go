package rules

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/revision"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/facts"
)

// MaxRevisions is the max number of old revisions that are kept, and MaxHistory the max size of
// all of them in bytes: the operator holds them in memory.
const MaxRevisions, MaxHistory = 100, 2 << 20

// largest returns the size of the largest revision in bytes, at least 1.
func largest(revisions []*appsv1.ControllerRevision) int {
	most := 1
	for _, rev := range revisions {
		most = max(most, len(rev.Data.Raw))
	}
	return most
}

// trimHistory deletes the oldest revisions that are not in use.
func trimHistory(f *facts.Facts, p *Plan) {
	if f.RefusedNow(facts.ReasonHistory) {
		p.tryLater(f, facts.ReasonHistory)
		return
	}
	used := []string{f.Target.Name, f.Set.Status.CurrentRevision}
	for _, m := range f.Members {
		used = append(used, m.Revision())
	}
	for _, e := range f.Returning {
		used = append(used, e.Revision)
	}
	limit := min(max(0, int(*f.Set.Spec.RevisionHistoryLimit)), MaxRevisions, MaxHistory/largest(f.Revisions))
	inUse := func(name string) bool { return slices.Contains(used, name) }
	var chains []action.Chain
	for _, rev := range revision.Surplus(f.Revisions, limit, inUse) {
		chains = append(chains, action.Chain{{Verb: action.Delete, Object: rev, Reason: facts.ReasonHistory}})
	}
	p.Then(chains...)
}
