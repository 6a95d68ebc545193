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

// What an upgrade needs beside canaries that are good: the verdict of a job that is asked
// about them, and with approval Manual the word of a user. It waits for both in phase
// Canary, so that the canaries are looked at as before. While they are good,
// canaryWatchTime stands still, and while they wait for the user updateWatchTime too.

// revisionDigits is how much of a digest names a revision: so much that no other
// content can be found that has it.
const revisionDigits = 16

// longestRevision is how long the name of a revision may be.
const longestRevision = 40

// revisionName names a version by its number and its content. A number is given out once
// in the life of an object, and the content tells apart those of an object that is made
// again. "" is none.
func revisionName(number int64, digest string) string {
	if number == 0 {
		return ""
	}
	return fmt.Sprintf("v%d-%s", number, excerpt.Of(digest, revisionDigits))
}

// updateRevision is the revision of the upgrade of a status; without one that which serves.
func updateRevision(s *v1alpha1.ExtendedStatefulSetStatus) string {
	if s.Update == nil {
		return revisionName(s.CurrentVersion, s.CurrentDigest)
	}
	return revisionName(s.UpdateVersion, s.Update.Digest)
}

// asksForApproval reports whether a version waits for a user. What is no word of the
// schema waits too.
func asksForApproval(spec *v1alpha1.ExtendedStatefulSetSpec) bool {
	return cmp.Or(spec.Approval, v1alpha1.ApprovalAutomatic) != v1alpha1.ApprovalAutomatic
}

// unapproved reports whether the upgrade must not go on from its canaries. A word that it
// went on with is not asked for again.
func (b *recorder) unapproved() bool {
	spec := &b.w.set.Spec
	switch {
	case b.Update.Approved, !asksForApproval(spec):
		return false
	}
	return spec.ApprovedRevision != updateRevision(b.ExtendedStatefulSetStatus)
}

// verdict returns the result of the job that is asked about the canaries: "" if it has not
// ended, or its result is unknown. Without one they are good as they are.
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

// canariesGood takes an upgrade whose canaries are good on to what it needs next.
func (b *recorder) canariesGood(verdict v1alpha1.JobResult) {
	u, now := b.Update, b.clock()
	switch {
	case verdict == "":
		b.heldNoMore() // the job may have been added while it waited for approval
		u.GoodAt = cmp.Or(u.GoodAt, &now)
	case b.unapproved():
		u.GoodAt, u.HeldAt = cmp.Or(u.GoodAt, &now), cmp.Or(u.HeldAt, &now)
	default:
		b.waitsNoMore()
		u.Approved = u.Approved || asksForApproval(&b.w.set.Spec)
		b.Phase = v1alpha1.PhasePromoting
	}
}

// goodNoMore lets the times of canaries go on that were good, and are not any more. Such
// as were good for as long as they may take to become so have their time again; such as
// fail now and then have it once.
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

// waitsNoMore is for an upgrade that goes on, or back.
func (b *recorder) waitsNoMore() {
	b.heldNoMore()
	b.Update.GoodAt = nil
}

// heldNoMore lets updateWatchTime go on where it stood still.
func (b *recorder) heldNoMore() {
	if u := b.Update; u.HeldAt != nil {
		u.StartedAt, u.HeldAt = b.goesOn(u.StartedAt.Time, u.HeldAt.Time), nil
	}
}

// goesOn is the begin of a time that began at from and stood still since stood, such that
// as much of it is over now as was then.
func (b *recorder) goesOn(from, stood time.Time) *metav1.Time {
	begin := wholeSecond(b.w.now.Add(-b.w.watch.Elapsed(from, stood)))
	return &begin
}

// waitingForApproval: good canaries wait for a user.
func waitingForApproval(w *world, _ *plan) notice {
	u := w.record.Update
	if u == nil || u.HeldAt == nil || givenUp(w.record) {
		return notice{}
	}
	return notice{Reason: v1alpha1.ReasonWaitingForApproval, Message: fmt.Sprintf(
		"the canaries of version %d are good, and it takes over when its revision is approved: %s. To go back, apply the template of version %d, which needs no approval",
		w.record.UpdateVersion,
		approve(w.set, updateRevision(w.record)),
		w.record.CurrentVersion,
	)}
}

// approve is the command that approves a revision.
func approve(set *v1alpha1.ExtendedStatefulSet, revision string) string {
	return fmt.Sprintf(
		`kubectl -n %s patch ests %s --type=merge -p '{"spec":{"approvedRevision":"%s"}}'`,
		set.Namespace,
		set.Name,
		revision,
	)
}

// strayApproval says that a word was given to no revision of now; "" if it was not.
func strayApproval(w *world) string {
	if !asksForApproval(&w.set.Spec) {
		return ""
	}
	word, next := w.set.Spec.ApprovedRevision, updateRevision(w.record)
	serves := revisionName(w.record.CurrentVersion, w.record.CurrentDigest)
	if slices.Contains([]string{"", serves, next}, word) {
		return ""
	}
	return fmt.Sprintf(
		"; spec.approvedRevision is %q, which is the revision of neither the version that serves nor the upgrade (%s), and has no effect",
		excerpt.Of(word, longestRevision),
		next,
	)
}
