package extendedstatefulset

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/children"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/observe"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/spec"
)

// turned sets how long ago the Ready condition of a pod changed.
func (s *scene) turned(child int, ordinal int32, before time.Duration) *scene {
	c := &s.w.Children[child].Pods[ordinal].Status.Conditions[0]
	c.LastTransitionTime = metav1.NewTime(noon.Add(-before))
	return s
}

// rolling starts a rolling update of a StatefulSet.
func rolling(w *facts.World) {
	w.Children[0].Set.Status.CurrentRevision, w.Children[0].Set.Status.UpdateRevision = "a", "b"
}

func TestProof(t *testing.T) {
	perOrdinal, coexist := v1alpha1.HandoverPerOrdinal, v1alpha1.HandoverCoexist
	canary, promoting, stale := v1alpha1.PhaseCanary, v1alpha1.PhasePromoting, v1alpha1.PhaseStale
	tried := func() *scene {
		return of(plain()).has(1, children.Span{Start: 0, Replicas: 3}).upgrading(canary, coexist).has(2, children.Span{Start: 0, Replicas: 1})
	}
	whole := func() *scene {
		return of(plain()).has(1, children.Span{Start: 0, Replicas: 3}).upgrading(promoting, coexist).has(2, children.Span{Start: 0, Replicas: 3})
	}
	back := func(unready ...int32) *scene {
		return of(volumes()).has(1, children.Span{Start: 0, Replicas: 2}, unready...).upgrading(stale, perOrdinal).has(2, children.Span{Start: 2, Replicas: 1}).but(stale2)
	}
	later := func(d time.Duration) func(*facts.World) {
		return func(w *facts.World) { w.Now = w.Now.Add(d) }
	}
	for _, row := range []sentence{
		{"a canary that has just become Ready is on probation", tried().turned(1, 0, 10*time.Second-1), ""},
		{"a canary is good after its probation", tried().turned(1, 0, 10*time.Second), "record: Promoting, version 1 to 2, attempt 1"},
		{"a short canaryWatchTime shortens the probation", tried().turned(1, 0, 2*time.Second).but(func(w *facts.World) {
			w.Set.Spec.UpdateStrategy.CanaryWatchTime = &metav1.Duration{Duration: 4 * time.Second}
		}), "record: Promoting, version 1 to 2, attempt 1"},
		{"minReadySeconds replaces the probation", of(plain()).but(func(w *facts.World) { w.Set.Spec.Template.Spec.MinReadySeconds = 1 }).has(1, children.Span{Start: 0, Replicas: 3}).
			upgrading(canary, coexist).has(2, children.Span{Start: 0, Replicas: 1}).turned(1, 0, time.Second), "record: Promoting, version 1 to 2, attempt 1"},
		{"a canary that becomes Ready at the deadline completes its probation", tried().turned(1, 0, -5*time.Minute).but(later(5 * time.Minute)), ""},
		{"a canary that becomes Ready after the deadline fails", tried().turned(1, 0, -5*time.Minute-5*time.Second).but(later(5*time.Minute + 10*time.Second)),
			"record: Stale, version 1 to 2, attempt 1, CanaryFailed"},
		{"the old version is kept until all new pods have completed their probation", whole().turned(1, 2, 10*time.Second-1), ""},
		{"the old version is replaced when all new pods have completed their probation", whole().turned(1, 2, 10*time.Second), "record: CleaningUp, version 2"},
		{"the old version is kept until pods that restarted during the post job have completed their probation", of(plain()).has(1, children.Span{Start: 0, Replicas: 3}).upgrading(v1alpha1.PhasePostJob, coexist).has(2, children.Span{Start: 0, Replicas: 3}).turned(1, 2, 10*time.Second-1), ""},
		{"pods that become Ready at the deadline complete their probation", whole().turned(1, 2, -10*time.Minute).but(later(10 * time.Minute)), ""},
		{"pods that become Ready after the deadline fail the upgrade", whole().turned(1, 2, -10*time.Minute-5*time.Second).but(later(10*time.Minute + 10*time.Second)),
			"record: Stale, version 1 to 2, attempt 1, UpdateTimeout"},
		{"no ordinal is taken while a canary is on probation", of(volumes()).has(1, children.Span{Start: 0, Replicas: 2}).upgrading(canary, perOrdinal).has(2, children.Span{Start: 2, Replicas: 1}).turned(1, 2, time.Second), ""},
		{"the canary gets only one of the restored replicas", of(volumes()).has(1, children.Span{}).upgrading(canary, perOrdinal).has(2, children.Span{}),
			"patch statefulset db-v1: Scale, ordinals 0 to 1\npatch statefulset db-v2: Scale, ordinals 2 to 2\n"},
		{"an upgrade waits for a restart in progress", of(plain()).has(1, children.Span{Start: 0, Replicas: 3}).edited().but(rolling), "record: Waiting, version 1"},
		{"an upgrade does not wait for a restart with OnDelete or a partition", of(plain()).but(func(w *facts.World) {
			w.Set.Spec.Template.Spec.UpdateStrategy.Type = appsv1.OnDeleteStatefulSetStrategyType
		}).but(func(w *facts.World) { w.Set.Status.CurrentDigest, _ = children.DigestOf(w.Set) }).has(1, children.Span{Start: 0, Replicas: 3}).edited().but(rolling), "record: Canary, version 1 to 2, attempt 1"},
		{"a rollback waits for a pod that has just become not Ready", back(0).turned(0, 0, 5*time.Minute-1), ""},
		{"a rollback does not wait for a pod longer than canaryWatchTime", back(0).turned(0, 0, 5*time.Minute), "patch statefulset db-v2: Scale, no pods\n"},
		{"a rollback waits for a pod that is not Ready with updateNotReady", back(0).turned(0, 0, time.Second).but(func(w *facts.World) { w.Set.Spec.UpdateStrategy.UpdateNotReady = true }), ""},
		{"a stale version with Ready pods does not become current", of(plain()).has(1, children.Span{Start: 0, Replicas: 3}, 0, 1, 2).upgrading(stale, coexist).has(2, children.Span{Start: 0, Replicas: 3}).
			but(func(w *facts.World) { w.Digest = "another" }), "record: Waiting, version 1"},
		{"a version between two attempts does not become current", of(plain()).has(1, children.Span{Start: 0, Replicas: 3}, 0, 1, 2).upgrading(canary, coexist).has(2, children.Span{Start: 0, Replicas: 3}).
			but(func(w *facts.World) { w.Digest, w.Set.Status.Update.Returning = "another", true }), "record: Waiting, version 1"},
		{"a version with all Ready pods becomes current when it is superseded", of(plain()).has(1, children.Span{Start: 0, Replicas: 3}, 0, 1, 2).upgrading(promoting, coexist).has(2, children.Span{Start: 0, Replicas: 3}).
			but(func(w *facts.World) { w.Digest = "another" }), "record: Waiting, version 2"},
		{"after the loss of the status the version with most pods is current", of(volumes()).has(1, children.Span{Start: 0, Replicas: 2}).upgrading(canary, perOrdinal).has(2, children.Span{Start: 2, Replicas: 1}).
			but(func(w *facts.World) { w.Set.Status = v1alpha1.ExtendedStatefulSetStatus{} }), "record: Waiting, version 1"},
		{"the digest of the old version is restored during an upgrade", tried().turned(1, 0, 0).but(func(w *facts.World) { delete(w.Children[0].Set.Annotations, v1alpha1.AnnotationDigest) }),
			"patch statefulset db-v1: Child\n"},
		{"canaries without replicas have no deadline", tried().but(func(w *facts.World) { w.Replicas = 0 }).after(time.Hour), "record: Canary, version 1 to 2, attempt 1"},
		{"canaryWatchTime begins when replicas are restored", tried().but(func(w *facts.World) { w.Set.Status.Update.CanaryAt = nil }).turned(1, 0, 0).after(time.Hour).turned(1, 0, -time.Hour),
			"record: Canary, version 1 to 2, attempt 1"},
		{"a removed zone is deleted only when a wanted zone serves", of(plain()).has(1, children.Span{Start: 0, Replicas: 3}).but(func(w *facts.World) { w.Zones = []children.Zone{{Name: "a", Index: 0}} }).upgrading(canary, coexist),
			"create statefulset db-z0-v2: VersionCreated, ordinals 0 to 0\n"},
	} {
		if row.name == "a removed zone is deleted only when a wanted zone serves" {
			row.scene.w.Set.Status.Update.Zone = "a"
			row.scene.w.Set.Status.Zones = []v1alpha1.ZoneStatus{{Name: "a"}}
		}
		t.Run(row.name, func(t *testing.T) { row.check(t) })
	}
}

// TestHoldsPods verifies that pods are not restarted while an ordinal moves, because two pods would be
// down.
func TestHoldsPods(t *testing.T) {
	perOrdinal, coexist := v1alpha1.HandoverPerOrdinal, v1alpha1.HandoverCoexist
	const split = "ordinals are moving between versions"
	for _, row := range []struct {
		name   string
		scene  *scene
		number int64
		want   string
	}{
		{"pods of a stable version are restarted", of(volumes()).has(1, children.Span{Start: 0, Replicas: 3}), 1, ""},
		{"pods of a version that is scaled are restarted", of(volumes()).has(1, children.Span{Start: 0, Replicas: 2}), 1, ""},
		{"pods of a new version in phase Promoting are not restarted", of(volumes()).has(1, children.Span{Start: 0, Replicas: 1}).upgrading(v1alpha1.PhasePromoting, perOrdinal).has(2, children.Span{Start: 2, Replicas: 1}), 2, split},
		{"failed canaries are restarted because a restart may fix them", of(volumes()).has(1, children.Span{Start: 0, Replicas: 2}).upgrading(v1alpha1.PhaseCanary, perOrdinal).has(2, children.Span{Start: 2, Replicas: 1}, 2), 2, ""},
		{"good canaries are not restarted while the next ordinal is taken", of(volumes()).has(1, children.Span{Start: 0, Replicas: 2}).upgrading(v1alpha1.PhaseCanary, perOrdinal).has(2, children.Span{Start: 2, Replicas: 1}), 2, split},
		{"canaries are not restarted in a rollback", of(volumes()).has(1, children.Span{Start: 0, Replicas: 2}).upgrading(v1alpha1.PhaseCanary, perOrdinal).has(2, children.Span{Start: 2, Replicas: 1}, 2).
			but(func(w *facts.World) { w.Set.Status.Update.Returning = true }), 2, split},
		{"pods of a new version are restarted with Coexist", of(plain()).has(1, children.Span{Start: 0, Replicas: 3}).upgrading(v1alpha1.PhasePromoting, coexist).has(2, children.Span{Start: 0, Replicas: 3}), 2, ""},
		{"pods of the old version are not restarted in a rollback", of(volumes()).has(1, children.Span{Start: 0, Replicas: 1}).upgrading(v1alpha1.PhaseStale, perOrdinal).has(2, children.Span{Start: 2, Replicas: 1}), 1, split},
		{"pods of the old version are restarted after a rollback", of(volumes()).has(1, children.Span{Start: 0, Replicas: 3}).upgrading(v1alpha1.PhaseStale, perOrdinal).has(2, children.Span{}), 1, ""},
		{"pods of a stale version are not restarted in a rollback", of(volumes()).has(1, children.Span{Start: 0, Replicas: 1}).upgrading(v1alpha1.PhaseStale, perOrdinal).has(2, children.Span{Start: 1, Replicas: 2}), 2, split},
		{"pods of a new version whose post job failed are not restarted", of(volumes()).has(1, children.Span{Start: 0, Replicas: 1}).upgrading(v1alpha1.PhasePostJob, perOrdinal).has(2, children.Span{Start: 1, Replicas: 2}), 2, split},
		{"pods are not restarted while a claim is terminating", of(volumes()).has(1, children.Span{Start: 0, Replicas: 3}).but(deletedClaim(1)), 1, "claim data-db-1 is terminating, and its data is lost when its pod is deleted"},
		{"canaries are not restarted while their claim is terminating", of(volumes()).has(1, children.Span{Start: 0, Replicas: 2}).upgrading(v1alpha1.PhaseCanary, perOrdinal).has(2, children.Span{Start: 2, Replicas: 1}, 2).but(deletedClaim(2)), 2,
			"claim data-db-2 is terminating, and its data is lost when its pod is deleted"},
	} {
		if got := row.scene.w.HoldsPods(row.number); got != row.want {
			t.Errorf("%s: %q, want %q", row.name, got, row.want)
		}
	}
	w := of(volumes()).has(1, children.Span{Start: 0, Replicas: 1}).upgrading(v1alpha1.PhasePromoting, perOrdinal).has(2, children.Span{Start: 1, Replicas: 2}, 2).w
	w.Set.Spec.InjectReplicasEnv = ptr.To(true) // as if the number of replicas changed
	if got := (&scene{w}).says(); got != "" {
		t.Errorf("a template was changed while restarts wait: %s", got)
	}
}

// TestZonesFixed verifies that a set with claims cannot switch between zones and no zones.
func TestZonesFixed(t *testing.T) {
	for _, row := range []struct {
		name    string
		was     []string
		version int64
		now     []string
		claims  bool
		want    int
	}{
		{"zones are added to a set with claims", nil, 1, []string{"a"}, true, 1},
		{"zones of a set with claims were added by mistake and are removed", nil, 1, nil, true, 0},
		{"zones are removed from a set with claims", []string{"a"}, 1, nil, true, 1},
		{"zones of a set with claims are replaced", []string{"a"}, 1, []string{"b"}, true, 0},
		{"zones are added to a set with claims before the first version", nil, 0, []string{"a"}, true, 0},
		{"zones are added to a set without claims", nil, 1, []string{"a"}, false, 0},
	} {
		old := plain()
		if row.claims {
			old = volumes()
		}
		old.Status.CurrentVersion = row.version
		for i, name := range row.was {
			old.Status.Zones = append(old.Status.Zones, v1alpha1.ZoneStatus{Name: name, Index: int32(i)})
		}
		set := old.DeepCopy()
		set.Spec.Zones = row.now
		if errs := spec.ValidateChange(old, set); len(errs) != row.want || row.want > 0 && errs[0].Field != "spec.zones" {
			t.Errorf("%s: %v", row.name, errs)
		}
	}
}

// lost removes a Job, and sets its result.
func lost(uid types.UID, result v1alpha1.JobResult) func(*facts.World) {
	return func(w *facts.World) { w.Jobs, w.LostJobs = nil, map[types.UID]v1alpha1.JobResult{uid: result} }
}

// TestJobOfRecord verifies E25: a Job counts as having run once its UID is recorded, and only the Job
// with this UID counts.
func TestJobOfRecord(t *testing.T) {
	complete := batchv1.JobStatus{Conditions: []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}}}
	before := func(record *v1alpha1.JobStatus, job *batchv1.Job) *scene {
		return of(plain()).has(1, children.Span{Start: 0, Replicas: 3}).upgrading(v1alpha1.PhasePreJob, v1alpha1.HandoverCoexist).but(func(w *facts.World) {
			w.Set.Spec.UpdateStrategy.PreUpdateJob = &v1alpha1.UpdateJob{}
			w.Set.Status.Update.PreJob = record
			job.Name, job.Status = "db-pre-v2-1", complete
			w.Jobs = map[string]*batchv1.Job{job.Name: job}
		})
	}
	record := &v1alpha1.JobStatus{Name: "db-pre-v2-1", UID: "a"}
	unknown := &v1alpha1.JobStatus{Name: "db-pre-v2-1", UID: "a", Result: v1alpha1.JobUnknown}
	for _, row := range []sentence{
		{"an existing job is recorded", before(nil, &batchv1.Job{ObjectMeta: metav1.ObjectMeta{UID: "a"}}), "record: PreJob, version 1 to 2, attempt 1, db-pre-v2-1 is known"},
		{"a terminating job is not recorded", before(nil, &batchv1.Job{ObjectMeta: metav1.ObjectMeta{UID: "a", DeletionTimestamp: ptr.To(metav1.NewTime(noon))}}), ""},
		{"the result of the recorded job applies", before(record.DeepCopy(), &batchv1.Job{ObjectMeta: metav1.ObjectMeta{UID: "a"}}), "record: Canary, version 1 to 2, attempt 1, db-pre-v2-1 Succeeded"},
		{"the result of another job with the same name is ignored", before(record.DeepCopy(), &batchv1.Job{ObjectMeta: metav1.ObjectMeta{UID: "b"}}).but(lost("a", v1alpha1.JobUnknown)),
			"record: PreJob, version 1 to 2, attempt 1, db-pre-v2-1 Unknown"},
		{"W19 a missing job without a watch event is waited for", before(record.DeepCopy(), &batchv1.Job{}).but(func(w *facts.World) { w.Jobs = nil }), ""},
		{"W19 a job that was complete when it was deleted has succeeded", before(record.DeepCopy(), &batchv1.Job{}).but(lost("a", v1alpha1.JobSucceeded)),
			"record: Canary, version 1 to 2, attempt 1, db-pre-v2-1 Succeeded"},
		{"W19 a job that was deleted before it was complete has failed", before(record.DeepCopy(), &batchv1.Job{}).but(lost("a", v1alpha1.JobFailed)),
			"record: Aborted, version 1 to 2, attempt 1, PreUpdateJobFailed, db-pre-v2-1 Failed"},
		{"W19 a missing job has an unknown result", before(record.DeepCopy(), &batchv1.Job{}).but(lost("a", v1alpha1.JobUnknown)),
			"record: PreJob, version 1 to 2, attempt 1, db-pre-v2-1 Unknown"},
		{"W19 an upgrade waits while the result of a job is unknown", before(unknown.DeepCopy(), &batchv1.Job{}).but(lost("a", v1alpha1.JobUnknown)), ""},
		{"W19 an upgrade with an unknown result is aborted after updateWatchTime", before(unknown.DeepCopy(), &batchv1.Job{}).but(lost("a", v1alpha1.JobUnknown)).after(10 * time.Minute),
			"record: Aborted, version 1 to 2, attempt 1, PreUpdateJobFailed, db-pre-v2-1 Unknown"},
		{"W19 an upgrade with an unknown result continues with onFailure Continue", before(unknown.DeepCopy(), &batchv1.Job{}).but(lost("a", v1alpha1.JobUnknown)).but(func(w *facts.World) {
			w.Set.Spec.UpdateStrategy.PreUpdateJob.OnFailure = v1alpha1.OnFailureContinue
		}), "record: Canary, version 1 to 2, attempt 1, db-pre-v2-1 Unknown"},
		{"W19 an upgrade with an unknown result begins the next attempt if one is left", before(unknown.DeepCopy(), &batchv1.Job{}).but(lost("a", v1alpha1.JobUnknown)).but(func(w *facts.World) {
			w.Set.Spec.UpdateStrategy.RetryCount = 1
		}), "record: PreJob, version 1 to 2, attempt 2"},
	} {
		t.Run(row.name, func(t *testing.T) { row.check(t) })
	}
}

// TestClaimsThatGoAreLeftAlone verifies that terminating claims are not patched.
func TestClaimsThatGoAreLeftAlone(t *testing.T) {
	s := of(volumes()).has(1, children.Span{Start: 0, Replicas: 3})
	for o := range int32(3) {
		c := children.BuildClaim(s.w.Set, &s.w.Set.Spec.Template.Spec.VolumeClaimTemplates[0], children.Zone{Index: children.NoZone}, o)
		c.Spec.Resources.Requests = nil // otherwise it would be expanded
		c.DeletionTimestamp = ptr.To(metav1.NewTime(noon))
		s.w.Claims[c.Name] = c
	}
	if _, p := decided(s.w); p.DoesSomething() {
		t.Errorf("got actions %v", p.Steps.Strings())
	}
}

// TestRivals verifies that a StatefulSet which the object used to control is a rival, and that an
// unrelated one is not.
func TestRivals(t *testing.T) {
	s := of(volumes()).has(1, children.Span{Start: 0, Replicas: 1})
	taken := s.w.Children[0].Set.DeepCopy()
	taken.OwnerReferences = nil
	foreign := taken.DeepCopy()
	foreign.Spec.Template.Labels = nil
	observe.AddChild(s.w, taken)
	observe.AddChild(s.w, foreign)
	if len(s.w.Rivals) != 1 || s.w.Rivals[0].Set != taken {
		t.Errorf("got rivals %v", s.w.Rivals)
	}
	s = of(volumes())
	pod := &corev1.Pod{}
	s.w.Pods = []facts.PodOfOrdinal{{Zone: children.NoZone, Version: 9, Ordinal: 1, Pod: pod}}
	for _, live := range []bool{false, true} {
		if s.w.Live = live; s.w.Unsure() == live {
			t.Errorf("live %t: wrong reason for a pod without its StatefulSet", live)
		}
	}
	if s.w.InTransit(children.Zone{Index: children.NoZone}, 1) || !s.w.InTransit(children.Zone{Index: children.NoZone}, 0) {
		t.Error("a running orphaned pod is waited for, or an expected pod is not")
	}
}

// TestAJobStaysUntilItIsLookedAt verifies that a Job is created without a TTL. Otherwise the TTL
// controller could delete it before its result is recorded, and a missing Job counts as failed.
func TestAJobStaysUntilItIsLookedAt(t *testing.T) {
	from := job("fine")
	from.Spec.TTLSecondsAfterFinished, from.Spec.Suspend = ptr.To(int32(0)), ptr.To(false)
	if j := children.BuildJob(fakeSet(1), from, children.PreJob, 2, 1); j.Spec.TTLSecondsAfterFinished != nil || !*j.Spec.Suspend {
		t.Errorf("got ttlSecondsAfterFinished %v, suspend %v", j.Spec.TTLSecondsAfterFinished, *j.Spec.Suspend)
	}
}
