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

// unapproved reports whether the upgrade must wait for approval. An upgrade that continued after
// approval needs no second approval.
func (b *recorder) unapproved() bool {
	wanted := &b.w.Set.Spec
	if b.Update.Approved || !spec.NeedsApproval(wanted) {
		return false
	}
	return wanted.ApprovedRevision != UpdateRevision(b.ExtendedStatefulSetStatus)
}

// verdict returns the result of the Job that checks the canaries; "" if it has not ended, or its result
// is unknown. Without such a Job it returns JobSucceeded.
func (b *recorder) verdict() v1alpha1.JobResult {
	job := spec.JobOfCanaries(&b.w.Set.Spec.UpdateStrategy)
	if job == nil {
		return v1alpha1.JobSucceeded
	}
	result := b.job(children.CanaryJob, job, &b.Update.CanaryJob)
	if result == v1alpha1.JobUnknown {
		return ""
	}
	return result
}

// canariesGood advances an upgrade whose canaries are good.
func (b *recorder) canariesGood(verdict v1alpha1.JobResult) {
	u, now := b.Update, b.clock()
	switch {
	case verdict == "":
		b.heldNoMore() // the Job may have been added while the upgrade waited for approval
		u.GoodAt = cmp.Or(u.GoodAt, &now)
	case b.unapproved():
		u.GoodAt, u.HeldAt = cmp.Or(u.GoodAt, &now), cmp.Or(u.HeldAt, &now)
	default:
		b.waitsNoMore()
		u.Approved = u.Approved || spec.NeedsApproval(&b.w.Set.Spec)
		b.Phase = v1alpha1.PhasePromoting
	}
}

// goodNoMore resumes the timeouts for canaries that were good and no longer are. If they were good for
// canaryWatchTime, the timeouts restart. Otherwise they continue, so that flapping canaries do not get
// more time.
func (b *recorder) goodNoMore(c *facts.Child) {
	u, clock := b.Update, b.w.Clock()
	lasted := clock.RanOut(u.GoodAt.Time, clock.CanaryTime())
	switch {
	case lasted:
		now := b.clock()
		u.CanaryAt = &now
	case c == nil:
		u.CanaryAt = b.goesOn(u.CanaryAt.Time, u.GoodAt.Time)
	default:
		u.CanaryAt = b.goesOn(WatchedSince(u, c), u.GoodAt.Time)
	}
	held := u.HeldAt
	b.waitsNoMore()
	if lasted && held != nil {
		u.StartedAt = u.CanaryAt
	}
}

// waitsNoMore clears the waiting state of an upgrade that continues or fails.
func (b *recorder) waitsNoMore() {
	b.heldNoMore()
	b.Update.GoodAt = nil
}

// heldNoMore resumes updateWatchTime after a pause.
func (b *recorder) heldNoMore() {
	if u := b.Update; u.HeldAt != nil {
		u.StartedAt, u.HeldAt = b.goesOn(u.StartedAt.Time, u.HeldAt.Time), nil
	}
}

// goesOn returns the start of a timer that began at from and was paused at stood. The time that has
// elapsed since the returned start equals the time that had elapsed at the pause.
func (b *recorder) goesOn(from, stood time.Time) *metav1.Time {
	begin := wholeSecond(b.w.Now.Add(-b.w.Watch.Elapsed(from, stood)))
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

// allowed returns limit, plus the probation if all required pods are Ready.
func (b *recorder) allowed(limit time.Duration) time.Duration {
	if b.allServe() {
		return limit + b.w.Clock().Probation()
	}
	return limit
}

// allServe reports whether all pods that the phase requires serve.
func (b *recorder) allServe() bool {
	n := b.w.Serving(b.w.Children.Find(b.zone().Index, b.UpdateVersion))
	switch b.Phase {
	case v1alpha1.PhaseCanary:
		return n >= b.w.Canaries()
	case v1alpha1.PhasePromoting:
		return n == b.w.Replicas
	case v1alpha1.PhasePostJob:
		return b.w.Standing(b.UpdateVersion).Complete()
	}
	return false
}
