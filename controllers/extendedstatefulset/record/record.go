package record

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/children"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/spec"
	"github.com/stateful-operator/stateful-operator/controllers/internal/excerpt"
)

// Derive returns the facts of a world. It does not change the world.
func Derive(w *facts.World) *facts.Facts {
	if w.Ignored() {
		return &facts.Facts{World: w, Record: w.Set.Status.DeepCopy()}
	}
	return &facts.Facts{World: w, Record: Advance(w)}
}

// recorder updates the record from a world.
type recorder struct {
	*v1alpha1.ExtendedStatefulSetStatus
	w *facts.World
}

// basis has the fields of a status that decisions use, except the upgrade in progress.
type basis struct {
	current, update, highest int64
	digest                   string
	phase                    v1alpha1.Phase
	attempts                 int32
	zones                    int
}

func basisOf(s *v1alpha1.ExtendedStatefulSetStatus) basis {
	return basis{
		current: s.CurrentVersion, update: s.UpdateVersion, highest: s.VersionHighWater,
		digest: s.CurrentDigest, phase: s.Phase, attempts: s.Attempts, zones: len(s.Zones),
	}
}

// SameRecord reports whether two statuses lead to the same decisions.
func SameRecord(a, b *v1alpha1.ExtendedStatefulSetStatus) bool {
	return basisOf(a) == basisOf(b) && apiequality.Semantic.DeepEqual(a.Update, b.Update)
}

// Advance returns the record for this world. It is at most one step ahead of the present record.
func Advance(w *facts.World) *v1alpha1.ExtendedStatefulSetStatus {
	b := recorder{w.Set.Status.DeepCopy(), w}
	b.nameZones()
	b.recoverLost()
	switch {
	case b.CurrentVersion == 0, b.CurrentDigest != w.Digest && len(w.Children.OfVersion(b.CurrentVersion)) == 0:
		b.first()
	case b.CurrentDigest == w.Digest:
		b.rest()
	case b.Update == nil || b.Update.Digest != w.Digest:
		b.consider()
	default:
		b.proceed()
	}
	return b.ExtendedStatefulSetStatus
}

func (b *recorder) nameZones() {
	b.Zones = append(b.Zones, b.w.Seen...)
	for _, z := range b.w.Zones {
		known := slices.ContainsFunc(b.Zones, func(s v1alpha1.ZoneStatus) bool { return s.Name == z.Name })
		if z.Index != children.NoZone && !known {
			b.Zones = append(b.Zones, v1alpha1.ZoneStatus{Name: z.Name, Index: z.Index})
		}
	}
}

// recoverLost restores the fields of a lost status, for example after the restore of a backup: the
// version numbers in use, and the current version.
func (b *recorder) recoverLost() {
	for _, c := range b.w.Children {
		b.VersionHighWater = max(b.VersionHighWater, c.Version)
	}
	for _, job := range b.w.Jobs {
		b.VersionHighWater = max(b.VersionHighWater, facts.VersionOfJob(job))
	}
	if b.CurrentVersion != 0 {
		return
	}
	if best := b.w.Children.MostLikelyCurrent(); best != nil {
		b.CurrentVersion, b.CurrentDigest, b.UpdateVersion = best.Version, best.Digest(), best.Version
	}
}

// first assigns a version that has no predecessor. No version serves, so there is nothing to upgrade
// from.
func (b *recorder) first() {
	number := b.VersionHighWater + 1
	if c := b.w.Children.WithDigest(b.w.Digest, 0); c != nil {
		number = c.Version
	}
	b.VersionHighWater = max(b.VersionHighWater, number)
	b.CurrentVersion, b.UpdateVersion, b.CurrentDigest = number, number, b.w.Digest
	b.Update, b.Attempts, b.Phase = nil, 0, v1alpha1.PhasePromoting
}

// rest handles a template that equals the template of the current version.
func (b *recorder) rest() {
	b.Update, b.UpdateVersion = nil, b.CurrentVersion
	switch {
	case b.w.Children.Others(b.CurrentVersion):
		b.Phase, b.Attempts = v1alpha1.PhaseCleaningUp, 0
	case b.Phase == v1alpha1.PhasePromoting && !b.w.Standing(b.CurrentVersion).Complete():
	default:
		b.Phase, b.Attempts = v1alpha1.PhaseStable, 0
	}
}

// consider begins an upgrade once the ordinals of an earlier upgrade are returned and the current
// version is Ready.
func (b *recorder) consider() {
	if b.Update != nil && b.succeedsAnyway() {
		b.CurrentVersion, b.CurrentDigest = b.UpdateVersion, b.Update.Digest
	}
	b.Update, b.Attempts = nil, 0
	if b.upgradeWaits() {
		b.Phase, b.UpdateVersion = v1alpha1.PhaseWaiting, b.CurrentVersion
		return
	}
	number, earlier := b.VersionHighWater+1, int32(0)
	if c := b.w.Children.WithDigest(b.w.Digest, b.CurrentVersion); c != nil {
		number, earlier = c.Version, c.Attempts()
	}
	b.VersionHighWater, b.UpdateVersion, b.Attempts = max(b.VersionHighWater, number), number, 1
	b.Update = &v1alpha1.UpdateStatus{
		Digest:          b.w.Digest,
		Handover:        spec.HandoverOf(b.w.Set),
		EarlierAttempts: earlier,
	}
	b.begin()
}

// upgradeWaits reports whether an upgrade cannot begin yet. Condition Progressing has the reason.
func (b *recorder) upgradeWaits() bool {
	switch {
	case b.w.Standing(b.CurrentVersion).Unreturned(&b.w.Set.Status) != "", facts.Unconsented(b.w) != "":
		return true
	case b.w.Set.Spec.UpdateStrategy.UpdateNotReady:
		return false
	}
	return b.w.Standing(b.CurrentVersion).Unsettled() != ""
}

// succeedsAnyway reports whether a superseded version serves while the current version does not. The
// superseded version then becomes the current version, and the next upgrade starts from it.
func (b *recorder) succeedsAnyway() bool {
	if b.Update.Returning || b.givenUp() || b.UpdateVersion == b.CurrentVersion {
		return false // it failed: a pod that is Ready for a moment is no proof
	}
	if b.unapproved() {
		return false
	}
	for _, z := range b.w.Zones {
		if !b.onlyNextServes(z) {
			return false
		}
	}
	return true
}

// onlyNextServes reports whether the next version serves in a zone while the current version does not,
// although it has ordinals.
func (b *recorder) onlyNextServes(z children.Zone) bool {
	old, next := b.w.Children.Find(z.Index, b.CurrentVersion), b.w.Children.Find(z.Index, b.UpdateVersion)
	switch {
	case !next.AnyReady(), old.AnyReady():
		return false
	case old != nil && old.Span().Replicas == 0: // it is not failing: it has no ordinals left
		return b.pastProof(next)
	}
	return true
}

// pastProof reports whether a version has passed all checks in a zone. With a postUpdateJob it has not,
// because the result of that Job is unknown.
func (b *recorder) pastProof(c *facts.Child) bool {
	return b.w.Set.Spec.UpdateStrategy.PostUpdateJob == nil && b.w.Proven(c) == b.w.Replicas
}

// givenUp reports whether the upgrade in progress has finally failed.
func (b *recorder) givenUp() bool { return facts.GivenUp(b.ExtendedStatefulSetStatus) }

// clock returns the time in the API's resolution of one second, rounded up. A deadline that counts from
// it is never too early.
func (b *recorder) clock() metav1.Time { return wholeSecond(b.w.Now) }

func wholeSecond(at time.Time) metav1.Time {
	return metav1.NewTime(at.Add(time.Second - 1).Truncate(time.Second))
}

// begin begins an attempt.
func (b *recorder) begin() {
	now := b.clock()
	u := b.Update
	u.StartedAt, u.CanaryAt, u.GoodAt, u.HeldAt = &now, nil, nil, nil
	u.Zone, u.Returning, u.PreJob, u.CanaryJob, u.PostJob = "", false, nil, nil, nil
	if b.w.Set.Spec.UpdateStrategy.PreUpdateJob != nil {
		b.Phase = v1alpha1.PhasePreJob
		return
	}
	b.nextZone()
}

// nextZone starts canaries in the first zone in which the new version does not have all ordinals. After
// the last zone the postUpdateJob follows.
func (b *recorder) nextZone() {
	b.waitsNoMore()
	for _, z := range b.w.Zones {
		if b.hasZone(z) {
			continue
		}
		b.Phase, b.Update.Zone, b.Update.CanaryAt = v1alpha1.PhasePromoting, z.Name, nil
		switch {
		case b.w.Replicas > 0:
			now := b.clock()
			b.Phase, b.Update.CanaryAt = v1alpha1.PhaseCanary, &now
		case b.unapproved(): // without replicas there are no canaries; the upgrade waits only if it needs approval
			b.Phase = v1alpha1.PhaseCanary
		}
		return
	}
	b.Phase, b.Update.CanaryAt = v1alpha1.PhasePostJob, nil
	if spec.JobOfAll(&b.w.Set.Spec.UpdateStrategy) == nil {
		b.afterPostJob()
	}
}

// hasZone reports whether the new version has all ordinals of a zone.
func (b *recorder) hasZone(z children.Zone) bool {
	next := b.w.Children.Find(z.Index, b.UpdateVersion)
	if next == nil {
		return false
	}
	return b.w.Replicas == 0 || next.HasAll(b.w.Replicas)
}

// proceed takes the next step of the upgrade in progress.
func (b *recorder) proceed() {
	switch {
	case b.givenUp():
		return
	case b.Update.StartedAt == nil: // another client edited the status
		b.begin()
		return
	case b.Update.Returning:
		if b.mayTryAgain() {
			b.Attempts++
			b.begin()
		}
		return
	case b.zoneRemoved():
		b.nextZone()
		return
	}
	was := b.Phase
	b.leavePhase()
	if b.Phase == was && b.overdue() {
		b.fail(v1alpha1.ReasonUpdateTimeout, fmt.Sprintf("the upgrade did not complete within %s (updateWatchTime), in phase %s%s%s",
			b.w.Clock().UpdateTime(), was, cmp.Or(unfinished(b.w, b.Update.CanaryJob), unfinished(b.w, b.Update.PostJob)), facts.Hindered(b.w, b.UpdateVersion)))
	}
}

// mayTryAgain reports whether the next attempt may begin. Without replicas it may not, because it would
// succeed without proof.
func (b *recorder) mayTryAgain() bool {
	if b.w.Replicas == 0 || b.w.Standing(b.CurrentVersion).Unreturned(&b.w.Set.Status) != "" {
		return false
	}
	return b.w.Set.Spec.UpdateStrategy.UpdateNotReady || b.w.Standing(b.CurrentVersion).NotReady() == ""
}

// zoneRemoved reports whether the zone in progress was removed from the spec.
func (b *recorder) zoneRemoved() bool {
	if b.Phase != v1alpha1.PhaseCanary && b.Phase != v1alpha1.PhasePromoting {
		return false
	}
	return !slices.ContainsFunc(b.w.Zones, func(z children.Zone) bool { return z.Name == b.Update.Zone })
}

// leavePhase enters the next phase if the present phase is complete.
func (b *recorder) leavePhase() {
	switch b.Phase {
	case v1alpha1.PhasePreJob:
		b.afterPreJob()
	case v1alpha1.PhaseCanary:
		b.afterCanary()
	case v1alpha1.PhasePromoting:
		c := b.w.Children.Find(b.zone().Index, b.UpdateVersion)
		if b.w.Replicas == 0 || (c != nil && b.w.Proven(c) == b.w.Replicas) {
			b.nextZone()
		}
	case v1alpha1.PhasePostJob:
		b.afterPostJob()
	default:
		b.begin()
	}
}

// overdue reports whether the attempt has taken longer than updateWatchTime. It returns false while
// canaries wait for approval, and while a version in phase Canary has no replicas: an untested version
// is neither good nor bad.
func (b *recorder) overdue() bool {
	u := b.Update
	if u == nil || u.Returning {
		return false
	}
	if untried := b.Phase == v1alpha1.PhaseCanary && b.w.Replicas == 0; untried || u.HeldAt != nil {
		return false
	}
	return b.w.Clock().RanOut(u.StartedAt.Time, b.allowed(b.w.Clock().UpdateTime()))
}

// zone returns the zone in progress, or the first zone if that was removed from the spec.
func (b *recorder) zone() children.Zone { return b.w.ZoneOf(b.Update) }

func (b *recorder) afterPreJob() {
	u := b.Update
	job := b.w.Set.Spec.UpdateStrategy.PreUpdateJob
	switch result := b.job(children.PreJob, job, &u.PreJob); {
	case job == nil, result == v1alpha1.JobSucceeded:
		b.nextZone()
	case result == v1alpha1.JobFailed:
		b.abort(fmt.Sprintf("Job %s failed", u.PreJob.Name))
	case b.w.Clock().RanOut(u.StartedAt.Time, b.w.Clock().UpdateTime()):
		b.abort(fmt.Sprintf("the Job before the update did not complete within %s (updateWatchTime)%s%s",
			b.w.Clock().UpdateTime(), unfinished(b.w, u.PreJob), facts.RefusedUs(b.w)))
	}
}

// abort ends an upgrade before anything of the new version was created.
func (b *recorder) abort(message string) {
	b.Phase, b.Update.Reason, b.Update.Message = v1alpha1.PhaseAborted, v1alpha1.ReasonPreJobFailed, excerpt.Of(message, failureLength)
}

func (b *recorder) afterCanary() {
	z, clock, u := b.zone(), b.w.Clock(), b.Update
	verdict := b.verdict()
	switch c := b.w.Children.Find(z.Index, b.UpdateVersion); {
	case verdict == v1alpha1.JobFailed:
		b.fail(v1alpha1.ReasonPostJobFailed, fmt.Sprintf("Job %s failed", u.CanaryJob.Name))
	case b.w.Replicas == 0:
		u.CanaryAt, u.GoodAt, u.HeldAt = nil, nil, nil
	case u.CanaryAt == nil:
		now := b.clock()
		u.StartedAt, u.CanaryAt = &now, &now
	case u.GoodAt != nil && b.w.Serving(c) < b.w.Canaries():
		b.goodNoMore(c)
	case c == nil: // it does not exist yet
	case b.w.Proven(c) >= b.w.Canaries():
		b.canariesGood(verdict)
	case u.GoodAt != nil: // they are Ready, and their probation passes soon
	case clock.RanOut(WatchedSince(b.Update, c), b.allowed(clock.CanaryTime())):
		b.fail(v1alpha1.ReasonCanaryFailed, fmt.Sprintf("%d of %d canaries were Ready within %s (canaryWatchTime)%s%s",
			b.w.Serving(c), b.w.Canaries(), clock.CanaryTime(), z.In(), facts.Hindered(b.w, b.UpdateVersion)))
	}
}

func (b *recorder) afterPostJob() {
	job, result := spec.JobOfAll(&b.w.Set.Spec.UpdateStrategy), v1alpha1.JobSucceeded
	if job != nil {
		result = b.job(children.PostJob, job, &b.Update.PostJob)
	}
	switch {
	case result == v1alpha1.JobFailed:
		b.fail(v1alpha1.ReasonPostJobFailed, fmt.Sprintf("Job %s failed", b.Update.PostJob.Name))
	case result == v1alpha1.JobSucceeded && b.w.Standing(b.UpdateVersion).Complete() && b.w.Standing(b.UpdateVersion).AllProven():
		b.CurrentVersion, b.CurrentDigest, b.Update, b.Attempts = b.UpdateVersion, b.w.Digest, nil, 0
		b.Phase = v1alpha1.PhaseCleaningUp
	}
}

// failureLength is the max length of a failure message. It leaves room in a condition for other text.
const failureLength = 600

// fail ends an attempt. The next attempt follows, or the version is marked stale.
func (b *recorder) fail(reason, message string) {
	b.Update.Reason, b.Update.Message = reason, excerpt.Of(message, failureLength)
	b.Update.GoodAt, b.Update.HeldAt = nil, nil
	if b.Attempts <= b.w.Set.Spec.UpdateStrategy.RetryCount {
		b.Update.Returning = true
		return
	}
	b.Phase = v1alpha1.PhaseStale
}
