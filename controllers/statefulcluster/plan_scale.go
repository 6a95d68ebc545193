package statefulcluster

import (
	"cmp"
	"slices"
	"time"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
)

// wanted is how many members there should be now: the replicas, and while a
// surge update runs the members that it adds.
func wanted(w *world, r *roster) int {
	n := int(*w.set.Spec.Replicas)
	if w.rolling() {
		n += min(w.maxSurge(), len(outdated(w, r)))
	}
	return n
}

// freshIDs is how many ids a plan may need beside those on record.
func freshIDs(w *world) int {
	if w.invalid != "" {
		return 0
	}
	need := int(*w.set.Spec.Replicas) + w.maxSurge()
	for _, m := range w.members {
		if podstate.Ready(m.pod) && !podstate.Terminating(m.pod) && !m.node.lostNow() {
			need--
		}
	}
	return max(0, min(need, namesBatch)-len(w.fresh))
}

// ids are those that a live pod or claim of the set has, or a member that
// comes back.
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
	return ids
}

// createMissing creates members for the slots that have none.
func createMissing(w *world, r *roster, p *plan) {
	missing := wanted(w, r) - r.occupied()
	if missing <= 0 || w.createsRefused(p) {
		return
	}
	// A member that was deleted, by a user or by a pass that died, is
	// succeeded by the first of the new ones.
	predecessors := r.unsucceeded(w)
	if w.set.Spec.PodManagementPolicy == v1alpha1.OrderedReadyPodManagement {
		if slices.ContainsFunc(r.alive, func(m *member) bool { return !podstate.Ready(m.pod) && !w.outlived(r, m) }) || len(r.returning) > 0 {
			return // one at a time; the event that makes it Ready wakes the key
		}
		missing = 1
	}
	chains := make([]action.Chain, 0, missing)
	for i := range min(missing, len(w.fresh)) {
		s := succession{}
		if i < len(predecessors) {
			s = successorOf(w, predecessors[i])
		}
		chains = append(chains, newMember(w, w.nextID(), s))
	}
	p.make(w, r, chains...)
}

// createsRefused tells whether new members were refused just now, whatever
// they were for: what refuses one refuses them all.
func (w *world) createsRefused(p *plan) bool {
	names, missing, replaced := w.refusedNow(reasonNames, p), w.refusedNow(reasonMissing, p), w.refusedNow(reasonReplaced, p)
	return names || missing || replaced
}

// scaleDown retires members until no more are there than wanted.
func scaleDown(w *world, r *roster, p *plan) {
	surplus := r.occupied() - wanted(w, r)
	if surplus <= 0 {
		return
	}
	if w.set.Spec.PodManagementPolicy == v1alpha1.OrderedReadyPodManagement {
		surplus = 1
	}
	// A member that is just being recreated serves nobody.
	before := len(p.Steps) // another rule may have led
	if giveUp(w, p, min(surplus, len(p.updating))); len(p.Steps) == before {
		retire(w, p, victims(w, r, surplus))
	}
}

// outlived tells whether the member is one that a surge update replaces: the
// next one does not wait for it.
func (w *world) outlived(r *roster, m *member) bool {
	return w.maxSurge() > 0 && slices.Contains(outdated(w, r), m)
}

// giveUp drops the last n entries of status.updating. The claims of the
// members are labelled first, whether the old pod is still there or not.
func giveUp(w *world, p *plan, n int) {
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
	for _, c := range w.loose {
		if gone[w.nameOf(memberOf(c))] {
			labels = append(labels, action.Chain{retain(c, v1alpha1.RetainedScaled, w.set.Spec.PersistentVolumeClaimRetentionPolicy.WhenScaled)})
		}
	}
	for _, m := range w.members {
		if gone[m.name()] {
			for _, c := range m.sortedClaims() {
				labels = append(labels, action.Chain{retain(c, v1alpha1.RetainedScaled, w.set.Spec.PersistentVolumeClaimRetentionPolicy.WhenScaled)})
			}
		}
	}
	p.Then(labels...)
	p.updating = left
	p.record(w, reasonUpdate)
}

// retire labels the claims of each member, so that their reason outlives the
// pod, and deletes the pod.
func retire(w *world, p *plan, members []*member) {
	var chains []action.Chain
	for _, m := range members {
		var chain action.Chain
		for _, c := range m.sortedClaims() {
			if c.Labels[v1alpha1.LabelRetained] != v1alpha1.RetainedScaled {
				chain = append(chain, retain(c, v1alpha1.RetainedScaled, w.set.Spec.PersistentVolumeClaimRetentionPolicy.WhenScaled))
			}
		}
		chains = append(chains, append(chain, action.Action{Verb: action.Delete, Object: m.pod,
			Reason: reasonRetired, Detail: claimsFate(m)}))
	}
	p.Then(chains...)
}

// victims picks n members to retire: those whose claims say already that they go, as
// the delete of such a pod may be on its way; marked by the user, lost, unscheduled,
// not Ready, of an older revision, on the most crowded node, youngest.
func victims(w *world, r *roster, n int) []*member {
	left := slices.Clone(r.alive)
	for _, l := range r.lost {
		if !podstate.Terminating(l.pod) {
			left = append(left, l.member)
		}
	}
	return firstToGo(w, r, left, n)
}

// firstToGo picks n of the members that are left, in the order of a scale-down.
func firstToGo(w *world, r *roster, left []*member, n int) []*member {
	left = slices.Clone(left)
	crowd, lost := map[string]int{}, map[*member]bool{}
	for _, m := range r.alive {
		crowd[m.pod.Spec.NodeName]++
	}
	for _, l := range r.lost {
		crowd[l.pod.Spec.NodeName]++
		lost[l.member] = true
	}
	var picked []*member
	for len(picked) < n && len(left) > 0 {
		first := slices.MinFunc(left, func(a, b *member) int {
			return cmp.Or(
				yesFirst(w.wasRetired(a), w.wasRetired(b)),
				yesFirst(marked(a), marked(b)),
				yesFirst(lost[a], lost[b]),
				yesFirst(!podstate.Scheduled(a.pod), !podstate.Scheduled(b.pod)),
				yesFirst(!podstate.Ready(a.pod), !podstate.Ready(b.pod)),
				yesFirst(revisionOf(a.pod) != r.target, revisionOf(b.pod) != r.target),
				cmp.Compare(crowd[b.pod.Spec.NodeName], crowd[a.pod.Spec.NodeName]),
				b.pod.CreationTimestamp.Compare(a.pod.CreationTimestamp.Time),
				cmp.Compare(a.name(), b.name()))
		})
		crowd[first.pod.Spec.NodeName]--
		picked = append(picked, first)
		left = slices.DeleteFunc(left, func(m *member) bool { return m == first })
	}
	return picked
}

func marked(m *member) bool { return m.pod.Annotations[v1alpha1.AnnotationDeleteFirst] == yes }

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

// available tells whether the member counts as available: Ready for
// minReadySeconds, on a Node that is there, and not in the middle of an
// in-place update.
func available(w *world, m *member) (bool, time.Duration) {
	if m.pod.Annotations[v1alpha1.AnnotationInPlace] != "" || m.node.gone || m.node.outOfService {
		return false, 0
	}
	return podstate.Available(m.pod, time.Duration(w.set.Spec.MinReadySeconds)*time.Second, w.now)
}

// serves tells whether the member is available now.
func serves(w *world, m *member) bool {
	ok, _ := available(w, m)
	return ok
}

// countAvailable counts, and wakes the key when the next member will be.
func countAvailable(w *world, members []*member, p *plan) int {
	n := 0
	for _, m := range members {
		ok, missing := available(w, m)
		if ok {
			n++
		} else if missing > 0 {
			p.lookAgain(w, w.now.Add(missing))
		}
	}
	return n
}

// wasRetired tells whether the pod goes because of a scale-down.
func (w *world) wasRetired(m *member) bool {
	if w.retired[m.pod.UID] {
		return true
	}
	for _, c := range m.claims {
		if c.Labels[v1alpha1.LabelRetained] == v1alpha1.RetainedScaled {
			return true
		}
	}
	return false
}
