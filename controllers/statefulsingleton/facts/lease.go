package facts

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/stateful-operator/stateful-operator/controllers/internal/fencing"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/children"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/spec"
)

// The Lease, as one more proof that a program does not run. The protocol is in package fencing, and
// decision 0052 has the models. An agent runs the program of a leased pod only while the Lease names the
// pod and is renewed. The epoch of the holder in the status is also that of the Lease. If it is higher, the
// holder is pending: the Lease has not been written for it.

// UsesLease reports whether a Lease decides which pod runs its program.
func (w *World) UsesLease() bool {
	if w.Object != nil && (spec.FencedByLease(w.Object) || w.leaseWasUsed()) {
		return true
	}
	return slices.ContainsFunc(w.Pods, func(m *Member) bool { return m.Leased })
}

// leaseWasUsed reports whether a pod has got a grant while there was a Lease.
func (w *World) leaseWasUsed() bool {
	return w.Object.Status.Holder != nil && w.Object.Status.Holder.Lease != ""
}

// LeaseEpoch returns the number of grants by the Lease; 0 without a Lease.
func (w *World) LeaseEpoch() int64 { return fencing.EpochOf(w.Lease) }

// leaseHolder returns the identity of the holder of the Lease; "" if there is none.
func (w *World) leaseHolder() string { return fencing.HolderOf(w.Lease) }

// HolderNames returns the names of the pods that the status and the Lease name.
func (w *World) HolderNames() []string {
	var names []string
	if h := w.Object.Status.Holder; h != nil {
		names = append(names, h.Name)
	}
	if name, _, named := strings.Cut(w.leaseHolder(), "_"); named && !slices.Contains(names, name) {
		names = append(names, name)
	}
	return names
}

// NamesHolder reports whether the status or the Lease names this pod.
func (w *World) NamesHolder(pod *corev1.Pod) bool {
	if h := w.Object.Status.Holder; h != nil && h.UID == pod.UID {
		return true
	}
	return w.leaseHolder() == fencing.Identity(pod)
}

// holdsLease reports whether the Lease names the pod.
func (w *World) holdsLease(m *Member) bool {
	return m.Leased && w.leaseHolder() == fencing.Identity(m.Pod)
}

// LeaseDuration returns the time after the last change of the Lease in which its holder may run. If the holder is
// unknown, it is the longest one of all pods.
func (w *World) LeaseDuration() time.Duration {
	var longest time.Duration
	for _, m := range w.Pods {
		if m.Leased && (w.leaseIsUnknown() || w.holdsLease(m)) {
			longest = max(longest, children.LeaseDuration(m.Pod))
		}
	}
	if longest == 0 && w.leaseIsUnknown() {
		longest = fencing.MaxSeconds * time.Second // that of a pod that is not seen
	}
	if w.Lease != nil {
		longest = max(longest, time.Duration(ptr.Deref(w.Lease.Spec.LeaseDurationSeconds, 0))*time.Second)
	}
	return min(max(longest, fencing.MinSeconds*time.Second), fencing.MaxSeconds*time.Second)
}

// leaseIsUnknown reports whether the Lease does not show which pod it started last: it is missing, or was
// recreated.
func (w *World) leaseIsUnknown() bool { return w.LeaseEpoch() == 0 }

// EndsAfter returns the time without a renewal after which the agent of the holder ends the program.
func (w *World) EndsAfter() time.Duration { return w.LeaseDuration() * 2 / 3 }
