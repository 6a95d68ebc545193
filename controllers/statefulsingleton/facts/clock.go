package facts

import (
	"slices"
	"time"

	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/spec"
)

// Since returns the time elapsed since from, in which this process could observe the cluster.
func (w *World) Since(from time.Time) time.Duration {
	return w.Watch.Elapsed(from, w.Now)
}

// Until returns the remaining time until d has elapsed since from (see Since).
func (w *World) Until(from time.Time, d time.Duration) time.Duration {
	return w.Watch.Deadline(from, d).Sub(w.Now)
}

// RequeueDelays returns the delays after which to reconcile again although no watch event is
// expected: when a Node has been missing long enough, when a new object has settled, when a
// gate has been running long enough, when a handover times out, and others. Delays of 0 or
// less are ignored.
func (f *Facts) RequeueDelays() []time.Duration {
	after := f.podRequeueDelays()
	if f.Object == nil {
		return after
	}
	if f.UsesLease() && f.leaseIsUnknown() {
		after = append(after, f.Until(f.LeaseSince, f.LeaseDuration()))
	}
	after = append(after, f.leaseReview(), f.SettlesIn(), f.MirrorMayReturn(), f.OwnersDue.Sub(f.Now))
	if f.Unguarded.Message != "" {
		after = append(after, spec.GuardReview)
	}
	if slices.ContainsFunc(f.Blockers, (*Member).Detached) {
		after = append(after, spec.DetachedReview)
	}
	if began := f.Object.Status.TransitionTimestamp; began != nil && f.Handover {
		after = append(after, f.Until(began.Time, f.patience()))
	}
	return after
}

// podRequeueDelays returns the delays that depend on a pod.
func (f *Facts) podRequeueDelays() []time.Duration {
	var after []time.Duration
	for _, m := range f.Blockers {
		if m.Node.Missing {
			after = append(after, f.Until(m.Node.MissingSince, spec.FenceAfter))
		}
		if m.HoldsLease && f.LeaseExpired() {
			after = append(after, m.RunsSince().Add(f.LeaseDuration()).Sub(f.Now))
		}
	}
	if m := f.Active; m != nil && m.CrashLoops {
		after = append(after, m.RunsSince().Add(spec.BackOffReset).Sub(f.Now))
	}
	for _, m := range f.Waiting {
		if m.AtGate() && f.Object != nil {
			after = append(after, f.Until(m.AtGateSince, spec.GateSteadyAfter))
		}
		if m.AtGate() && m.Family.Unknown != "" {
			after = append(after, f.Until(m.AtGateSince, spec.UnknownOwnerPatience))
		}
	}
	return after
}

// leaseReview returns the delay after which to check whether the agent of the holder renews the Lease; 0 if it does.
// Renewals trigger no pass. A Lease that has not changed for half of its duration does.
func (f *Facts) leaseReview() time.Duration {
	switch {
	case f.NotRenewed() != nil:
		return f.LeaseDuration() / 3
	case f.isUnchangedFor(f.LeaseDuration() / 2):
		return f.Until(f.LeaseSince, f.EndsAfter())
	}
	return 0
}

// MirrorMayReturn returns for how long the mirror of a missing static pod may still
// reappear.
func (w *World) MirrorMayReturn() time.Duration {
	if w.MirrorGone.IsZero() {
		return 0
	}
	return max(w.Until(w.MirrorGone, spec.MirrorReturns), 0)
}

// SettlesIn returns how long a new object has to wait before it may start pods; 0 if it
// may. The time counts from when this process first saw the object, because the clock of
// the API server may differ. An object that has started a pod is not new.
func (w *World) SettlesIn() time.Duration {
	if w.Object.Status.Holder != nil {
		return 0
	}
	return max(w.Until(w.FirstSeen, spec.SettleAfter), 0)
}

// patience returns the max duration of a handover.
func (w *World) patience() time.Duration {
	return time.Duration(*w.Object.Spec.MaxTransitionTime) * time.Second
}

// isLate reports whether the handover has exceeded spec.maxTransitionTime.
func (w *World) isLate() bool {
	if w.Object == nil || w.Invalid != "" {
		return false
	}
	began := w.Object.Status.TransitionTimestamp
	return began != nil && w.Since(began.Time) >= w.patience()
}
