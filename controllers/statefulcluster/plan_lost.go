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

// sortLosses separates the alive members from the lost ones, sorted by the time of their loss. It
// also finds the members that are not lost only because of the rules that protect data.
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
			if !m.ended() { // restartEnded handles ended members
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

// countUnready returns the number of members that are not Ready although their Nodes are healthy.
func (f *facts) countUnready() int {
	unready := 0
	for _, m := range f.alive {
		if !m.ready() && !m.nodeLost() {
			unready++
		}
	}
	return unready
}

// firstUnready returns the first of the members that countUnready counts.
func (f *facts) firstUnready() string {
	i := slices.IndexFunc(f.alive, func(m *member) bool { return !m.ready() && !m.nodeLost() })
	return f.alive[i].name()
}

// protection is the reason why a member that passed an unreadiness deadline is not replaced.
type protection int

const (
	unprotected protection = iota
	badTemplate            // a new member would fail the same way
	noRoom                 // nodes are cordoned, and a new member would be unschedulable too
	manyAtOnce             // so many members are not Ready that the cause is not in a single member
)

// protects returns the protection of a member, in a set with that many unready members. It uses the
// wall clock, because the protection is reported to users even if the operator was down during the
// deadline.
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

// nodeLoss returns a loss whose evidence does not depend on the template: the Node, the end of the
// pod, or a missing claim.
func nodeLoss(w *world, m *member) (loss, bool) {
	late := backoff(w, m)
	switch {
	case w.keepsEnded(m):
		return loss{}, false // restartEnded handles it
	case m.node.gone:
		return loss{member: m, reason: v1alpha1.LossNodeGone, due: latest(w.nodeGoneAt(m), m.since(corev1.PodScheduled).Add(late))}, true
	case m.node.outOfService:
		return loss{member: m, reason: v1alpha1.LossNodeOutOfService, due: m.since(corev1.PodScheduled).Add(late)}, true
	case m.ended() && blameTemplate(w, m):
		return loss{}, false // restartEnded handles it
	case m.ended():
		return loss{member: m, reason: v1alpha1.LossFailed, due: m.pod.CreationTimestamp.Add(late)}, true
	case m.hasRun() && len(missingClaims(w, m)) > 0:
		return loss{member: m, reason: v1alpha1.LossClaimGone, due: m.pod.CreationTimestamp.Add(late)}, true
	case !m.node.notReadySince.IsZero():
		// The backoff also applies to a replacement that was bound to a Node that was already lost.
		due := latest(w.nodeLostAt(m), m.since(corev1.PodScheduled).Add(late))
		return loss{member: m, reason: v1alpha1.LossNodeNotReady, due: due}, true
	}
	return loss{}, false
}

// nodeLostAt returns when the member counts as lost if its Node stays not Ready. A Node that was
// cut off together with the operator, or whose kubelet could not reach the API server either, has
// the full time to report Ready.
func (w *world) nodeLostAt(m *member) time.Time {
	after := time.Duration(*w.set.Spec.Replacement.NodeLostSeconds) * time.Second
	return w.watch.Deadline(m.node.notReadySince, after)
}

// nodeGoneAt returns when the member counts as lost if its Node stays missing. No member is lost if
// the Node object is deleted and recreated for the same machine.
func (w *world) nodeGoneAt(m *member) time.Time {
	return w.watch.Deadline(m.node.goneSince, nodeGoneTime)
}

// keepsEnded reports whether the pod of a member was ended by its Node (evicted by the kubelet,
// shut down, or rejected), and onEviction Keep keeps the member.
func (w *world) keepsEnded(m *member) bool {
	return w.set.Spec.Replacement.OnEviction == v1alpha1.EvictionKeeps && podstate.EndedByNode(m.pod)
}

// unreadiness is why and since when a member is not Ready, and after how many seconds
// spec.replacement counts it as lost; 0 is never.
type unreadiness struct {
	reason  v1alpha1.LossReason
	since   time.Time
	seconds int32
}

// unreadinessOf returns the unreadiness of a member. It returns false if the member is Ready, or if
// the cause is its Node or the end of its pod.
func unreadinessOf(w *world, m *member) (unreadiness, bool) {
	if m.ready() || m.nodeLost() || m.ended() {
		return unreadiness{}, false
	}
	after := w.set.Spec.Replacement
	if since, yes := podstate.UnschedulableSince(m.pod); yes {
		if waitsForClaims(w, m) {
			return unreadiness{}, false
		}
		return unreadiness{v1alpha1.LossPending, latest(since, m.claimsSince()), *after.PendingSeconds}, true
	}
	if m.wasReady() {
		return unreadiness{v1alpha1.LossUnready, m.since(corev1.PodReady), *after.UnreadySeconds}, true
	}
	if m.scheduled() {
		return unreadiness{v1alpha1.LossStartup, m.since(corev1.PodScheduled), *after.StartupSeconds}, true
	}
	return unreadiness{}, false
}

// unreadyLoss returns a loss by unreadiness, which a bad template can cause too.
func unreadyLoss(w *world, m *member) (loss, bool) {
	u, unready := unreadinessOf(w, m)
	if !unready || u.seconds <= 0 {
		return loss{}, false
	}
	after := time.Duration(u.seconds)*time.Second + backoff(w, m)
	return loss{member: m, reason: u.reason, due: w.watch.Deadline(u.since, after), wall: u.since.Add(after)}, true
}

// blameTemplate reports whether unreadiness may be caused by the template: no member of the
// revision was ever Ready, the member was updated and has not been Ready since, or it crashed and
// its revision is not proven. A new member would fail the same way, and would cost the data of this
// one.
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

// backoff returns the additional delay before the member is replaced. It is 0 for a member that
// settled down or is the first replacement in its slot.
func backoff(w *world, m *member) time.Duration {
	n := m.replacements()
	if n < 2 || settledDown(w, m) {
		return 0
	}
	return doubled(firstBackoff, n-2, maxBackoff)
}

// settledDown reports whether the member was Ready and is some minutes old. A later failure is then
// not a repetition of its predecessor's.
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

// replaceLost deletes the pods of lost members, which makes the loss final, and creates a new
// member for each, at most replacement.maxConcurrent at a time.
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
			p.held = append(p.held, l.name()) // its successor could not be created
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

// deletes returns the deletion that makes a loss final.
func (l loss) deletes() action.Action {
	return action.Action{Verb: action.Delete, Object: l.pod, Reason: string(l.reason),
		Detail: fmt.Sprintf("the member is lost and will not come back, %s", claimsFate(l.member))}
}

// successors returns how many of the lost members get a successor. In a set that creates new
// members before old ones are retired, the successor may already exist.
func (f *facts) successors() int {
	if f.maxExtra() == 0 {
		return len(f.lost)
	}
	return f.wanted() - len(f.alive) - len(f.returning)
}

// freeSlots returns how many more members replacement.maxConcurrent allows to be replaced now.
// Empty slots, and slots whose new member was never Ready, count as being replaced.
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

// emptySlots returns the number of slots without a member. The additional slots of a drain are not
// counted, so that lost members are replaced even if a quota refuses members for these slots.
func (f *facts) emptySlots() int {
	if f.replacesFirst() {
		return f.replicas() - f.occupied() - orphanSlots(f)
	}
	return f.wanted() - f.occupied() - orphanSlots(f)
}

// holdsSlot reports whether a lost member already counts as being replaced, because it fills the
// slot of another.
func (l loss) holdsSlot() bool { return !l.terminating() && l.stillReplacing() }

// blamed reports whether a member ended because of its template and not because of its Node.
func blamed(f *facts, m *member) bool { return !m.nodeLost() && blameTemplate(f.world, m) }

// restartEnded recreates members that ended and are not lost, with their names and data: evictions
// keep them, no member is Ready, or their template is the cause, so that a new member would end the
// same way.
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
