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

// createMissing creates members for the slots that have none.
func createMissing(w *world, r *roster, p *plan) {
	missing := wanted(w, r) - r.occupied()
	if missing <= 0 || w.refusedNow(reasonMissing, p) {
		return
	}
	if w.set.Spec.PodManagementPolicy == v1alpha1.OrderedReadyPodManagement {
		if slices.ContainsFunc(r.alive, func(m *member) bool { return !podstate.Ready(m.pod) }) || len(r.returning) > 0 {
			return // one at a time; the event that makes it Ready wakes the key
		}
		missing = 1
	}
	// A member that was deleted, by a user or by a pass that died, is
	// succeeded by the first of the new ones.
	var predecessors []*member
	for _, m := range r.departed {
		if !r.succeeded[m.name()] && !w.wasRetired(m) {
			predecessors = append(predecessors, m)
		}
	}
	chains := make([]action.Chain, 0, missing)
	for i := range min(missing, len(w.fresh)) {
		s := succession{}
		if i < len(predecessors) {
			s = successorOf(predecessors[i])
		}
		chains = append(chains, newMember(w, w.nextID(), s))
	}
	p.do(chains...)
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
	retire(w, p, victims(w, r, surplus))
	// A member that is just being recreated is given up last: its pod is gone
	// already, so its entry goes, and its claims are set aside.
	for i := len(p.steps); i == 0 && surplus > 0 && len(p.updating) > 0; surplus-- {
		giveUp(w, p)
	}
}

// giveUp drops the last entry of status.updating; its claims are labelled first.
func giveUp(w *world, p *plan) {
	last := p.updating[len(p.updating)-1]
	var labels action.Chain
	for _, c := range w.loose {
		if w.set.Name+"-"+c.Labels[v1alpha1.LabelMember] == last.Name {
			labels = append(labels, retain(c, v1alpha1.RetainedScaled))
		}
	}
	if len(labels) > 0 {
		p.do(labels)
	}
	left := slices.Clone(p.updating[:len(p.updating)-1])
	p.do(action.Chain{recordUpdating(w, left)})
	p.updating = left
}

// retire labels the claims of each member, so that their reason outlives the
// pod, and deletes the pod.
func retire(w *world, p *plan, members []*member) {
	var chains []action.Chain
	for _, m := range members {
		var chain action.Chain
		for _, c := range m.sortedClaims() {
			if c.Labels[v1alpha1.LabelRetained] != v1alpha1.RetainedScaled {
				chain = append(chain, retain(c, v1alpha1.RetainedScaled))
			}
		}
		chains = append(chains, append(chain, action.Action{Verb: action.Delete, Object: m.pod,
			Reason: reasonRetired, Detail: claimsFate(w, m)}))
	}
	p.do(chains...)
}

// victims picks n members to retire: marked by the user, lost, unscheduled,
// not Ready, of an older revision, on the most crowded node, youngest.
func victims(w *world, r *roster, n int) []*member {
	left := slices.Clone(r.alive)
	lost := map[*member]bool{}
	for _, l := range r.lost {
		if !podstate.Terminating(l.pod) {
			left, lost[l.member] = append(left, l.member), true
		}
	}
	crowd := map[string]int{}
	for _, m := range left {
		crowd[m.pod.Spec.NodeName]++
	}
	var picked []*member
	for len(picked) < n && len(left) > 0 {
		first := slices.MinFunc(left, func(a, b *member) int {
			return cmp.Or(
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

func marked(m *member) bool { return m.pod.Annotations[v1alpha1.AnnotationDeleteFirst] == "true" }

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
