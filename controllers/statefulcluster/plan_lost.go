package statefulcluster

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
)

// sortLosses parts the alive from the lost, the longest lost first, and names the
// members that would be lost but for the rules that protect data.
func (f *facts) sortLosses() {
	unready := f.countUnready()
	f.draining = slices.ContainsFunc(f.alive, f.leaves)
	var alive []*member
	for _, m := range f.alive {
		found, ok := nodeLoss(f.world, m)
		late, isLate := unreadyLoss(f.world, m)
		if ok && isLate {
			isLate = late.due.Before(found.due)
		}
		if isLate {
			switch f.protects(late, unready) {
			case badTemplate:
				f.failing = append(f.failing, m.name())
			case noRoom:
				f.roomless = append(f.roomless, m.name())
			case manyAtOnce:
				f.manyUnready = unready
			default:
				found, ok = late, true
			}
		}
		switch {
		case !ok:
			alive = append(alive, m)
		case f.reached(found.due):
			kept, until := keptInOutage(f, m)
			if !kept {
				f.lost = append(f.lost, found)
				break
			}
			alive = append(alive, m)
			f.changes = append(f.changes, until)
			if !m.ended() { // restartEnded sees to those that did
				f.kept = append(f.kept, m.name())
			}
		default:
			alive = append(alive, m)
			f.changes = append(f.changes, found.due)
		}
	}
	f.alive = alive
	slices.SortStableFunc(f.lost, func(a, b loss) int {
		return cmp.Or(a.due.Compare(b.due), cmp.Compare(a.name(), b.name()))
	})
}

// countUnready is how many members are not Ready though their Nodes are well.
func (f *facts) countUnready() int {
	unready := 0
	for _, m := range f.alive {
		if !m.ready() && !m.nodeLost() {
			unready++
		}
	}
	return unready
}

// firstUnready is the first of the members that countUnready counts.
func (f *facts) firstUnready() string {
	i := slices.IndexFunc(f.alive, func(m *member) bool { return !m.ready() && !m.nodeLost() })
	return f.alive[i].name()
}

// protection is why a member that has been not Ready for too long is not replaced.
type protection int

const (
	unprotected protection = iota
	badTemplate            // a new member would fail the same way
	noRoom                 // nodes are cordoned, and a new member would find no other either
	manyAtOnce             // so many are not Ready that the cause is not in the members
)

// protects says what protects a member of a set with that many unready ones. That the
// operator was away is no news to whoever waits for the member: the wall clock counts.
func (f *facts) protects(late loss, unready int) protection {
	switch {
	case !f.reached(late.wall):
		return unprotected
	case blameTemplate(f.world, late.member):
		return badTemplate
	case f.waitsForRoom(late):
		return noRoom
	case unready > f.maxConcurrent():
		return manyAtOnce
	}
	return unprotected
}

// nodeLoss is evidence that does not depend on the template: the Node, the end
// of the pod, a claim that is gone.
func nodeLoss(w *world, m *member) (loss, bool) {
	late := backoff(w, m)
	switch {
	case w.keepsEnded(m):
		return loss{}, false // restartEnded sees to it
	case m.node.gone:
		return loss{member: m, reason: v1alpha1.LossNodeGone, due: latest(w.nodeGoneAt(m), m.since(corev1.PodScheduled).Add(late))}, true
	case m.node.outOfService:
		return loss{member: m, reason: v1alpha1.LossNodeOutOfService, due: m.since(corev1.PodScheduled).Add(late)}, true
	case m.ended() && blameTemplate(w, m):
		return loss{}, false // restartEnded sees to it
	case m.ended():
		return loss{member: m, reason: v1alpha1.LossFailed, due: m.pod.CreationTimestamp.Add(late)}, true
	case m.hasRun() && len(missingClaims(w, m)) > 0:
		return loss{member: m, reason: v1alpha1.LossClaimGone, due: m.pod.CreationTimestamp.Add(late)}, true
	case !m.node.notReadySince.IsZero():
		// A replacement bound to a Node that is lost already waits its turn too.
		due := latest(w.nodeLostAt(m), m.since(corev1.PodScheduled).Add(late))
		return loss{member: m, reason: v1alpha1.LossNodeNotReady, due: due}, true
	}
	return loss{}, false
}

// nodeLostAt is when the member counts as lost if its Node stays not Ready. A
// Node that was cut off together with the operator, or whose kubelet could not
// reach the API server either, has that long to say that it is well.
func (w *world) nodeLostAt(m *member) time.Time {
	after := time.Duration(*w.set.Spec.Replacement.NodeLostSeconds) * time.Second
	return w.watch.Deadline(m.node.notReadySince, after)
}

// nodeGoneAt is when the member counts as lost if its Node stays missing. A Node object
// that is deleted and created again for the same machine takes no member with it.
func (w *world) nodeGoneAt(m *member) time.Time {
	return w.watch.Deadline(m.node.goneSince, nodeGoneTime)
}

// keepsEnded reports whether the pod of a member ended as in an eviction, and the member
// comes back as after one: its kubelet evicted it, shut down, or refused it.
func (w *world) keepsEnded(m *member) bool {
	return w.set.Spec.Replacement.OnEviction == v1alpha1.EvictionKeeps && podstate.EndedByNode(m.pod)
}

// unreadiness says since when a member is not Ready, why, and after how many seconds
// spec.replacement says that it is lost; 0 is never.
type unreadiness struct {
	reason  v1alpha1.LossReason
	since   time.Time
	seconds int32
}

// unreadinessOf is false of a member that is Ready, and of one that something else is
// wrong with: its Node, or the end of its pod.
func unreadinessOf(w *world, m *member) (unreadiness, bool) {
	if m.ready() || m.nodeLost() || m.ended() {
		return unreadiness{}, false
	}
	spec := w.set.Spec.Replacement
	if since, yes := podstate.UnschedulableSince(m.pod); yes {
		if waitsForClaims(w, m) {
			return unreadiness{}, false
		}
		return unreadiness{v1alpha1.LossPending, latest(since, m.claimsSince()), *spec.PendingSeconds}, true
	}
	if m.wasReady() {
		return unreadiness{v1alpha1.LossUnready, m.since(corev1.PodReady), *spec.UnreadySeconds}, true
	}
	if m.scheduled() {
		return unreadiness{v1alpha1.LossStartup, m.since(corev1.PodScheduled), *spec.StartupSeconds}, true
	}
	return unreadiness{}, false
}

// unreadyLoss is evidence that a bad template gives too.
func unreadyLoss(w *world, m *member) (loss, bool) {
	u, unready := unreadinessOf(w, m)
	if !unready || u.seconds <= 0 {
		return loss{}, false
	}
	after := time.Duration(u.seconds)*time.Second + backoff(w, m)
	return loss{member: m, reason: u.reason, due: w.watch.Deadline(u.since, after), wall: u.since.Add(after)}, true
}

// blameTemplate reports whether unreadiness says nothing against the member: its
// revision was never Ready anywhere, it was updated and not Ready since, or it
// crashed and its revision works nowhere else. A new member would fail the same
// way, and cost the data of this one.
func blameTemplate(w *world, m *member) bool {
	switch {
	case m.patching():
		return true
	case m.cameBack() && !m.wasReady():
		return true
	case !w.everReady(m.revision()):
		return true
	}
	return crashedWithRevision(w, m)
}

// backoff is how much longer than at first the member is waited for: nothing
// for one that settled down or fills its slot for the first time.
func backoff(w *world, m *member) time.Duration {
	n := m.replacements()
	if n < 2 || settledDown(w, m) {
		return 0
	}
	return doubled(firstBackoff, n-2, maxBackoff)
}

// settledDown reports whether the member was Ready and is some minutes old: what
// happens to it now is no repetition of what happened to its predecessor.
func settledDown(w *world, m *member) bool {
	start := m.pod.Status.StartTime
	return m.wasReady() && start != nil && w.now.Sub(start.Time) >= settlingTime
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// replaceLost deletes the pods of lost members, the mark that they never come
// back, and creates a new member for each, as many at a time as
// replacement.maxConcurrent allows.
func replaceLost(f *facts, p *plan) {
	slots, successors := f.freeSlots(), f.successors()
	refused := false
	if len(f.lost) > 0 {
		refused = f.createsRefused()
		p.tryLater(f, createReasons...)
	}
	var chains []action.Chain
	for _, l := range f.lost {
		if !l.holdsSlot() {
			if slots <= 0 {
				p.held = append(p.held, l.name())
				continue
			}
			slots--
		}
		if refused && f.parallel() {
			p.held = append(p.held, l.name()) // its successor could not be made
			continue
		}
		var chain action.Chain
		if !l.terminating() {
			chain = append(chain, l.deletes())
		}
		if f.parallel() && len(p.births.ids) > 0 && successors > 0 {
			successors--
			chain = append(chain, p.births.next(f, successorOf(f.world, l.member))...)
		}
		if len(chain) > 0 {
			p.losses = append(p.losses, l)
			chains = append(chains, chain)
		}
	}
	p.make(f, chains...)
}

// deletes is the delete that makes a loss final.
func (l loss) deletes() action.Action {
	return action.Action{Verb: action.Delete, Object: l.pod, Reason: string(l.reason),
		Detail: fmt.Sprintf("the member is lost and will not come back, %s", claimsFate(l.member))}
}

// successors is how many of the lost members get a successor. In a set that makes new
// members before old ones go it may be there already.
func (f *facts) successors() int {
	if f.mostExtra() == 0 {
		return len(f.lost)
	}
	return f.wanted() - len(f.alive) - len(f.returning)
}

// freeSlots is how many more members replacement.maxConcurrent lets be replaced now.
// Slots that are empty, and those whose new member was not Ready yet, count.
func (f *facts) freeSlots() int {
	empty := max(len(f.unsucceeded()), f.emptySlots())
	slots := f.maxConcurrent() - empty
	for _, m := range f.members {
		if !m.terminating() && m.stillReplacing() {
			slots--
		}
	}
	return slots
}

// emptySlots is how many slots have no member. A drain adds slots that no one held before:
// while none can be made for them, as under a quota, lost members are replaced all the same.
func (f *facts) emptySlots() int {
	if f.replacesFirst() {
		return f.replicas() - f.occupied() - orphanSlots(f)
	}
	return f.wanted() - f.occupied() - orphanSlots(f)
}

// holdsSlot reports whether a lost member is counted as being replaced already: it
// fills the slot of another.
func (l loss) holdsSlot() bool { return !l.terminating() && l.stillReplacing() }

// blamed reports whether a member ended because of its template, and not with its Node.
func blamed(f *facts, m *member) bool { return !m.nodeLost() && blameTemplate(f.world, m) }

// restartEnded recreates, under their names and on their data, members that ended and are
// not lost: evictions keep them, no member is Ready, or their template is to blame, so that
// a new member would end the same way.
func restartEnded(f *facts, p *plan) {
	var again []*member
	for _, m := range f.alive {
		kept, _ := keptInOutage(f, m)
		if returns := kept || blamed(f, m) || f.keepsEnded(m); !m.ended() || !returns {
			continue
		}
		if blamed(f, m) {
			p.failing = append(p.failing, m.name())
		}
		due := m.pod.CreationTimestamp.Add(endedBackoff)
		p.lookAgain(due)
		if f.reached(due) {
			again = append(again, m)
		}
	}
	recreate(f, p, again, "")
}
