package extendedstatefulset

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/excerpt"
)

// derive returns the facts of a world. It does not change the world.
func derive(w *world) *facts {
	if w.ignored() {
		return &facts{world: w, record: w.set.Status.DeepCopy()}
	}
	return &facts{world: w, record: advance(w)}
}

// recorder updates the record from a world.
type recorder struct {
	*v1alpha1.ExtendedStatefulSetStatus
	w *world
}

// keepRecord stops the pass if the record must be written first.
func keepRecord(f *facts, p *plan) {
	if sameRecord(&f.set.Status, f.record) {
		return
	}
	p.recordFirst = true
	p.Stop()
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

// sameRecord reports whether two statuses lead to the same decisions.
func sameRecord(a, b *v1alpha1.ExtendedStatefulSetStatus) bool {
	return basisOf(a) == basisOf(b) && apiequality.Semantic.DeepEqual(a.Update, b.Update)
}

// advance returns the record for this world. It is at most one step ahead of the present record.
func advance(w *world) *v1alpha1.ExtendedStatefulSetStatus {
	b := recorder{w.set.Status.DeepCopy(), w}
	b.nameZones()
	b.recoverLost()
	switch {
	case b.CurrentVersion == 0, b.CurrentDigest != w.digest && len(w.children.ofVersion(b.CurrentVersion)) == 0:
		b.first()
	case b.CurrentDigest == w.digest:
		b.rest()
	case b.Update == nil || b.Update.Digest != w.digest:
		b.consider()
	default:
		b.proceed()
	}
	return b.ExtendedStatefulSetStatus
}

func (b *recorder) nameZones() {
	b.Zones = append(b.Zones, b.w.seen...)
	for _, z := range b.w.zones {
		known := slices.ContainsFunc(b.Zones, func(s v1alpha1.ZoneStatus) bool { return s.Name == z.name })
		if z.index != noZone && !known {
			b.Zones = append(b.Zones, v1alpha1.ZoneStatus{Name: z.name, Index: z.index})
		}
	}
}

// recoverLost restores the fields of a lost status, for example after the restore of a backup: the
// version numbers in use, and the current version.
func (b *recorder) recoverLost() {
	for _, c := range b.w.children {
		b.VersionHighWater = max(b.VersionHighWater, c.version)
	}
	for _, job := range b.w.jobs {
		b.VersionHighWater = max(b.VersionHighWater, versionOfJob(job))
	}
	if b.CurrentVersion != 0 {
		return
	}
	if best := b.w.children.mostLikelyCurrent(); best != nil {
		b.CurrentVersion, b.CurrentDigest, b.UpdateVersion = best.version, best.digest(), best.version
	}
}

// mostLikelyCurrent returns a StatefulSet of the version that most likely serves, or nil. It prefers a
// version that is not stale, then the version with more Ready pods, then the newer version.
func (all siblings) mostLikelyCurrent() *child {
	candidates := slices.DeleteFunc(slices.Clone(all), (*child).stale)
	if len(candidates) == 0 {
		candidates = all
	}
	if len(candidates) == 0 {
		return nil
	}
	return slices.MaxFunc(candidates, func(a, b *child) int {
		return cmp.Or(cmp.Compare(all.ready(a.version), all.ready(b.version)), cmp.Compare(a.version, b.version))
	})
}

// first assigns a version that has no predecessor. No version serves, so there is nothing to upgrade
// from.
func (b *recorder) first() {
	number := b.VersionHighWater + 1
	if c := b.w.children.withDigest(b.w.digest, 0); c != nil {
		number = c.version
	}
	b.VersionHighWater = max(b.VersionHighWater, number)
	b.CurrentVersion, b.UpdateVersion, b.CurrentDigest = number, number, b.w.digest
	b.Update, b.Attempts, b.Phase = nil, 0, v1alpha1.PhasePromoting
}

// rest handles a template that equals the template of the current version.
func (b *recorder) rest() {
	b.Update, b.UpdateVersion = nil, b.CurrentVersion
	switch {
	case b.w.children.others(b.CurrentVersion):
		b.Phase, b.Attempts = v1alpha1.PhaseCleaningUp, 0
	case b.Phase == v1alpha1.PhasePromoting && !b.w.standing(b.CurrentVersion).complete():
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
	if c := b.w.children.withDigest(b.w.digest, b.CurrentVersion); c != nil {
		number, earlier = c.version, c.attempts()
	}
	b.VersionHighWater, b.UpdateVersion, b.Attempts = max(b.VersionHighWater, number), number, 1
	b.Update = &v1alpha1.UpdateStatus{
		Digest:          b.w.digest,
		Handover:        handoverOf(b.w.set),
		EarlierAttempts: earlier,
	}
	b.begin()
}

// upgradeWaits reports whether an upgrade cannot begin yet. Condition Progressing has the reason.
func (b *recorder) upgradeWaits() bool {
	switch {
	case b.w.standing(b.CurrentVersion).unreturned(&b.w.set.Status) != "", unconsented(b.w) != "":
		return true
	case b.w.set.Spec.UpdateStrategy.UpdateNotReady:
		return false
	}
	return b.w.standing(b.CurrentVersion).unsettled() != ""
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
	for _, z := range b.w.zones {
		if !b.onlyNextServes(z) {
			return false
		}
	}
	return true
}

// onlyNextServes reports whether the next version serves in a zone while the current version does not,
// although it has ordinals.
func (b *recorder) onlyNextServes(z zone) bool {
	old, next := b.w.children.find(z.index, b.CurrentVersion), b.w.children.find(z.index, b.UpdateVersion)
	switch {
	case !next.anyReady(), old.anyReady():
		return false
	case old != nil && old.span().replicas == 0: // it is not failing: it has no ordinals left
		return b.pastProof(next)
	}
	return true
}

// pastProof reports whether a version has passed all checks in a zone. With a postUpdateJob it has not,
// because the result of that Job is unknown.
func (b *recorder) pastProof(c *child) bool {
	return b.w.set.Spec.UpdateStrategy.PostUpdateJob == nil && b.w.proven(c) == b.w.replicas
}

// givenUp reports whether the upgrade in progress has finally failed.
func (b *recorder) givenUp() bool { return givenUp(b.ExtendedStatefulSetStatus) }

// givenUp reports whether the upgrade in a status has finally failed.
func givenUp(s *v1alpha1.ExtendedStatefulSetStatus) bool {
	return s.Phase == v1alpha1.PhaseStale || s.Phase == v1alpha1.PhaseAborted
}

// clock returns the time in the API's resolution of one second, rounded up. A deadline that counts from
// it is never too early.
func (b *recorder) clock() metav1.Time { return wholeSecond(b.w.now) }

func wholeSecond(at time.Time) metav1.Time {
	return metav1.NewTime(at.Add(time.Second - 1).Truncate(time.Second))
}

// begin begins an attempt.
func (b *recorder) begin() {
	now := b.clock()
	u := b.Update
	u.StartedAt, u.CanaryAt, u.GoodAt, u.HeldAt = &now, nil, nil, nil
	u.Zone, u.Returning, u.PreJob, u.CanaryJob, u.PostJob = "", false, nil, nil, nil
	if b.w.set.Spec.UpdateStrategy.PreUpdateJob != nil {
		b.Phase = v1alpha1.PhasePreJob
		return
	}
	b.nextZone()
}

// nextZone starts canaries in the first zone in which the new version does not have all ordinals. After
// the last zone the postUpdateJob follows.
func (b *recorder) nextZone() {
	b.waitsNoMore()
	for _, z := range b.w.zones {
		if b.hasZone(z) {
			continue
		}
		b.Phase, b.Update.Zone, b.Update.CanaryAt = v1alpha1.PhasePromoting, z.name, nil
		switch {
		case b.w.replicas > 0:
			now := b.clock()
			b.Phase, b.Update.CanaryAt = v1alpha1.PhaseCanary, &now
		case b.unapproved(): // without replicas there are no canaries; the upgrade waits only if it needs approval
			b.Phase = v1alpha1.PhaseCanary
		}
		return
	}
	b.Phase, b.Update.CanaryAt = v1alpha1.PhasePostJob, nil
	if jobOfAll(&b.w.set.Spec.UpdateStrategy) == nil {
		b.afterPostJob()
	}
}

// hasZone reports whether the new version has all ordinals of a zone.
func (b *recorder) hasZone(z zone) bool {
	next := b.w.children.find(z.index, b.UpdateVersion)
	if next == nil {
		return false
	}
	return b.w.replicas == 0 || next.hasAll(b.w.replicas)
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
			b.w.clock().updateTime(), was, cmp.Or(unfinished(b.w, b.Update.CanaryJob), unfinished(b.w, b.Update.PostJob)), hindered(b.w, b.UpdateVersion)))
	}
}

// mayTryAgain reports whether the next attempt may begin. Without replicas it may not, because it would
// succeed without proof.
func (b *recorder) mayTryAgain() bool {
	if b.w.replicas == 0 || b.w.standing(b.CurrentVersion).unreturned(&b.w.set.Status) != "" {
		return false
	}
	return b.w.set.Spec.UpdateStrategy.UpdateNotReady || b.w.standing(b.CurrentVersion).notReady() == ""
}

// zoneRemoved reports whether the zone in progress was removed from the spec.
func (b *recorder) zoneRemoved() bool {
	if b.Phase != v1alpha1.PhaseCanary && b.Phase != v1alpha1.PhasePromoting {
		return false
	}
	return !slices.ContainsFunc(b.w.zones, func(z zone) bool { return z.name == b.Update.Zone })
}

// leavePhase enters the next phase if the present phase is complete.
func (b *recorder) leavePhase() {
	switch b.Phase {
	case v1alpha1.PhasePreJob:
		b.afterPreJob()
	case v1alpha1.PhaseCanary:
		b.afterCanary()
	case v1alpha1.PhasePromoting:
		c := b.w.children.find(b.zone().index, b.UpdateVersion)
		if b.w.replicas == 0 || (c != nil && b.w.proven(c) == b.w.replicas) {
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
	if untried := b.Phase == v1alpha1.PhaseCanary && b.w.replicas == 0; untried || u.HeldAt != nil {
		return false
	}
	return b.w.clock().ranOut(u.StartedAt.Time, b.allowed(b.w.clock().updateTime()))
}

// zone returns the zone in progress, or the first zone if that was removed from the spec.
func (b *recorder) zone() zone { return b.w.zoneOf(b.Update) }

func (w *world) zoneOf(u *v1alpha1.UpdateStatus) zone {
	if z, some := first(w.zones, func(z zone) bool { return z.name == u.Zone }); some {
		return z
	}
	return w.zones[0]
}

func (b *recorder) afterPreJob() {
	u := b.Update
	job := b.w.set.Spec.UpdateStrategy.PreUpdateJob
	switch result := b.job(preJob, job, &u.PreJob); {
	case job == nil, result == v1alpha1.JobSucceeded:
		b.nextZone()
	case result == v1alpha1.JobFailed:
		b.abort(fmt.Sprintf("Job %s failed", u.PreJob.Name))
	case b.w.clock().ranOut(u.StartedAt.Time, b.w.clock().updateTime()):
		b.abort(fmt.Sprintf("the Job before the update did not complete within %s (updateWatchTime)%s%s",
			b.w.clock().updateTime(), unfinished(b.w, u.PreJob), refusedUs(b.w)))
	}
}

// abort ends an upgrade before anything of the new version was created.
func (b *recorder) abort(message string) {
	b.Phase, b.Update.Reason, b.Update.Message = v1alpha1.PhaseAborted, v1alpha1.ReasonPreJobFailed, excerpt.Of(message, failureLength)
}

func (b *recorder) afterCanary() {
	z, clock, u := b.zone(), b.w.clock(), b.Update
	verdict := b.verdict()
	switch c := b.w.children.find(z.index, b.UpdateVersion); {
	case verdict == v1alpha1.JobFailed:
		b.fail(v1alpha1.ReasonPostJobFailed, fmt.Sprintf("Job %s failed", u.CanaryJob.Name))
	case b.w.replicas == 0:
		u.CanaryAt, u.GoodAt, u.HeldAt = nil, nil, nil
	case u.CanaryAt == nil:
		now := b.clock()
		u.StartedAt, u.CanaryAt = &now, &now
	case u.GoodAt != nil && b.w.serving(c) < b.w.canaries():
		b.goodNoMore(c)
	case c == nil: // it does not exist yet
	case b.w.proven(c) >= b.w.canaries():
		b.canariesGood(verdict)
	case u.GoodAt != nil: // they are Ready, and their probation passes soon
	case clock.ranOut(watchedSince(b.Update, c), b.allowed(clock.canaryTime())):
		b.fail(v1alpha1.ReasonCanaryFailed, fmt.Sprintf("%d of %d canaries were Ready within %s (canaryWatchTime)%s%s",
			b.w.serving(c), b.w.canaries(), clock.canaryTime(), z.in(), hindered(b.w, b.UpdateVersion)))
	}
}

// in returns " in zone a"; "" without zones.
func (z zone) in() string {
	if z.index == noZone {
		return ""
	}
	return " in zone " + z.name
}

func (b *recorder) afterPostJob() {
	job, result := jobOfAll(&b.w.set.Spec.UpdateStrategy), v1alpha1.JobSucceeded
	if job != nil {
		result = b.job(postJob, job, &b.Update.PostJob)
	}
	switch {
	case result == v1alpha1.JobFailed:
		b.fail(v1alpha1.ReasonPostJobFailed, fmt.Sprintf("Job %s failed", b.Update.PostJob.Name))
	case result == v1alpha1.JobSucceeded && b.w.standing(b.UpdateVersion).complete() && b.w.standing(b.UpdateVersion).allProven():
		b.CurrentVersion, b.CurrentDigest, b.Update, b.Attempts = b.UpdateVersion, b.w.digest, nil, 0
		b.Phase = v1alpha1.PhaseCleaningUp
	}
}

// job follows a Job of the attempt, and returns the result that applies to the upgrade: with onFailure
// Continue, a failed Job counts as succeeded. The UID of a Job is recorded before the Job is started,
// so a missing recorded Job counts as having run.
func (b *recorder) job(which string, from *v1alpha1.UpdateJob, record **v1alpha1.JobStatus) v1alpha1.JobResult {
	name := b.w.jobName(which, b.ExtendedStatefulSetStatus)
	job := b.w.jobs[name]
	if *record == nil {
		if job != nil && job.DeletionTimestamp == nil {
			*record = &v1alpha1.JobStatus{Name: name, UID: job.UID}
		}
		return ""
	}
	if (*record).Result == "" {
		(*record).Result = resultOf(b.w, job, *record)
	}
	switch result := (*record).Result; {
	case result == "" || from == nil:
		return result
	case from.OnFailure == v1alpha1.OnFailureContinue:
		return v1alpha1.JobSucceeded
	case result == v1alpha1.JobUnknown && b.Attempts <= b.w.set.Spec.UpdateStrategy.RetryCount:
		b.askAgain(record)
		return ""
	default:
		return result
	}
}

// askAgain begins another attempt with the present StatefulSets, because the result of the Job is
// unknown. A Job runs at most once for an attempt, so the next attempt has its own Job.
func (b *recorder) askAgain(record **v1alpha1.JobStatus) {
	now := b.clock()
	b.Attempts, b.Update.StartedAt, *record = b.Attempts+1, &now, nil
}

// unfinished returns a text about a Job without a result; "" if there is none.
func unfinished(w *world, record *v1alpha1.JobStatus) string {
	if record == nil {
		return ""
	}
	if record.Result == v1alpha1.JobUnknown {
		return fmt.Sprintf("; Job %s was deleted before the operator observed its result", record.Name)
	}
	if record.Result != "" {
		return ""
	}
	if job := w.jobs[record.Name]; isOnRecord(job, record) && isSuspended(job) {
		return fmt.Sprintf("; Job %s is suspended", job.Name)
	}
	return fmt.Sprintf("; Job %s has not ended", record.Name)
}

// jobName returns the name of a Job of the attempt in progress.
func (w *world) jobName(which string, s *v1alpha1.ExtendedStatefulSetStatus) string {
	return jobName(w.set.Name, which, s.UpdateVersion, s.Update.EarlierAttempts+s.Attempts)
}

// versionOfJob returns the version that a Job belongs to.
func versionOfJob(job *batchv1.Job) int64 {
	number, _ := strconv.ParseInt(job.Labels[v1alpha1.LabelVersion], 10, 64)
	return number
}

// resultOf returns the result of a recorded Job; "" while it is unknown.
func resultOf(w *world, job *batchv1.Job, record *v1alpha1.JobStatus) v1alpha1.JobResult {
	if job == nil || job.UID != record.UID {
		return w.lostJobs[record.UID]
	}
	return endOf(job)
}

// endOf returns the result of a Job; "" if it has not ended.
func endOf(job *batchv1.Job) v1alpha1.JobResult {
	switch {
	case hasEnded(job, batchv1.JobComplete):
		return v1alpha1.JobSucceeded
	case hasEnded(job, batchv1.JobFailed):
		return v1alpha1.JobFailed
	}
	return ""
}

func hasEnded(job *batchv1.Job, as batchv1.JobConditionType) bool {
	return slices.ContainsFunc(job.Status.Conditions, func(c batchv1.JobCondition) bool {
		return c.Type == as && c.Status == corev1.ConditionTrue
	})
}

// failureLength is the max length of a failure message. It leaves room in a condition for other text.
const failureLength = 600

// fail ends an attempt. The next attempt follows, or the version is marked stale.
func (b *recorder) fail(reason, message string) {
	b.Update.Reason, b.Update.Message = reason, excerpt.Of(message, failureLength)
	b.Update.GoodAt, b.Update.HeldAt = nil, nil
	if b.Attempts <= b.w.set.Spec.UpdateStrategy.RetryCount {
		b.Update.Returning = true
		return
	}
	b.Phase = v1alpha1.PhaseStale
}
