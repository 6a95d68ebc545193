package facts

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/spec"
)

// Derive returns the facts that follow from the observed state. It has no side effects.
func Derive(w *World) *Facts {
	f := &Facts{World: w, HasSuccessor: map[string]bool{}, claimRecord: map[v1alpha1.RecordedClaim]bool{}}
	for _, recorded := range w.Set.Status.Claims {
		f.claimRecord[recorded] = true
	}
	if !w.Served() {
		return f
	}
	f.Spec = SpecRevision(w)
	f.Target = f.Spec
	if n := len(w.Revisions); n > 0 && f.SpecRefused() {
		f.Target = w.Revisions[n-1]
	}
	f.StayReason = f.stayReason()
	for _, m := range w.Members {
		if old := m.Replaces(); old != "" {
			f.HasSuccessor[old] = true
		}
	}
	f.ReadySince = FindReadySince(w)
	f.PendingEnds = pendingEnds(f)
	evicted := f.sortMembers()
	f.sortLosses()
	f.sortTaintEvicted(evicted)
	f.findLeaving()
	f.findCrashes()
	f.findNotReady()
	return f
}

// sortMembers sorts the members into Alive, Returning and Departed. Those that are lost are separated
// from Alive later, by sortLosses. It returns the members that the control plane evicts from a lost
// Node. They are sorted last, by sortTaintEvicted, because that depends on the number of empty slots.
func (f *Facts) sortMembers() (evicted []*Member) {
	f.Returning = StillReturning(f.World)
	reasons := map[types.UID]v1alpha1.UpdatingReason{}
	for _, e := range f.Returning {
		reasons[e.UID] = cmp.Or(e.Reason, v1alpha1.UpdatingUpdate)
	}
	for _, m := range f.Members {
		why, returns := reasons[m.Pod.UID]
		switch {
		case !m.Terminating():
			f.Alive = append(f.Alive, m)
		case returns:
			failsAt := returnFailsAt(f, m, why)
			if failsAt.IsZero() || !f.Reached(failsAt) {
				f.Changes = append(f.Changes, failsAt)
				continue // it stays in f.Returning
			}
			f.Returning = slices.DeleteFunc(f.Returning, func(e v1alpha1.UpdatingMember) bool { return e.Name == m.Name() })
			f.ReturnFailed = true
			evicted = append(evicted, m)
		case f.waitsToBeReplaced(m):
			evicted = append(evicted, m)
		default:
			f.Departed = append(f.Departed, m)
		}
	}
	return evicted
}

// sortTaintEvicted sorts the members that the control plane evicts from a lost Node. They are lost,
// at most one for each empty slot. The rest have departed: they already had successors, which are
// gone, or were recreated without the annotation that names their predecessor.
func (f *Facts) sortTaintEvicted(evicted []*Member) {
	for _, m := range evicted {
		if f.Occupied() < f.Wanted() {
			f.Lost = append(f.Lost, Loss{Member: m, Reason: m.nodeLossReason(), Due: f.Now})
		} else {
			f.Departed = append(f.Departed, m)
		}
	}
}

// findNotReady sets Down: the members that were Ready before, if no member is Ready now. It also sets
// Ignored: the members that have not been Ready for a long time and have no deadline for replacement.
func (f *Facts) findNotReady() {
	ready := false
	var down []string
	for _, m := range f.Alive {
		switch {
		case m.Ready():
			ready = true
		case m.wasReady() && !m.Patching():
			down = append(down, m.Name())
		}
		if u, unready := unreadinessOf(f.World, m); unready && u.seconds == 0 {
			at := u.since.Add(spec.AttentionTime)
			f.Changes = append(f.Changes, at)
			if f.Reached(at) {
				f.Ignored = append(f.Ignored, m.Name())
			}
		}
	}
	if !ready && len(f.Returning) == 0 {
		f.Down = down
	}
}

// findCrashes finds the members whose containers crash repeatedly, and the members that block the
// update because they restarted after it.
func (f *Facts) findCrashes() {
	for _, m := range f.Alive {
		if m.OnBadNode() || m.Patching() || !crashedWithRevision(f.World, m) {
			continue
		}
		again := m.Restarts() > 1
		if again {
			f.Crashing = append(f.Crashing, m.Name())
		}
		steadyAt := m.since(corev1.PodReady).Add(spec.SteadyTime)
		if steady := m.Ready() && f.Reached(steadyAt); steady && !again {
			continue
		}
		f.Changes = append(f.Changes, f.ProvenAt(m.Revision()))
		if m.Revision() == f.Target.Name {
			f.Unsettled = append(f.Unsettled, m.Name())
			f.Changes = append(f.Changes, steadyAt)
		}
	}
}

// findLeaving finds the alive members that leave their Node. Lost members on such a Node are not
// included: rule replaceLost replaces them.
func (f *Facts) findLeaving() {
	for _, m := range f.Alive {
		if f.Leaves(m) {
			f.Leaving = append(f.Leaving, m)
		}
	}
}

// sortLosses moves the members that are lost from Alive to Lost, sorted by the time of their loss.
// Members that would be lost, but are kept to protect data, stay in Alive, and are also in Failing,
// Roomless or Kept.
//
// A member can be lost for an evident cause, which does not depend on its template, and for being
// unready too long, which a bad template can cause too. The earlier loss counts, except that a loss by
// unreadiness is ignored if the member is protected from it.
func (f *Facts) sortLosses() {
	unready := f.countUnready()
	f.draining = slices.ContainsFunc(f.Alive, f.Leaves)
	var alive []*Member
	for _, m := range f.Alive {
		loss, isLost := evidentLoss(f.World, m)
		late, isLate := unreadyLoss(f.World, m)
		if isLost && isLate {
			isLate = late.Due.Before(loss.Due)
		}
		if isLate {
			switch f.protects(late, unready) {
			case badTemplate:
				f.Failing = append(f.Failing, m.Name())
			case noRoom:
				f.Roomless = append(f.Roomless, m.Name())
			case manyAtOnce:
				f.ManyUnready = unready
			default:
				loss, isLost = late, true
			}
		}
		switch {
		case !isLost:
			alive = append(alive, m)
		case f.Reached(loss.Due):
			kept, until := KeptInOutage(f, m)
			if !kept {
				f.Lost = append(f.Lost, loss)
				break
			}
			alive = append(alive, m)
			f.Changes = append(f.Changes, until)
			if !m.Ended() { // rule restartEnded recreates the pods of ended members
				f.Kept = append(f.Kept, m.Name())
			}
		default:
			alive = append(alive, m)
			f.Changes = append(f.Changes, loss.Due)
		}
	}
	f.Alive = alive
	slices.SortStableFunc(f.Lost, func(a, b Loss) int {
		return cmp.Or(a.Due.Compare(b.Due), cmp.Compare(a.Name(), b.Name()))
	})
}

// countUnready returns the number of members that are not Ready although their Nodes are healthy.
func (f *Facts) countUnready() int {
	unready := 0
	for _, m := range f.Alive {
		if !m.Ready() && !m.OnBadNode() {
			unready++
		}
	}
	return unready
}

// protection is the reason why a member that passed an unreadiness deadline is not replaced.
type protection int

const (
	unprotected protection = iota
	badTemplate            // a new member would fail the same way
	noRoom                 // nodes are cordoned, and a new member would be unschedulable too
	manyAtOnce             // so many members are not Ready that the cause is not in a single member
)

// protects returns why a member is not replaced for being unready, in a set with that many unready
// members. It uses the wall clock, because the reason is reported to users even if the operator was
// down during the deadline.
func (f *Facts) protects(late Loss, unready int) protection {
	switch {
	case !f.Reached(late.wall):
		return unprotected
	case blameTemplate(f.World, late.Member):
		return badTemplate
	case f.waitsForRoom(late):
		return noRoom
	case unready > f.MaxConcurrent():
		return manyAtOnce
	}
	return unprotected
}
