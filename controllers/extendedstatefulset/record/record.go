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

// recorder advances a copy of the record by one step, by what a world has.
type recorder struct {
	*v1alpha1.ExtendedStatefulSetStatus
	w *facts.World
}

// basis has the fields of a status that decisions use, except the upgrade in progress, which SameRecord
// compares in addition. All other fields only report the observed state.
type basis struct {
	current, update, highest int64
	digest                   string
	phase                    v1alpha1.Phase
	attempts                 int32
	zones                    int
}

// basisOf returns the basis of a status.
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

// Advance returns the record for this world. It is at most one step ahead of the present record. Which
// step it is depends on the template: whether a version exists, and whether the template has the content
// of the current version, of the upgrade in progress, or of neither.
func Advance(w *facts.World) *v1alpha1.ExtendedStatefulSetStatus {
	r := recorder{w.Set.Status.DeepCopy(), w}
	r.addZones()
	r.recoverStatus()
	switch {
	case r.CurrentVersion == 0, r.CurrentDigest != w.Digest && len(w.Children.OfVersion(r.CurrentVersion)) == 0:
		r.startFirstVersion()
	case r.CurrentDigest == w.Digest:
		r.settle()
	case r.Update == nil || r.Update.Digest != w.Digest:
		r.startUpgrade()
	default:
		r.continueUpgrade()
	}
	return r.ExtendedStatefulSetStatus
}

// addZones adds the zones of the spec, and those recovered from labels, to the status. Removed zones
// remain, so that their indexes are not used for other zones.
func (r *recorder) addZones() {
	r.Zones = append(r.Zones, r.w.RecoveredZones...)
	for _, z := range r.w.Zones {
		known := slices.ContainsFunc(r.Zones, func(s v1alpha1.ZoneStatus) bool { return s.Name == z.Name })
		if z.Index != children.NoZone && !known {
			r.Zones = append(r.Zones, v1alpha1.ZoneStatus{Name: z.Name, Index: z.Index})
		}
	}
}

// recoverStatus restores the fields of a lost status, for example after the restore of a backup: the
// version numbers in use, and the current version.
func (r *recorder) recoverStatus() {
	for _, c := range r.w.Children {
		r.VersionHighWater = max(r.VersionHighWater, c.Version)
	}
	for _, job := range r.w.Jobs {
		r.VersionHighWater = max(r.VersionHighWater, facts.VersionOfJob(job))
	}
	if r.CurrentVersion != 0 {
		return
	}
	if best := r.w.Children.MostLikelyCurrent(); best != nil {
		r.CurrentVersion, r.CurrentDigest, r.UpdateVersion = best.Version, best.Digest(), best.Version
	}
}

// startFirstVersion assigns a version that has no predecessor, because no version serves. There is
// nothing to upgrade from, so it begins in phase Promoting, without canaries and a rollback.
func (r *recorder) startFirstVersion() {
	number := r.VersionHighWater + 1
	if c := r.w.Children.WithDigest(r.w.Digest, 0); c != nil {
		number = c.Version
	}
	r.VersionHighWater = max(r.VersionHighWater, number)
	r.CurrentVersion, r.UpdateVersion, r.CurrentDigest = number, number, r.w.Digest
	r.Update, r.Attempts, r.Phase = nil, 0, v1alpha1.PhasePromoting
}

// settle handles a template that equals the template of the current version. It ends an upgrade in
// progress; all other versions are deleted in phase CleaningUp.
func (r *recorder) settle() {
	r.Update, r.UpdateVersion = nil, r.CurrentVersion
	switch {
	case r.w.Children.Others(r.CurrentVersion):
		r.Phase, r.Attempts = v1alpha1.PhaseCleaningUp, 0
	case r.Phase == v1alpha1.PhasePromoting && !r.w.Standing(r.CurrentVersion).Complete(): // the first version
	default:
		r.Phase, r.Attempts = v1alpha1.PhaseStable, 0
	}
}

// startUpgrade handles a template that belongs to neither the current version nor the upgrade in
// progress. It ends an upgrade in progress, and begins the next one once the ordinals of the earlier one
// are returned and the current version is Ready.
func (r *recorder) startUpgrade() {
	if r.Update != nil && r.supersededServes() {
		r.CurrentVersion, r.CurrentDigest = r.UpdateVersion, r.Update.Digest
	}
	r.Update, r.Attempts = nil, 0
	if r.upgradeWaits() {
		r.Phase, r.UpdateVersion = v1alpha1.PhaseWaiting, r.CurrentVersion
		return
	}
	number, earlier := r.VersionHighWater+1, int32(0)
	if c := r.w.Children.WithDigest(r.w.Digest, r.CurrentVersion); c != nil {
		number, earlier = c.Version, c.Attempts()
	}
	r.VersionHighWater, r.UpdateVersion, r.Attempts = max(r.VersionHighWater, number), number, 1
	r.Update = &v1alpha1.UpdateStatus{
		Digest:          r.w.Digest,
		Handover:        spec.HandoverOf(r.w.Set),
		EarlierAttempts: earlier,
	}
	r.beginAttempt()
}

// upgradeWaits reports whether an upgrade cannot begin yet. Condition Progressing has the reason.
func (r *recorder) upgradeWaits() bool {
	switch {
	case r.w.Standing(r.CurrentVersion).Unreturned(&r.w.Set.Status) != "", facts.Unconsented(r.w) != "":
		return true
	case r.w.Set.Spec.UpdateStrategy.UpdateNotReady:
		return false
	}
	return r.w.Standing(r.CurrentVersion).Unsettled() != ""
}

// supersededServes reports whether a superseded version serves while the current version does not. The
// superseded version then becomes the current version, and the next upgrade starts from it.
func (r *recorder) supersededServes() bool {
	if r.Update.Returning || r.givenUp() || r.UpdateVersion == r.CurrentVersion {
		return false // it failed: a pod that is Ready for a moment is no proof
	}
	if r.lacksApproval() {
		return false
	}
	for _, z := range r.w.Zones {
		if !r.onlyNewServes(z) {
			return false
		}
	}
	return true
}

// onlyNewServes reports whether the new version serves in a zone and the current version does not. A
// current version that has ordinals is failing then. One without ordinals is not, so the new version
// must have passed all checks.
func (r *recorder) onlyNewServes(z children.Zone) bool {
	old, next := r.w.Children.Find(z.Index, r.CurrentVersion), r.w.Children.Find(z.Index, r.UpdateVersion)
	switch {
	case !next.AnyReady(), old.AnyReady():
		return false
	case old != nil && old.Span().Replicas == 0:
		return r.passedAllChecks(next)
	}
	return true
}

// passedAllChecks reports whether a version has passed all checks in a zone. With a postUpdateJob it has
// not, because the result of that Job is unknown.
func (r *recorder) passedAllChecks(c *facts.Child) bool {
	return r.w.Set.Spec.UpdateStrategy.PostUpdateJob == nil && r.w.ProvenPods(c) == r.w.Replicas
}

// givenUp reports whether the upgrade in progress has finally failed.
func (r *recorder) givenUp() bool { return facts.GivenUp(r.ExtendedStatefulSetStatus) }

// now returns the time in the API's resolution of one second, rounded up. A deadline that counts from
// it is never too early.
func (r *recorder) now() metav1.Time { return wholeSecond(r.w.Now) }

// wholeSecond rounds a time up to a second, the resolution of times in the API.
func wholeSecond(at time.Time) metav1.Time {
	return metav1.NewTime(at.Add(time.Second - 1).Truncate(time.Second))
}

// beginAttempt begins an attempt, in phase PreJob or in the first zone.
func (r *recorder) beginAttempt() {
	now := r.now()
	u := r.Update
	u.StartedAt, u.CanaryAt, u.GoodAt, u.HeldAt = &now, nil, nil, nil
	u.Zone, u.Returning, u.PreJob, u.CanaryJob, u.PostJob = "", false, nil, nil, nil
	if r.w.Set.Spec.UpdateStrategy.PreUpdateJob != nil {
		r.Phase = v1alpha1.PhasePreJob
		return
	}
	r.nextZone()
}

// nextZone starts canaries in the first zone in which the new version does not have all ordinals. After
// the last zone the postUpdateJob follows.
func (r *recorder) nextZone() {
	r.clearWaiting()
	for _, z := range r.w.Zones {
		if r.hasZone(z) {
			continue
		}
		r.Phase, r.Update.Zone, r.Update.CanaryAt = v1alpha1.PhasePromoting, z.Name, nil
		switch {
		case r.w.Replicas > 0:
			now := r.now()
			r.Phase, r.Update.CanaryAt = v1alpha1.PhaseCanary, &now
		case r.lacksApproval(): // without replicas there are no canaries; the upgrade waits only if it needs approval
			r.Phase = v1alpha1.PhaseCanary
		}
		return
	}
	r.Phase, r.Update.CanaryAt = v1alpha1.PhasePostJob, nil
	if spec.JobOfAll(&r.w.Set.Spec.UpdateStrategy) == nil {
		r.checkPostJob()
	}
}

// hasZone reports whether the new version has all ordinals of a zone.
func (r *recorder) hasZone(z children.Zone) bool {
	next := r.w.Children.Find(z.Index, r.UpdateVersion)
	if next == nil {
		return false
	}
	return r.w.Replicas == 0 || next.HasAll(r.w.Replicas)
}

// continueUpgrade takes the next step of the upgrade in progress: it begins the next attempt, enters the
// next phase, or ends the attempt because of a timeout.
func (r *recorder) continueUpgrade() {
	switch {
	case r.givenUp():
		return
	case r.Update.StartedAt == nil: // another client edited the status
		r.beginAttempt()
		return
	case r.Update.Returning:
		if r.mayRetry() {
			r.Attempts++
			r.beginAttempt()
		}
		return
	case r.zoneRemoved():
		r.nextZone()
		return
	}
	was := r.Phase
	r.advancePhase()
	if r.Phase == was && r.overdue() {
		r.fail(v1alpha1.ReasonUpdateTimeout, fmt.Sprintf("the upgrade did not complete within %s (updateWatchTime), in phase %s%s%s",
			r.w.Clock().UpdateTime(), was, cmp.Or(unfinished(r.w, r.Update.CanaryJob), unfinished(r.w, r.Update.PostJob)), facts.FailureCauses(r.w, r.UpdateVersion)))
	}
}

// mayRetry reports whether the next attempt may begin. Without replicas it may not, because it would
// succeed without proof.
func (r *recorder) mayRetry() bool {
	if r.w.Replicas == 0 || r.w.Standing(r.CurrentVersion).Unreturned(&r.w.Set.Status) != "" {
		return false
	}
	return r.w.Set.Spec.UpdateStrategy.UpdateNotReady || r.w.Standing(r.CurrentVersion).NotReady() == ""
}

// zoneRemoved reports whether the zone in progress was removed from the spec.
func (r *recorder) zoneRemoved() bool {
	if r.Phase != v1alpha1.PhaseCanary && r.Phase != v1alpha1.PhasePromoting {
		return false
	}
	return !slices.ContainsFunc(r.w.Zones, func(z children.Zone) bool { return z.Name == r.Update.Zone })
}

// advancePhase enters the next phase if the present phase is complete.
func (r *recorder) advancePhase() {
	switch r.Phase {
	case v1alpha1.PhasePreJob:
		r.checkPreJob()
	case v1alpha1.PhaseCanary:
		r.checkCanaries()
	case v1alpha1.PhasePromoting:
		c := r.w.Children.Find(r.zone().Index, r.UpdateVersion)
		if r.w.Replicas == 0 || (c != nil && r.w.ProvenPods(c) == r.w.Replicas) {
			r.nextZone()
		}
	case v1alpha1.PhasePostJob:
		r.checkPostJob()
	default:
		r.beginAttempt()
	}
}

// overdue reports whether the attempt has taken longer than updateWatchTime. It returns false while
// canaries wait for approval, and while a version in phase Canary has no replicas: an untested version
// is neither good nor bad.
func (r *recorder) overdue() bool {
	u := r.Update
	if u == nil || u.Returning {
		return false
	}
	if untried := r.Phase == v1alpha1.PhaseCanary && r.w.Replicas == 0; untried || u.HeldAt != nil {
		return false
	}
	return r.w.Clock().RanOut(u.StartedAt.Time, r.limitWithProbation(r.w.Clock().UpdateTime()))
}

// zone returns the zone in progress, or the first zone if that was removed from the spec.
func (r *recorder) zone() children.Zone { return r.w.ZoneOf(r.Update) }

// checkPreJob leaves phase PreJob when the Job has ended, or was not completed in time.
func (r *recorder) checkPreJob() {
	u := r.Update
	job := r.w.Set.Spec.UpdateStrategy.PreUpdateJob
	switch result := r.job(children.PreJob, job, &u.PreJob); {
	case job == nil, result == v1alpha1.JobSucceeded:
		r.nextZone()
	case result == v1alpha1.JobFailed:
		r.abort(fmt.Sprintf("Job %s failed", u.PreJob.Name))
	case r.w.Clock().RanOut(u.StartedAt.Time, r.w.Clock().UpdateTime()):
		r.abort(fmt.Sprintf("the Job before the update did not complete within %s (updateWatchTime)%s%s",
			r.w.Clock().UpdateTime(), unfinished(r.w, u.PreJob), facts.RefusedWrite(r.w)))
	}
}

// abort ends an upgrade before anything of the new version was created.
func (r *recorder) abort(message string) {
	r.Phase, r.Update.Reason, r.Update.Message = v1alpha1.PhaseAborted, v1alpha1.ReasonPreJobFailed, excerpt.Of(message, failureLength)
}

// checkCanaries leaves phase Canary when the canaries are good and all further requirements are met. It
// ends the attempt if they are not good in time, or if their Job failed.
func (r *recorder) checkCanaries() {
	z, clock, u := r.zone(), r.w.Clock(), r.Update
	jobResult := r.canaryJobResult()
	switch c := r.w.Children.Find(z.Index, r.UpdateVersion); {
	case jobResult == v1alpha1.JobFailed:
		r.fail(v1alpha1.ReasonPostJobFailed, fmt.Sprintf("Job %s failed", u.CanaryJob.Name))
	case r.w.Replicas == 0: // scaled to 0 in phase Canary: there is nothing to test
		u.CanaryAt, u.GoodAt, u.HeldAt = nil, nil, nil
	case u.CanaryAt == nil: // scaled up from 0: the test begins now
		now := r.now()
		u.StartedAt, u.CanaryAt = &now, &now
	case u.GoodAt != nil && r.w.AvailablePods(c) < r.w.Canaries():
		r.resumeCanaryTimeout(c)
	case c == nil: // it does not exist yet
	case r.w.ProvenPods(c) >= r.w.Canaries():
		r.canariesGood(jobResult)
	case u.GoodAt != nil: // they are Ready, and their probation passes soon
	case clock.RanOut(WatchedSince(r.Update, c), r.limitWithProbation(clock.CanaryTime())):
		r.fail(v1alpha1.ReasonCanaryFailed, fmt.Sprintf("%d of %d canaries were Ready within %s (canaryWatchTime)%s%s",
			r.w.AvailablePods(c), r.w.Canaries(), clock.CanaryTime(), z.In(), facts.FailureCauses(r.w, r.UpdateVersion)))
	}
}

// checkPostJob ends the upgrade when the new version is complete and its Job succeeded. It ends the
// attempt if the Job failed.
func (r *recorder) checkPostJob() {
	job, result := spec.JobOfAll(&r.w.Set.Spec.UpdateStrategy), v1alpha1.JobSucceeded
	if job != nil {
		result = r.job(children.PostJob, job, &r.Update.PostJob)
	}
	switch {
	case result == v1alpha1.JobFailed:
		r.fail(v1alpha1.ReasonPostJobFailed, fmt.Sprintf("Job %s failed", r.Update.PostJob.Name))
	case result == v1alpha1.JobSucceeded && r.w.Standing(r.UpdateVersion).Complete() && r.w.Standing(r.UpdateVersion).AllProven():
		r.CurrentVersion, r.CurrentDigest, r.Update, r.Attempts = r.UpdateVersion, r.w.Digest, nil, 0
		r.Phase = v1alpha1.PhaseCleaningUp
	}
}

// failureLength is the max length of a failure message. It leaves room in a condition for other text.
const failureLength = 600

// fail ends an attempt. The ordinals are returned to the current version. The next attempt follows, or
// the version is marked stale.
func (r *recorder) fail(reason, message string) {
	r.Update.Reason, r.Update.Message = reason, excerpt.Of(message, failureLength)
	r.Update.GoodAt, r.Update.HeldAt = nil, nil
	if r.Attempts <= r.w.Set.Spec.UpdateStrategy.RetryCount {
		r.Update.Returning = true
		return
	}
	r.Phase = v1alpha1.PhaseStale
}
