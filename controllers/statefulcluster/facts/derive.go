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
	f := &Facts{World: w, Succeeded: map[string]bool{}, claimRecord: map[v1alpha1.RecordedClaim]bool{}}
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
	f.Stays = f.startsAgain()
	for _, m := range w.Members {
		if old := m.Replaces(); old != "" {
			f.Succeeded[old] = true
		}
	}
	f.Up = FindUp(w)
	f.PendingEnds = pendingEnds(f)
	taken := f.sortMembers()
	f.sortLosses()
	f.takeIn(taken)
	f.findLeaving()
	f.findCrashes()
	f.findOutage()
	return f
}

// sortMembers sorts the members into alive, returning and departed. It returns the members that the
// control plane evicts from a lost Node, which are sorted last.
func (f *Facts) sortMembers() (taken []*Member) {
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
				continue // it is already counted as returning
			}
			f.Returning = slices.DeleteFunc(f.Returning, func(e v1alpha1.UpdatingMember) bool { return e.Name == m.Name() })
			f.ReturnFailed = true
			taken = append(taken, m)
		case f.waitsToBeReplaced(m):
			taken = append(taken, m)
		default:
			f.Departed = append(f.Departed, m)
		}
	}
	return taken
}

// takeIn sorts the members that the control plane evicts from a lost Node. They are lost as far as
// slots are empty without them. The others already had successors, which are gone or were recreated
// without the annotation that names their predecessor.
func (f *Facts) takeIn(taken []*Member) {
	for _, m := range taken {
		if f.Occupied() < f.Wanted() {
			f.Lost = append(f.Lost, Loss{Member: m, Reason: m.takenBecause(), Due: f.Now})
		} else {
			f.Departed = append(f.Departed, m)
		}
	}
}

// findOutage finds the members that were Ready before in a set with no Ready member, and the
// members that have not been Ready for a long time and have no deadline for replacement.
func (f *Facts) findOutage() {
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
		if m.NodeLost() || m.Patching() || !crashedWithRevision(f.World, m) {
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

// findLeaving finds the alive members that leave their Node. Lost members are replaced by
// replaceLost.
func (f *Facts) findLeaving() {
	for _, m := range f.Alive {
		if f.Leaves(m) {
			f.Leaving = append(f.Leaving, m)
		}
	}
}

// sortLosses separates the alive members from the lost ones, sorted by the time of their loss. It
// also finds the members that are not lost only because of the rules that protect data.
func (f *Facts) sortLosses() {
	unready := f.countUnready()
	f.draining = slices.ContainsFunc(f.Alive, f.Leaves)
	var alive []*Member
	for _, m := range f.Alive {
		found, ok := nodeLoss(f.World, m)
		late, isLate := unreadyLoss(f.World, m)
		if ok && isLate {
			isLate = late.Due.Before(found.Due)
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
				found, ok = late, true
			}
		}
		switch {
		case !ok:
			alive = append(alive, m)
		case f.Reached(found.Due):
			kept, until := KeptInOutage(f, m)
			if !kept {
				f.Lost = append(f.Lost, found)
				break
			}
			alive = append(alive, m)
			f.Changes = append(f.Changes, until)
			if !m.Ended() { // restartEnded handles ended members
				f.Kept = append(f.Kept, m.Name())
			}
		default:
			alive = append(alive, m)
			f.Changes = append(f.Changes, found.Due)
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
		if !m.Ready() && !m.NodeLost() {
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

// protects returns the protection of a member, in a set with that many unready members. It uses the
// wall clock, because the protection is reported to users even if the operator was down during the
// deadline.
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
