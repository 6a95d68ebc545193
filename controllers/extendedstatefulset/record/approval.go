package record

import (
	"cmp"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/children"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/spec"
)

// This file has the requirements of an upgrade in addition to good canaries: the result of a Job that
// checks the canaries, and with approval Manual the approval of a user. The upgrade waits for both in
// phase Canary, so that the canaries are still observed. canaryWatchTime is paused while the canaries
// are good. updateWatchTime is paused while the upgrade waits for approval.

// lacksApproval reports whether the upgrade must wait for approval. An upgrade that continued after
// approval needs no second approval.
func (r *recorder) lacksApproval() bool {
	wanted := &r.w.Set.Spec
	if r.Update.Approved || !spec.NeedsApproval(wanted) {
		return false
	}
	return wanted.ApprovedRevision != UpdateRevision(r.ExtendedStatefulSetStatus)
}

// canaryJobResult returns the result of the Job that checks the canaries; "" if it has not ended, or its
// result is unknown. Without such a Job it returns JobSucceeded.
func (r *recorder) canaryJobResult() v1alpha1.JobResult {
	job := spec.JobOfCanaries(&r.w.Set.Spec.UpdateStrategy)
	if job == nil {
		return v1alpha1.JobSucceeded
	}
	result := r.job(children.CanaryJob, job, &r.Update.CanaryJob)
	if result == v1alpha1.JobUnknown {
		return ""
	}
	return result
}

// canariesGood advances an upgrade whose canaries are good: it waits for their Job, then for approval,
// and then enters phase Promoting. GoodAt is when the canaries became good, HeldAt when the wait for
// approval began.
func (r *recorder) canariesGood(jobResult v1alpha1.JobResult) {
	u, now := r.Update, r.now()
	switch {
	case jobResult == "":
		r.resumeUpdateTimeout() // the Job may have been added while the upgrade waited for approval
		u.GoodAt = cmp.Or(u.GoodAt, &now)
	case r.lacksApproval():
		u.GoodAt, u.HeldAt = cmp.Or(u.GoodAt, &now), cmp.Or(u.HeldAt, &now)
	default:
		r.clearWaiting()
		u.Approved = u.Approved || spec.NeedsApproval(&r.w.Set.Spec)
		r.Phase = v1alpha1.PhasePromoting
	}
}

// resumeCanaryTimeout resumes the timeouts for canaries that were good and no longer are. If they were
// good for canaryWatchTime, the timeouts restart. Otherwise they continue, so that flapping canaries do
// not get more time.
func (r *recorder) resumeCanaryTimeout(c *facts.Child) {
	u, clock := r.Update, r.w.Clock()
	lasted := clock.RanOut(u.GoodAt.Time, clock.CanaryTime())
	switch {
	case lasted:
		now := r.now()
		u.CanaryAt = &now
	case c == nil:
		u.CanaryAt = r.resumedStart(u.CanaryAt.Time, u.GoodAt.Time)
	default:
		u.CanaryAt = r.resumedStart(WatchedSince(u, c), u.GoodAt.Time)
	}
	held := u.HeldAt
	r.clearWaiting()
	if lasted && held != nil {
		u.StartedAt = u.CanaryAt
	}
}

// clearWaiting clears the waiting state of an upgrade that no longer waits in phase Canary.
func (r *recorder) clearWaiting() {
	r.resumeUpdateTimeout()
	r.Update.GoodAt = nil
}

// resumeUpdateTimeout resumes updateWatchTime after the wait for approval.
func (r *recorder) resumeUpdateTimeout() {
	if u := r.Update; u.HeldAt != nil {
		u.StartedAt, u.HeldAt = r.resumedStart(u.StartedAt.Time, u.HeldAt.Time), nil
	}
}

// resumedStart returns the new start of a timer that began at from and was paused at pause. The time
// that has elapsed since the new start equals the time that had elapsed at the pause.
func (r *recorder) resumedStart(from, pause time.Time) *metav1.Time {
	begin := wholeSecond(r.w.Now.Add(-r.w.Watch.Elapsed(from, pause)))
	return &begin
}

// WatchedSince returns when canaryWatchTime begins: when the canaries were requested, or when their
// StatefulSet was created, if that was later. Until the StatefulSet exists only updateWatchTime counts,
// because the delay is not caused by the version.
func WatchedSince(u *v1alpha1.UpdateStatus, c *facts.Child) time.Time {
	if made := c.Set.CreationTimestamp.Time; made.After(u.CanaryAt.Time) {
		return made
	}
	return u.CanaryAt.Time
}

// limitWithProbation returns limit, plus the probation if all required pods are available. Otherwise an
// attempt could fail although its pods became Ready in time.
func (r *recorder) limitWithProbation(limit time.Duration) time.Duration {
	if r.requiredAvailable() {
		return limit + r.w.Clock().Probation()
	}
	return limit
}

// requiredAvailable reports whether all pods that the phase requires are available.
func (r *recorder) requiredAvailable() bool {
	n := r.w.AvailablePods(r.w.Children.Find(r.zone().Index, r.UpdateVersion))
	switch r.Phase {
	case v1alpha1.PhaseCanary:
		return n >= r.w.Canaries()
	case v1alpha1.PhasePromoting:
		return n == r.w.Replicas
	case v1alpha1.PhasePostJob:
		return r.w.Standing(r.UpdateVersion).Complete()
	}
	return false
}
