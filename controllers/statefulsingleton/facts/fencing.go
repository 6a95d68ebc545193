package facts

import "slices"

// UnseenHolder returns the identity of the holder of the Lease if it may run and is not among the pods; else
// "". Such a pod was force deleted.
func (w *World) UnseenHolder() string {
	holder := w.leaseHolder()
	if w.isLost() {
		holder = unknownHolder
	}
	if holder == "" || w.LeaseExpired() || slices.ContainsFunc(w.Pods, w.holdsLease) {
		return ""
	}
	return holder
}

// unknownHolder stands for the holder of a Lease that another client has deleted.
const unknownHolder = "an unknown pod"

// isLost reports whether another client has deleted a Lease that was used.
func (w *World) isLost() bool {
	return w.Object != nil && w.LeaseProblem.Message == "" && w.leaseIsUnknown() && w.leaseWasUsed()
}

// HolderIsPending reports whether status.holder names a pod without an agent that can still get the grant, and the
// Lease has not been written for it. A pending pod with an agent starts only by a write of the Lease.
func (w *World) HolderIsPending() bool {
	if w.Object == nil {
		return false
	}
	return slices.ContainsFunc(w.Pods, func(m *Member) bool { return !m.Leased && w.isPending(m) })
}
