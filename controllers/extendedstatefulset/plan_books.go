package extendedstatefulset

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
)

// ledger brings the books up to date with a world.
type ledger struct {
	*v1alpha1.ExtendedStatefulSetStatus
	w *world
}

// keepBooks lets nothing be done before the books say so.
func keepBooks(w *world, p *plan) {
	if w.set.DeletionTimestamp != nil || w.invalid != "" || sameBooks(&w.set.Status, w.books) {
		return
	}
	p.books = true
	p.Stop()
}

// sameBooks tells whether decisions rest on the same.
func sameBooks(a, b *v1alpha1.ExtendedStatefulSetStatus) bool {
	return a.CurrentVersion == b.CurrentVersion && a.CurrentDigest == b.CurrentDigest && a.UpdateVersion == b.UpdateVersion &&
		a.VersionHighWater == b.VersionHighWater && a.Phase == b.Phase && a.Attempts == b.Attempts &&
		len(a.Zones) == len(b.Zones) && apiequality.Semantic.DeepEqual(a.Update, b.Update)
}

// advance is the books as they have to be in this world: at most one step from
// where they are.
func advance(w *world) *v1alpha1.ExtendedStatefulSetStatus {
	b := ledger{w.set.Status.DeepCopy(), w}
	b.nameZones()
	b.recoverLost()
	switch {
	case b.CurrentVersion == 0, b.CurrentDigest != w.digest && len(w.ofVersion(b.CurrentVersion)) == 0:
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

func (b *ledger) nameZones() {
	b.Zones = append(b.Zones, b.w.seen...)
	for _, z := range b.w.zones {
		known := slices.ContainsFunc(b.Zones, func(s v1alpha1.ZoneStatus) bool { return s.Name == z.name })
		if z.index != noZone && !known {
			b.Zones = append(b.Zones, v1alpha1.ZoneStatus{Name: z.name, Index: z.index})
		}
	}
}

// recoverLost fills in what a status does not have that was lost, as after the
// restore of a backup: numbers in use, and which version serves.
func (b *ledger) recoverLost() {
	for _, c := range b.w.children {
		b.VersionHighWater = max(b.VersionHighWater, c.version)
	}
	for _, job := range b.w.jobs {
		number, _ := strconv.ParseInt(job.Labels[v1alpha1.LabelVersion], 10, 64)
		b.VersionHighWater = max(b.VersionHighWater, number)
	}
	if b.CurrentVersion != 0 {
		return
	}
	var best *child
	for _, c := range b.w.children {
		n, most := b.w.readyOf(c.version), int32(0)
		if best != nil {
			most = b.w.readyOf(best.version)
		}
		if best == nil || !c.stale() && best.stale() || c.stale() == best.stale() && (n > most || n == most && c.version > best.version) {
			best = c
		}
	}
	if best != nil {
		b.CurrentVersion, b.CurrentDigest, b.UpdateVersion = best.version, best.digest(), best.version
	}
}

// first gives out a version that has none before it: nothing serves, so there is
// nothing to upgrade from.
func (b *ledger) first() {
	number := b.VersionHighWater + 1
	for _, c := range b.w.children {
		if c.digest() == b.w.digest && !c.going() {
			number = c.version
		}
	}
	b.VersionHighWater = max(b.VersionHighWater, number)
	b.CurrentVersion, b.UpdateVersion, b.CurrentDigest = number, number, b.w.digest
	b.Update, b.Attempts, b.Phase = nil, 0, v1alpha1.PhasePromoting
}

// rest is for a template that is the one of the version that serves.
func (b *ledger) rest() {
	b.Update, b.UpdateVersion = nil, b.CurrentVersion
	others := slices.ContainsFunc(b.w.children, func(c *child) bool { return c.version != b.CurrentVersion })
	switch {
	case others:
		b.Phase, b.Attempts = v1alpha1.PhaseCleaningUp, 0
	case b.Phase == v1alpha1.PhasePromoting && !b.complete(b.CurrentVersion):
	default:
		b.Phase, b.Attempts = v1alpha1.PhaseStable, 0
	}
}

// consider begins an upgrade, once what an earlier one took is given back and the
// version that serves is Ready.
func (b *ledger) consider() {
	if b.Update != nil && b.succeedsAnyway() {
		b.CurrentVersion, b.CurrentDigest = b.UpdateVersion, b.Update.Digest
	}
	b.Update, b.Attempts = nil, 0
	if b.w.unreturned(b.CurrentVersion) != "" || b.w.strangers() != "" || !b.w.set.Spec.UpdateStrategy.UpdateNotReady && b.w.unsettled(b.CurrentVersion) != "" {
		b.Phase, b.UpdateVersion = v1alpha1.PhaseWaiting, b.CurrentVersion
		return
	}
	number := b.VersionHighWater + 1
	earlier := int32(0)
	for _, c := range b.w.children {
		if c.version != b.CurrentVersion && c.digest() == b.w.digest && !c.going() {
			number, earlier = c.version, attemptsOf(c.set)
		}
	}
	b.VersionHighWater, b.UpdateVersion, b.Attempts = max(b.VersionHighWater, number), number, 1
	b.Update = &v1alpha1.UpdateStatus{Digest: b.w.digest, Handover: handoverOf(b.w.set), EarlierAttempts: earlier}
	b.begin()
}

// succeedsAnyway tells whether a version that is superseded serves and the one
// before it does not: then it is what the next one must be better than.
func (b *ledger) succeedsAnyway() bool {
	if b.Update.Returning || b.Phase == v1alpha1.PhaseStale || b.Phase == v1alpha1.PhaseAborted {
		return false // it was given up: a pod that is Ready for a moment is no proof
	}
	for _, z := range b.w.zones {
		old, next := b.w.child(z.index, b.CurrentVersion), b.w.child(z.index, b.UpdateVersion)
		if next == nil || !next.anyReady() || old != nil && old.anyReady() {
			return false
		}
		if old != nil && old.span().replicas == 0 && !b.pastProof(next) {
			return false // the old one is not bad: it gave its ordinals away
		}
	}
	return b.UpdateVersion != b.CurrentVersion
}

// pastProof tells whether nothing was left to ask of a version in a zone. Whether a
// job after the upgrade would have been good nobody knows.
func (b *ledger) pastProof(c *child) bool {
	return b.w.set.Spec.UpdateStrategy.PostUpdateJob == nil && b.w.proven(c) == b.w.replicas
}

// clock is the time in the API's resolution of a second, rounded up: a deadline
// that counts from it never comes too early.
func (b *ledger) clock() metav1.Time {
	return metav1.NewTime(b.w.now.Add(time.Second - 1).Truncate(time.Second))
}

// begin begins an attempt.
func (b *ledger) begin() {
	now := b.clock()
	u := b.Update
	u.StartedAt, u.CanaryAt, u.Zone, u.Returning, u.PreJob, u.PostJob = &now, nil, "", false, nil, nil
	if b.w.set.Spec.UpdateStrategy.PreUpdateJob != nil {
		b.Phase = v1alpha1.PhasePreJob
		return
	}
	b.nextZone()
}

// nextZone sends canaries into the first zone that the version does not have all
// of; after the last comes the job.
func (b *ledger) nextZone() {
	for _, z := range b.w.zones {
		next := b.w.child(z.index, b.UpdateVersion)
		if b.w.replicas > 0 && (next == nil || next.span() != span{0, b.w.replicas}) || next == nil {
			b.Phase, b.Update.Zone, b.Update.CanaryAt = v1alpha1.PhasePromoting, z.name, nil
			if b.w.replicas > 0 { // else there is nothing that could be better or worse
				now := b.clock()
				b.Phase, b.Update.CanaryAt = v1alpha1.PhaseCanary, &now
			}
			return
		}
	}
	b.Phase, b.Update.CanaryAt = v1alpha1.PhasePostJob, nil
	if b.w.set.Spec.UpdateStrategy.PostUpdateJob == nil {
		b.afterPostJob()
	}
}

// proceed takes the next step of the upgrade under way.
func (b *ledger) proceed() {
	if b.Phase == v1alpha1.PhaseStale || b.Phase == v1alpha1.PhaseAborted {
		return
	}
	if b.Update.StartedAt == nil { // a status that somebody edited
		b.begin()
		return
	}
	if b.Update.Returning {
		// Without replicas the next attempt would be good without proof.
		if b.w.replicas > 0 && b.w.unreturned(b.CurrentVersion) == "" && (b.w.set.Spec.UpdateStrategy.UpdateNotReady || b.w.notReady(b.CurrentVersion) == "") {
			b.Attempts++
			b.begin()
		}
		return
	}
	was := b.Phase
	switch b.Phase {
	case v1alpha1.PhaseCanary, v1alpha1.PhasePromoting:
		if !slices.ContainsFunc(b.w.zones, func(z zone) bool { return z.name == b.Update.Zone }) {
			b.nextZone() // it was taken off the spec
			return
		}
	}
	switch b.Phase {
	case v1alpha1.PhasePreJob:
		b.afterPreJob()
	case v1alpha1.PhaseCanary:
		b.afterCanary()
	case v1alpha1.PhasePromoting:
		if c := b.w.child(b.zone().index, b.UpdateVersion); b.w.replicas == 0 || c != nil && b.w.proven(c) == b.w.replicas {
			b.nextZone()
		}
	case v1alpha1.PhasePostJob:
		b.afterPostJob()
	default:
		b.begin()
	}
	if b.Phase == was && b.Update != nil && !b.Update.Returning && !b.paused() && b.w.ranOut(b.Update.StartedAt.Time, b.allowed(b.w.updateTime())) {
		b.fail(v1alpha1.ReasonUpdateTimeout, fmt.Sprintf("the upgrade was not complete within %s (updateWatchTime), in phase %s%s",
			b.w.updateTime(), was, b.w.hindered(b.UpdateVersion)))
	}
}

// zone is the one under way, or the first if it was taken off the spec.
func (b *ledger) zone() zone { return b.w.zoneOf(b.Update) }

func (w *world) zoneOf(u *v1alpha1.UpdateStatus) zone {
	for _, z := range w.zones {
		if z.name == u.Zone {
			return z
		}
	}
	return w.zones[0]
}

func (b *ledger) afterPreJob() {
	u := b.Update
	job := b.w.set.Spec.UpdateStrategy.PreUpdateJob
	switch result := b.job(preJob, &u.PreJob); {
	case job == nil, result == v1alpha1.JobSucceeded, result == v1alpha1.JobFailed && job.OnFailure == v1alpha1.OnFailureContinue:
		b.nextZone()
	case result == v1alpha1.JobFailed:
		b.Phase, u.Reason = v1alpha1.PhaseAborted, v1alpha1.ReasonPreJobFailed
		u.Message = fmt.Sprintf("Job %s failed", u.PreJob.Name)
	case b.w.ranOut(u.StartedAt.Time, b.w.updateTime()):
		b.Phase, u.Reason = v1alpha1.PhaseAborted, v1alpha1.ReasonPreJobFailed
		u.Message = fmt.Sprintf("the job before the update was not complete within %s (updateWatchTime)", b.w.updateTime())
	}
}

func (b *ledger) afterCanary() {
	z := b.zone()
	switch c := b.w.child(z.index, b.UpdateVersion); {
	case b.w.replicas == 0:
		b.Update.CanaryAt = nil
	case b.Update.CanaryAt == nil:
		now := b.clock()
		b.Update.StartedAt, b.Update.CanaryAt = &now, &now
	case c != nil && b.w.proven(c) >= b.w.canaries():
		b.Phase = v1alpha1.PhasePromoting
	case c != nil && b.w.ranOut(watchedSince(b.Update, c), b.allowed(b.w.canaryTime())):
		b.fail(v1alpha1.ReasonCanaryFailed, fmt.Sprintf("%d of %d canaries were Ready within %s (canaryWatchTime)%s%s",
			b.w.serving(c, b.w.replicas), b.w.canaries(), b.w.canaryTime(), z.in(), b.w.hindered(b.UpdateVersion)))
	}
}

// in is " in zone a"; "" without zones.
func (z zone) in() string {
	if z.index == noZone {
		return ""
	}
	return " in zone " + z.name
}

func (b *ledger) afterPostJob() {
	job, result := b.w.set.Spec.UpdateStrategy.PostUpdateJob, v1alpha1.JobSucceeded
	if job != nil {
		result = b.job(postJob, &b.Update.PostJob)
	}
	switch {
	case result == v1alpha1.JobFailed && job.OnFailure != v1alpha1.OnFailureContinue:
		b.fail(v1alpha1.ReasonPostJobFailed, fmt.Sprintf("Job %s failed", b.Update.PostJob.Name))
	case result != "" && b.complete(b.UpdateVersion) && b.w.allProven(b.UpdateVersion):
		b.CurrentVersion, b.CurrentDigest, b.Update, b.Attempts = b.UpdateVersion, b.w.digest, nil, 0
		b.Phase = v1alpha1.PhaseCleaningUp
	}
}

// complete tells whether a version has and serves all, in every zone.
func (b *ledger) complete(number int64) bool {
	for _, z := range b.w.zones {
		if c := b.w.child(z.index, number); c == nil || b.w.serving(c, b.w.replicas) < b.w.replicas {
			return false
		}
	}
	return true
}

// job follows a job of the attempt. Its UID goes on record before it is let go, so
// one that is gone has run, or its result counts as a failure.
func (b *ledger) job(which string, record **v1alpha1.JobStatus) v1alpha1.JobResult {
	name := jobName(b.w.set.Name, which, b.UpdateVersion, b.Update.EarlierAttempts+b.Attempts)
	job := b.w.jobs[name]
	if *record == nil {
		if job != nil && job.DeletionTimestamp == nil {
			*record = &v1alpha1.JobStatus{Name: name, UID: job.UID}
		}
		return ""
	}
	if (*record).Result == "" {
		(*record).Result = resultOf(job, *record)
	}
	return (*record).Result
}

func resultOf(job *batchv1.Job, record *v1alpha1.JobStatus) v1alpha1.JobResult {
	switch {
	case job == nil || job.UID != record.UID:
		return v1alpha1.JobFailed
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

// failureLength leaves room in a condition for what is said beside a failure.
const failureLength = 600

// fail ends an attempt. There is another, or the version is given up.
func (b *ledger) fail(reason, message string) {
	b.Update.Reason, b.Update.Message = reason, cut(message, failureLength)
	if b.Attempts <= b.w.set.Spec.UpdateStrategy.RetryCount {
		b.Update.Returning = true
		return
	}
	b.Phase = v1alpha1.PhaseStale
}
