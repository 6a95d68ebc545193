package facts

import (
	"cmp"
	"slices"
	"time"

	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
)

// Occupied returns the number of slots for which createMissing creates no member: those of alive and
// returning members, those of lost members, which replaceLost fills, and those of members that may
// return, depending on the delete events of their pods.
func (f *Facts) Occupied() int {
	return len(f.Alive) + len(f.Lost) + len(f.Returning) + len(f.PendingEnds)
}

// Wanted returns the number of members that the set should have now: the replicas, and the members
// that are added before others are retired, in a surge update or during a drain.
func (f *Facts) Wanted() int {
	going := len(f.Leaving) // members that will be retired for new ones
	if f.MaxSurge() > 0 {
		for _, m := range f.Outdated() {
			if !f.Leaves(m) {
				going++
			}
		}
	}
	return f.Replicas() + min(f.MaxExtra(), going)
}

// WithoutSuccessor returns the departed members that have no successor yet, at most as many as there
// are empty slots. A retired member gets none.
func (f *Facts) WithoutSuccessor() []*Member {
	var waiting []*Member
	for _, m := range f.Departed {
		if !f.HasSuccessor[m.Name()] && !f.WasRetired(m) {
			waiting = append(waiting, m)
		}
	}
	return waiting[:min(len(waiting), max(0, f.Wanted()-f.Occupied()))]
}

// Outdated returns the members that still have to be updated. Members that are not Ready come
// first, because updating them costs no availability. The members that the partition keeps are left
// out.
func (f *Facts) Outdated() []*Member {
	old := f.NotAt(f.Target)
	slices.SortStableFunc(old, func(a, b *Member) int {
		return cmp.Or(YesFirst(a.DeleteFirst(), b.DeleteFirst()),
			YesFirst(!a.Ready(), !b.Ready()),
			b.Pod.CreationTimestamp.Compare(a.Pod.CreationTimestamp.Time),
			cmp.Compare(a.Name(), b.Name()))
	})
	return old[:max(0, len(old)-f.Partition())]
}

// Available reports whether the member counts as available: Ready for minReadySeconds, on an
// existing Node, and not in an in-place update. If it is Ready for a shorter time, Available also
// returns the remaining time.
func (w *World) Available(m *Member) (bool, time.Duration) {
	if m.Patching() || m.Node.removed() {
		return false, 0
	}
	return podstate.Available(m.Pod, time.Duration(w.Set.Spec.MinReadySeconds)*time.Second, w.Now)
}

// Serves reports whether the member is available now.
func (w *World) Serves(m *Member) bool {
	ok, _ := w.Available(m)
	return ok
}

// CountAvailable returns the number of available members, and the times at which more become
// available.
func (f *Facts) CountAvailable() (n int, changes []time.Time) {
	for _, m := range f.Alive {
		ok, missing := f.Available(m)
		if ok {
			n++
		} else if missing > 0 {
			changes = append(changes, f.Now.Add(missing))
		}
	}
	return n, changes
}

// YesFirst compares two bools and sorts true before false.
func YesFirst(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}
