package statefulcluster

import (
	"cmp"
	"maps"
	"slices"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
)

// freshIDs is how many ids a plan may need beside those on record.
func freshIDs(w *world) int {
	if w.invalid != "" {
		return 0
	}
	need := w.replicas() + w.mostExtra()
	for _, m := range w.members {
		if m.ready() && !m.terminating() && !m.nodeLost() {
			need--
		}
	}
	return max(0, min(need, namesBatch)-len(w.fresh))
}

// ids are those that a live pod or claim of the set has, or a member that comes back, or a
// claim of a namesake that was not given to the set.
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

// createMissing creates members for the slots that have none.
func createMissing(f *facts, p *plan) {
	missing := f.wanted() - f.occupied() - len(f.offers.inTheWay) - orphanSlots(f)
	if len(f.offers.inTheWay) > 0 {
		p.LookAgain(foreignInterval) // no event tells of the end of a pod that is not the set's
	}
	// A member that was deleted, by a user or by a pass that died, is
	// succeeded by the first of the new ones.
	predecessors := f.unsucceeded()
	if r := (restore{f}); r.awaitsWord() {
		missing = min(missing, max(len(predecessors), r.countGiven(p.births.ids)))
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
			return // one at a time; the event that makes it Ready wakes the key
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

// waitsForOne reports whether a member is not Ready yet that the next one of a set
// with OrderedReady has to wait for. One that goes after the next one is there is not
// waited for.
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

// createReasons are those of the writes that make new members.
var createReasons = []string{reasonNames, reasonMissing, reasonReplaced}

// createsRefused reports whether new members were refused just now, whatever
// they were for: what refuses one refuses them all.
func (w *world) createsRefused() bool { return slices.ContainsFunc(createReasons, w.refusedNow) }

// scaleDown retires members until no more are there than wanted.
func scaleDown(f *facts, p *plan) {
	surplus := f.occupied() - len(f.pendingEnds) - f.wanted()
	if surplus <= 0 {
		return
	}
	if f.orderedReady() {
		surplus = 1
	}
	// A member that is being recreated serves no client. Newcomers are retired before it.
	before := len(p.Steps) // another rule may have led
	if giveUp(f, p, min(max(0, surplus-countNewcomers(f)), len(p.updating))); len(p.Steps) == before {
		retire(f, p, f.scaledDown(surplusMembers(f, surplus)))
	}
}

// countNewcomers counts the members that were never Ready. It is 0 for a set without claims, whose
// members have no data to keep.
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

// isNewcomer reports whether a member was never Ready, also not as a pod before this one. Members
// that come back on their claims are young pods that are not Ready too, and must not go before it.
func isNewcomer(m *member) bool {
	return !m.wasReady() && m.pod.Annotations[v1alpha1.AnnotationUpdated] == ""
}

// scaledDown are the members that are retired of those of which there are too many. One
// that is lost, and too many only because a new member came before it went, stays lost if
// it has run: that the new one is there does not say that it has its data, so the policy
// for losses is the one that speaks of its claims.
func (f *facts) scaledDown(members []*member) []*member {
	return slices.DeleteFunc(members, func(m *member) bool {
		lost := slices.ContainsFunc(f.lost, func(l loss) bool { return l.member == m })
		return lost && m.hasRun() && newOneFirst(f, m)
	})
}

// newOneFirst reports whether a new member comes before this one goes: for a drain, or in
// a surge update.
func newOneFirst(f *facts, m *member) bool {
	outdated := m.revision() != f.target.Name
	return f.replacesFirst() || (outdated && f.maxSurge() > 0)
}

// giveUp drops the last n entries of status.updating. The claims of the
// members are labelled first, whether the old pod is still there or not.
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

// retire labels the claims of each member, so that their reason outlives the
// pod, and deletes the pod.
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

// surplusMembers picks n members to retire. Lost members whose pod is there may be
// among them.
func surplusMembers(f *facts, n int) []*member {
	left := slices.Clone(f.alive)
	for _, l := range f.lost {
		if !l.terminating() {
			left = append(left, l.member)
		}
	}
	return firstToGo(f, left, n)
}

// firstToGo picks n of the members that are left, in the order of a scale-down: those
// whose claims say already that they go, as the delete of such a pod may be on its way;
// marked by the user, lost, never Ready, unscheduled, not Ready, on a cordoned node that it
// should leave, of an older revision, on the most crowded node, youngest.
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

// yesFirst orders true before false.
func yesFirst(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}
