package statefulcluster

import (
	"cmp"
	"maps"
	"slices"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
)

// freshIDs returns how many new ids a plan may need in addition to w.fresh.
func freshIDs(w *world) int {
	if w.invalid != "" {
		return 0
	}
	need := w.replicas() + w.maxExtra()
	for _, m := range w.members {
		if m.ready() && !m.terminating() && !m.nodeLost() {
			need--
		}
	}
	return max(0, min(need, namesBatch)-len(w.fresh))
}

// ids returns the ids that are in use: by a pod or claim of the set, by a returning member, by an
// orphan, or by a claim of an earlier set that was not given to this one.
func (w *world) ids() map[string]bool {
	ids := make(map[string]bool, len(w.members)+len(w.loose))
	for _, m := range w.members {
		ids[m.id] = true
	}
	for _, c := range w.loose {
		ids[memberOf(c)] = true
	}
	for _, e := range w.set.Status.Updating {
		ids[w.idOf(e.Name)] = true
	}
	maps.Copy(ids, w.offers.others)
	maps.Copy(ids, w.orphanIDs)
	return ids
}

// createMissing creates members for empty slots.
func createMissing(f *facts, p *plan) {
	missing := f.wanted() - f.occupied() - len(f.offers.inTheWay) - orphanSlots(f)
	if len(f.offers.inTheWay) > 0 {
		p.LookAgain(foreignInterval) // no event reports the deletion of a pod that is not a member
	}
	// The first new members are the successors of the members that were deleted, by a user or by an
	// interrupted pass.
	predecessors := f.unsucceeded()
	if awaitsWord(f) {
		missing = min(missing, max(len(predecessors), f.offers.countGiven(p.births.ids)))
	}
	if missing <= 0 {
		return
	}
	if f.createsRefused() {
		p.tryLater(f, createReasons...)
		return
	}
	if f.orderedReady() {
		if f.waitsForOne() {
			return // one at a time; the event of its Ready condition triggers the next pass
		}
		missing = 1
	}
	chains := make([]action.Chain, 0, missing)
	for i := range min(missing, len(p.births.ids)) {
		s := succession{ahead: f.aheadOf(f.occupied() + i)}
		if i < len(predecessors) {
			s = successorOf(f.world, predecessors[i])
		}
		chains = append(chains, p.births.next(f, s))
	}
	p.make(f, chains...)
}

// waitsForOne reports whether a set with OrderedReady has to wait for a member to become Ready
// before it creates the next one. It does not wait for members that the next one replaces.
func (f *facts) waitsForOne() bool {
	if len(f.returning) > 0 {
		return true
	}
	replaced := f.leaving
	if f.maxSurge() > 0 {
		replaced = slices.Concat(replaced, f.outdated())
	}
	return slices.ContainsFunc(f.alive, func(m *member) bool { return !m.ready() && !slices.Contains(replaced, m) })
}

// createReasons are the reasons of the writes that create new members.
var createReasons = []string{reasonNames, reasonMissing, reasonReplaced}

// createsRefused reports whether the creation of a new member was refused recently, for any reason.
// The cause applies to all new members.
func (w *world) createsRefused() bool { return slices.ContainsFunc(createReasons, w.refusedNow) }

// scaleDown retires members until the set has no more than wanted.
func scaleDown(f *facts, p *plan) {
	surplus := f.occupied() - len(f.pendingEnds) - f.wanted()
	if surplus <= 0 {
		return
	}
	if f.orderedReady() {
		surplus = 1
	}
	// A member that is being recreated is not available. Members that were never Ready are retired
	// before it.
	before := len(p.Steps) // an earlier rule may have added steps
	if giveUp(f, p, min(max(0, surplus-countNewcomers(f)), len(p.updating))); len(p.Steps) == before {
		retire(f, p, f.scaledDown(surplusMembers(f, surplus)))
	}
}

// countNewcomers returns the number of members that were never Ready. It returns 0 for a set
// without claims, whose members have no data to keep.
func countNewcomers(f *facts) (n int) {
	if len(f.set.Spec.VolumeClaimTemplates) == 0 {
		return 0
	}
	for _, m := range f.alive {
		if isNewcomer(m) {
			n++
		}
	}
	return n
}

// isNewcomer reports whether a member was never Ready, including under an earlier pod. Members
// recreated on their claims also have young pods that are not Ready, but must not be retired first.
func isNewcomer(m *member) bool {
	return !m.wasReady() && m.pod.Annotations[v1alpha1.AnnotationUpdated] == ""
}

// scaledDown returns the surplus members that are retired. A lost member that is surplus only
// because its new member was created first stays lost if it has run. The new member may not have
// its data yet, so whenLost applies to its claims.
func (f *facts) scaledDown(members []*member) []*member {
	return slices.DeleteFunc(members, func(m *member) bool {
		lost := slices.ContainsFunc(f.lost, func(l loss) bool { return l.member == m })
		return lost && m.hasRun() && newOneFirst(f, m)
	})
}

// newOneFirst reports whether a new member is created before this one is retired: in a drain or a
// surge update.
func newOneFirst(f *facts, m *member) bool {
	outdated := m.revision() != f.target.Name
	return f.replacesFirst() || (outdated && f.maxSurge() > 0)
}

// giveUp drops the last n entries of status.updating. The claims of these members are labelled
// first, whether the old pod still exists or not.
func giveUp(f *facts, p *plan, n int) {
	if n == 0 {
		return
	}
	left := slices.Clone(p.updating[:len(p.updating)-n])
	gone := map[string]bool{}
	for _, e := range p.updating[len(left):] {
		gone[e.Name] = true
		p.givenUp = append(p.givenUp, e.UID)
	}
	var labels []action.Chain
	for _, c := range f.loose {
		if gone[f.nameOf(memberOf(c))] {
			labels = append(labels, action.Chain{retain(c, v1alpha1.RetainedScaled, f.retention().WhenScaled)})
		}
	}
	for _, m := range f.members {
		if !gone[m.name()] {
			continue
		}
		for _, c := range m.sortedClaims() {
			labels = append(labels, action.Chain{retain(c, v1alpha1.RetainedScaled, f.retention().WhenScaled)})
		}
	}
	p.Then(labels...)
	p.updating = left
	p.record(f, reasonUpdate)
}

// retire labels the claims of each member, so that the reason survives the pod, and then deletes
// the pod.
func retire(f *facts, p *plan, members []*member) {
	var chains []action.Chain
	for _, m := range members {
		var chain action.Chain
		for _, c := range m.sortedClaims() {
			policy := f.retention().WhenScaled
			if !retainedAs(c, v1alpha1.RetainedScaled) {
				chain = append(chain, retain(c, v1alpha1.RetainedScaled, policy))
			}
		}
		detail := claimsFate(m)
		if f.leaves(m) {
			detail = "its node is cordoned, " + detail
		}
		chains = append(chains, append(chain, action.Action{Verb: action.Delete, Object: m.pod,
			Reason: reasonRetired, Detail: detail}))
	}
	p.Then(chains...)
}

// surplusMembers picks n members to retire. They may include lost members whose pod exists.
func surplusMembers(f *facts, n int) []*member {
	left := slices.Clone(f.alive)
	for _, l := range f.lost {
		if !l.terminating() {
			left = append(left, l.member)
		}
	}
	return firstToGo(f, left, n)
}

// firstToGo picks n of the given members, in scale-down order: members whose claims are already
// labelled for a scale-down (the deletion of the pod may be in progress), marked by the user, lost,
// never Ready, unscheduled, not Ready, on a cordoned Node that they leave, of an older revision, on
// the most crowded Node, youngest.
func firstToGo(f *facts, left []*member, n int) []*member {
	left = slices.Clone(left)
	perNode, lost := map[string]int{}, map[*member]bool{}
	for _, m := range f.alive {
		perNode[m.pod.Spec.NodeName]++
	}
	for _, l := range f.lost {
		perNode[l.pod.Spec.NodeName]++
		lost[l.member] = true
	}
	var picked []*member
	for len(picked) < n && len(left) > 0 {
		first := slices.MinFunc(left, func(a, b *member) int {
			return cmp.Or(
				yesFirst(f.wasRetired(a), f.wasRetired(b)),
				yesFirst(a.deleteFirst(), b.deleteFirst()),
				yesFirst(lost[a], lost[b]),
				yesFirst(isNewcomer(a), isNewcomer(b)),
				yesFirst(!a.scheduled(), !b.scheduled()),
				yesFirst(!a.ready(), !b.ready()),
				yesFirst(f.leaves(a), f.leaves(b)),
				yesFirst(a.revision() != f.target.Name, b.revision() != f.target.Name),
				cmp.Compare(perNode[b.pod.Spec.NodeName], perNode[a.pod.Spec.NodeName]),
				b.pod.CreationTimestamp.Compare(a.pod.CreationTimestamp.Time),
				cmp.Compare(a.name(), b.name()))
		})
		perNode[first.pod.Spec.NodeName]--
		picked = append(picked, first)
		left = slices.DeleteFunc(left, func(m *member) bool { return m == first })
	}
	return picked
}

// yesFirst compares two bools and sorts true before false.
func yesFirst(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}
