package rules

import (
	"slices"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/spec"
)

// createMissing creates members for empty slots.
func createMissing(f *facts.Facts, p *Plan) {
	missing := f.Wanted() - f.Occupied() - len(f.Offers.InTheWay) - facts.OrphanSlots(f)
	if len(f.Offers.InTheWay) > 0 {
		p.LookAgain(spec.ForeignInterval) // no event reports the deletion of a pod that is not a member
	}
	// The first new members are the successors of the members that were deleted, by a user or by an
	// interrupted pass.
	predecessors := f.WithoutSuccessor()
	if facts.AwaitsDecision(f) {
		missing = min(missing, max(len(predecessors), f.Offers.CountGiven(p.newMembers.ids)))
	}
	if missing <= 0 {
		return
	}
	if f.CreatesRefused() {
		p.tryLater(f, facts.CreateReasons...)
		return
	}
	if f.OrderedReady() {
		if waitsForOne(f) {
			return // one at a time; the event of its Ready condition triggers the next pass
		}
		missing = 1
	}
	chains := make([]action.Chain, 0, missing)
	for i := range min(missing, len(p.newMembers.ids)) {
		s := Succession{detail: leavingDetail(f, f.Occupied()+i)}
		if i < len(predecessors) {
			s = SuccessorOf(f.World, predecessors[i])
		}
		chains = append(chains, p.newMembers.next(f, s))
	}
	p.createMembers(f, chains...)
}

// waitsForOne reports whether a set with OrderedReady has to wait for a member to become Ready
// before it creates the next one. It does not wait for members that the next one replaces.
func waitsForOne(f *facts.Facts) bool {
	if len(f.Returning) > 0 {
		return true
	}
	replaced := f.Leaving
	if f.MaxSurge() > 0 {
		replaced = slices.Concat(replaced, f.Outdated())
	}
	return slices.ContainsFunc(f.Alive, func(m *facts.Member) bool { return !m.Ready() && !slices.Contains(replaced, m) })
}

// scaleDown retires members until the set has no more than wanted.
func scaleDown(f *facts.Facts, p *Plan) {
	surplus := f.Occupied() - len(f.PendingEnds) - f.Wanted()
	if surplus <= 0 {
		return
	}
	if f.OrderedReady() {
		surplus = 1
	}
	// Members that were never Ready are retired first, then those that are being recreated, which are
	// not available. If members are given up, the next pass retires the rest.
	before := len(p.Steps) // an earlier rule may have added steps
	if giveUp(f, p, min(max(0, surplus-countNeverReady(f)), len(p.Updating))); len(p.Steps) == before {
		retire(f, p, scaledDown(f, surplusMembers(f, surplus)))
	}
}

// countNeverReady returns the number of members that were never Ready. It returns 0 for a set without
// claims: its returning members have no data, so they are given up first.
func countNeverReady(f *facts.Facts) (n int) {
	if len(f.Set.Spec.VolumeClaimTemplates) == 0 {
		return 0
	}
	for _, m := range f.Alive {
		if facts.WasNeverReady(m) {
			n++
		}
	}
	return n
}

// scaledDown returns the surplus members that are retired. A lost member that has run, and that is
// surplus only because a new member was created before it is retired, is left to replaceLost: the new
// member may not have its data yet, so its claims follow whenLost and not whenScaled.
func scaledDown(f *facts.Facts, members []*facts.Member) []*facts.Member {
	return slices.DeleteFunc(members, func(m *facts.Member) bool {
		lost := slices.ContainsFunc(f.Lost, func(l facts.Loss) bool { return l.Member == m })
		return lost && m.HasRun() && newOneFirst(f, m)
	})
}

// newOneFirst reports whether a new member is created before this one is retired: in a drain or a
// surge update.
func newOneFirst(f *facts.Facts, m *facts.Member) bool {
	outdated := m.Revision() != f.Target.Name
	return f.ReplacesFirst() || (outdated && f.MaxSurge() > 0)
}

// giveUp retires the last n members in status.updating: it removes their entries, so that they are not
// recreated. Their claims are labelled before, whether the old pod still exists or not.
func giveUp(f *facts.Facts, p *Plan, n int) {
	if n == 0 {
		return
	}
	left := slices.Clone(p.Updating[:len(p.Updating)-n])
	gone := map[string]bool{}
	for _, e := range p.Updating[len(left):] {
		gone[e.Name] = true
		p.GivenUp = append(p.GivenUp, e.UID)
	}
	var labels []action.Chain
	for _, c := range f.Loose {
		if gone[f.NameOf(facts.MemberOf(c))] {
			labels = append(labels, action.Chain{retain(c, v1alpha1.RetainedScaled, f.Retention().WhenScaled)})
		}
	}
	for _, m := range f.Members {
		if !gone[m.Name()] {
			continue
		}
		for _, c := range m.SortedClaims() {
			labels = append(labels, action.Chain{retain(c, v1alpha1.RetainedScaled, f.Retention().WhenScaled)})
		}
	}
	p.Then(labels...)
	p.Updating = left
	p.record(f, facts.ReasonUpdate)
}
