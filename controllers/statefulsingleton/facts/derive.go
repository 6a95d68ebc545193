package facts

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
)

// Derive computes the facts from a world. It is pure.
func Derive(w *World) *Facts {
	f := &Facts{World: w}
	for _, m := range w.Pods {
		m.verdict = w.verdictOf(m)
		switch m.Standing {
		case mayRun:
			f.Blockers = append(f.Blockers, m)
		case waits:
			f.Waiting = append(f.Waiting, m)
		}
	}
	slices.SortStableFunc(f.Waiting, byTurn)
	f.Active = activeOf(f.Blockers)
	f.Started = slices.DeleteFunc(slices.Clone(f.Blockers), func(m *Member) bool {
		isUnknown := m.Leased && !m.HasTurn() // the Lease is missing or cannot be read
		return isUnknown || !m.mayHaveStarted()
	})
	f.Leaving = f.findLeaving()
	f.Handover = f.inHandover()
	f.Late = f.Handover && w.isLate()
	return f
}

// inHandover reports whether a handover is in progress: a pod waits, and either no other
// pod may be running or a blocker has to stop. The same is true while the active pod has to
// leave its Node.
func (f *Facts) inHandover() bool {
	switch {
	case f.Leaving != nil:
		return true
	case len(f.Waiting) == 0:
		return false
	case len(f.Blockers) == 0:
		return true
	}
	return slices.ContainsFunc(f.Blockers, f.HasToGo)
}

// HasToGo reports whether a blocker has to stop so that a waiting pod can start: it is
// terminating or has ended without proof, it has no gate, another revision replaces it, or
// it cannot start its program while another pod could.
func (f *Facts) HasToGo(m *Member) bool {
	switch {
	case !m.Lives(), m.IsUnmanaged(), f.IsIdle(m):
		return true
	case f.DeletesOnTimeout() && f.MayBeReplaced(m):
		return true
	}
	return len(f.Successors(m)) > 0
}

// IsIdle reports whether a granted pod cannot start its program while a waiting pod could.
func (f *Facts) IsIdle(m *Member) bool {
	return m.HasTurn() && !m.Begun() && slices.ContainsFunc(f.Waiting, (*Member).AtGate)
}

// Several reports whether the programs of several pods may be running. Pods with the gate
// run at the same time only if a user released them.
func (f *Facts) Several() bool {
	return len(f.Started) > 1
}

// LastEnded returns the newest ended pod if its kubelet refused or evicted it; nil if it
// did not.
func (f *Facts) LastEnded() *Member {
	for _, m := range slices.Backward(f.Pods) {
		if !podstate.Ended(m.Pod) {
			continue
		}
		if s := &m.Pod.Status; s.Phase == corev1.PodFailed && s.Reason != "" {
			return m
		}
		return nil
	}
	return nil
}
