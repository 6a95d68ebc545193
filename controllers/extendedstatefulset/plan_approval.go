package extendedstatefulset

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/excerpt"
)

// This file has the requirements of an upgrade in addition to good canaries: the result of a Job that
// checks the canaries, and with approval Manual the approval of a user. The upgrade waits for both in
// phase Canary, so that the canaries are still observed. canaryWatchTime is paused while the canaries
// are good. updateWatchTime is paused while the upgrade waits for approval.

// revisionDigits is the number of digest digits in the name of a revision. It is large enough that no
// other content with the same digits can be found.
const revisionDigits = 16

// maxRevision is the max length of the name of a revision.
const maxRevision = 40

// revisionName returns the name of a version, made of its number and its content. A number is used once
// in the lifetime of an object. The content distinguishes versions of an object that was deleted and
// recreated. "" means none.
func revisionName(number int64, digest string) string {
	if number == 0 {
		return ""
	}
	return fmt.Sprintf("v%d-%s", number, excerpt.Of(digest, revisionDigits))
}

// updateRevision returns the revision of the upgrade in a status, or the current revision if there is
// no upgrade.
func updateRevision(s *v1alpha1.ExtendedStatefulSetStatus) string {
	if s.Update == nil {
		return revisionName(s.CurrentVersion, s.CurrentDigest)
	}
	return revisionName(s.UpdateVersion, s.Update.Digest)
}

// asksForApproval reports whether a version waits for approval. Values that the schema does not allow
// count as Manual.
func asksForApproval(spec *v1alpha1.ExtendedStatefulSetSpec) bool {
	return cmp.Or(spec.Approval, v1alpha1.ApprovalAutomatic) != v1alpha1.ApprovalAutomatic
}

// unapproved reports whether the upgrade must wait for approval. An upgrade that continued after
// approval needs no second approval.
func (b *recorder) unapproved() bool {
	wanted := &b.w.set.Spec
	if b.Update.Approved || !asksForApproval(wanted) {
		return false
	}
	return wanted.ApprovedRevision != updateRevision(b.ExtendedStatefulSetStatus)
}

// verdict returns the result of the Job that checks the canaries; "" if it has not ended, or its result
// is unknown. Without such a Job it returns JobSucceeded.
func (b *recorder) verdict() v1alpha1.JobResult {
	job := jobOfCanaries(&b.w.set.Spec.UpdateStrategy)
	if job == nil {
		return v1alpha1.JobSucceeded
	}
	result := b.job(canaryJob, job, &b.Update.CanaryJob)
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
		u.Approved = u.Approved || asksForApproval(&b.w.set.Spec)
		b.Phase = v1alpha1.PhasePromoting
	}
}

// goodNoMore resumes the timeouts for canaries that were good and no longer are. If they were good for
// canaryWatchTime, the timeouts restart. Otherwise they continue, so that flapping canaries do not get
// more time.
func (b *recorder) goodNoMore(c *child) {
	u, clock := b.Update, b.w.clock()
	lasted := clock.ranOut(u.GoodAt.Time, clock.canaryTime())
	switch {
	case lasted:
		now := b.clock()
		u.CanaryAt = &now
	case c == nil:
		u.CanaryAt = b.goesOn(u.CanaryAt.Time, u.GoodAt.Time)
	default:
		u.CanaryAt = b.goesOn(watchedSince(u, c), u.GoodAt.Time)
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
	begin := wholeSecond(b.w.now.Add(-b.w.watch.Elapsed(from, stood)))
	return &begin
}

// waitingForApproval reports that good canaries wait for approval.
func waitingForApproval(f *facts, _ *plan) notice {
	u := f.record.Update
	if u == nil || u.HeldAt == nil || givenUp(f.record) {
		return notice{}
	}
	return notice{Reason: v1alpha1.ReasonWaitingForApproval, Message: fmt.Sprintf(
		"the canaries of version %d are good; waiting for approval of its revision: %s. To roll back, apply the template of version %d, which needs no approval",
		f.record.UpdateVersion,
		approve(f.set, updateRevision(f.record)),
		f.record.CurrentVersion,
	)}
}

// approve returns the command that approves a revision.
func approve(set *v1alpha1.ExtendedStatefulSet, revision string) string {
	return fmt.Sprintf(
		`kubectl -n %s patch ests %s --type=merge -p '{"spec":{"approvedRevision":"%s"}}'`,
		set.Namespace,
		set.Name,
		revision,
	)
}

// strayApproval reports that the approved revision matches neither the current version nor the upgrade;
// "" if it matches.
func strayApproval(f *facts) string {
	if !asksForApproval(&f.set.Spec) {
		return ""
	}
	word, next := f.set.Spec.ApprovedRevision, updateRevision(f.record)
	serves := revisionName(f.record.CurrentVersion, f.record.CurrentDigest)
	if slices.Contains([]string{"", serves, next}, word) {
		return ""
	}
	return fmt.Sprintf(
		"; spec.approvedRevision %q is ignored: it is the revision of neither the current version nor the upgrade (%s)",
		excerpt.Of(word, maxRevision),
		next,
	)
}
