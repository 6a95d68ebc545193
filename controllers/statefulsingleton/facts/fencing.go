package facts

import "slices"

// UnseenHolder returns the identity of the holder of the Lease if it may run and is not among the pods; else
// "". Such a pod was force deleted.
func (w *World) UnseenHolder() string {
	holder := w.leaseHolder()
	if holder == "" || w.LeaseExpired() || slices.ContainsFunc(w.Pods, w.holdsLease) {
		return ""
	}
	return holder
}

// HolderIsPending reports whether status.holder names a pod that can still get the grant, and the Lease has not
// been written for it.
func (w *World) HolderIsPending() bool {
	return w.Object != nil && slices.ContainsFunc(w.Pods, w.isPending)
}
