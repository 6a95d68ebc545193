package record_test

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/children"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/spec"
)

// rolling starts a rolling update of a StatefulSet.
func rolling(w *facts.World) {
	w.Children[0].Set.Status.CurrentRevision, w.Children[0].Set.Status.UpdateRevision = "a", "b"
}

func TestProof(t *testing.T) {
	perOrdinal, coexist := v1alpha1.HandoverPerOrdinal, v1alpha1.HandoverCoexist
	canary, promoting, stale := v1alpha1.PhaseCanary, v1alpha1.PhasePromoting, v1alpha1.PhaseStale
	tried := func() *fixture.Scene {
		return fixture.Of(fixture.Plain()).Has(1, children.Span{Start: 0, Replicas: 3}).Upgrading(canary, coexist).Has(2, children.Span{Start: 0, Replicas: 1})
	}
	whole := func() *fixture.Scene {
		return fixture.Of(fixture.Plain()).Has(1, children.Span{Start: 0, Replicas: 3}).Upgrading(promoting, coexist).Has(2, children.Span{Start: 0, Replicas: 3})
	}
	back := func(unready ...int32) *fixture.Scene {
		return fixture.Of(fixture.Volumes()).Has(1, children.Span{Start: 0, Replicas: 2}, unready...).Upgrading(stale, perOrdinal).Has(2, children.Span{Start: 2, Replicas: 1}).But(fixture.Stale2)
	}
	later := func(d time.Duration) func(*facts.World) {
		return func(w *facts.World) { w.Now = w.Now.Add(d) }
	}
	for _, row := range []fixture.Sentence{
		{"a canary that has just become Ready is on probation", tried().Turned(1, 0, 10*time.Second-1), ""},
		{"a canary is good after its probation", tried().Turned(1, 0, 10*time.Second), "record: Promoting, version 1 to 2, attempt 1"},
		{"a short canaryWatchTime shortens the probation", tried().Turned(1, 0, 2*time.Second).But(func(w *facts.World) {
			w.Set.Spec.UpdateStrategy.CanaryWatchTime = &metav1.Duration{Duration: 4 * time.Second}
		}), "record: Promoting, version 1 to 2, attempt 1"},
		{"minReadySeconds replaces the probation", fixture.Of(fixture.Plain()).But(func(w *facts.World) { w.Set.Spec.Template.Spec.MinReadySeconds = 1 }).Has(1, children.Span{Start: 0, Replicas: 3}).
			Upgrading(canary, coexist).Has(2, children.Span{Start: 0, Replicas: 1}).Turned(1, 0, time.Second), "record: Promoting, version 1 to 2, attempt 1"},
		{"a canary that becomes Ready at the deadline completes its probation", tried().Turned(1, 0, -5*time.Minute).But(later(5 * time.Minute)), ""},
		{"a canary that becomes Ready after the deadline fails", tried().Turned(1, 0, -5*time.Minute-5*time.Second).But(later(5*time.Minute + 10*time.Second)),
			"record: Stale, version 1 to 2, attempt 1, CanaryFailed"},
		{"the old version is kept until all new pods have completed their probation", whole().Turned(1, 2, 10*time.Second-1), ""},
		{"the old version is replaced when all new pods have completed their probation", whole().Turned(1, 2, 10*time.Second), "record: CleaningUp, version 2"},
		{"the old version is kept until pods that restarted during the post job have completed their probation", fixture.Of(fixture.Plain()).Has(1, children.Span{Start: 0, Replicas: 3}).Upgrading(v1alpha1.PhasePostJob, coexist).Has(2, children.Span{Start: 0, Replicas: 3}).Turned(1, 2, 10*time.Second-1), ""},
		{"pods that become Ready at the deadline complete their probation", whole().Turned(1, 2, -10*time.Minute).But(later(10 * time.Minute)), ""},
		{"pods that become Ready after the deadline fail the upgrade", whole().Turned(1, 2, -10*time.Minute-5*time.Second).But(later(10*time.Minute + 10*time.Second)),
			"record: Stale, version 1 to 2, attempt 1, UpdateTimeout"},
		{"no ordinal is taken while a canary is on probation", fixture.Of(fixture.Volumes()).Has(1, children.Span{Start: 0, Replicas: 2}).Upgrading(canary, perOrdinal).Has(2, children.Span{Start: 2, Replicas: 1}).Turned(1, 2, time.Second), ""},
		{"the canary gets only one of the restored replicas", fixture.Of(fixture.Volumes()).Has(1, children.Span{}).Upgrading(canary, perOrdinal).Has(2, children.Span{}),
			"patch statefulset db-v1: Scale, ordinals 0 to 1\npatch statefulset db-v2: Scale, ordinals 2 to 2\n"},
		{"an upgrade waits for a restart in progress", fixture.Of(fixture.Plain()).Has(1, children.Span{Start: 0, Replicas: 3}).Edited().But(rolling), "record: Waiting, version 1"},
		{"an upgrade does not wait for a restart with OnDelete or a partition", fixture.Of(fixture.Plain()).But(func(w *facts.World) {
			w.Set.Spec.Template.Spec.UpdateStrategy.Type = appsv1.OnDeleteStatefulSetStrategyType
		}).But(func(w *facts.World) { w.Set.Status.CurrentDigest, _ = children.DigestOf(w.Set) }).Has(1, children.Span{Start: 0, Replicas: 3}).Edited().But(rolling), "record: Canary, version 1 to 2, attempt 1"},
		{"a rollback waits for a pod that has just become not Ready", back(0).Turned(0, 0, 5*time.Minute-1), ""},
		{"a rollback does not wait for a pod longer than canaryWatchTime", back(0).Turned(0, 0, 5*time.Minute), "patch statefulset db-v2: Scale, no pods\n"},
		{"a rollback waits for a pod that is not Ready with updateNotReady", back(0).Turned(0, 0, time.Second).But(func(w *facts.World) { w.Set.Spec.UpdateStrategy.UpdateNotReady = true }), ""},
		{"a stale version with Ready pods does not become current", fixture.Of(fixture.Plain()).Has(1, children.Span{Start: 0, Replicas: 3}, 0, 1, 2).Upgrading(stale, coexist).Has(2, children.Span{Start: 0, Replicas: 3}).
			But(func(w *facts.World) { w.Digest = "another" }), "record: Waiting, version 1"},
		{"a version between two attempts does not become current", fixture.Of(fixture.Plain()).Has(1, children.Span{Start: 0, Replicas: 3}, 0, 1, 2).Upgrading(canary, coexist).Has(2, children.Span{Start: 0, Replicas: 3}).
			But(func(w *facts.World) { w.Digest, w.Set.Status.Update.Returning = "another", true }), "record: Waiting, version 1"},
		{"a version with all Ready pods becomes current when it is superseded", fixture.Of(fixture.Plain()).Has(1, children.Span{Start: 0, Replicas: 3}, 0, 1, 2).Upgrading(promoting, coexist).Has(2, children.Span{Start: 0, Replicas: 3}).
			But(func(w *facts.World) { w.Digest = "another" }), "record: Waiting, version 2"},
		{"after the loss of the status the version with most pods is current", fixture.Of(fixture.Volumes()).Has(1, children.Span{Start: 0, Replicas: 2}).Upgrading(canary, perOrdinal).Has(2, children.Span{Start: 2, Replicas: 1}).
			But(func(w *facts.World) { w.Set.Status = v1alpha1.ExtendedStatefulSetStatus{} }), "record: Waiting, version 1"},
		{"the digest of the old version is restored during an upgrade", tried().Turned(1, 0, 0).But(func(w *facts.World) { delete(w.Children[0].Set.Annotations, v1alpha1.AnnotationDigest) }),
			"patch statefulset db-v1: Child\n"},
		{"canaries without replicas have no deadline", tried().But(func(w *facts.World) { w.Replicas = 0 }).After(time.Hour), "record: Canary, version 1 to 2, attempt 1"},
		{"canaryWatchTime begins when replicas are restored", tried().But(func(w *facts.World) { w.Set.Status.Update.CanaryAt = nil }).Turned(1, 0, 0).After(time.Hour).Turned(1, 0, -time.Hour),
			"record: Canary, version 1 to 2, attempt 1"},
		{"a removed zone is deleted only when a wanted zone serves", fixture.Of(fixture.Plain()).Has(1, children.Span{Start: 0, Replicas: 3}).But(func(w *facts.World) { w.Zones = []children.Zone{{Name: "a", Index: 0}} }).Upgrading(canary, coexist),
			"create statefulset db-z0-v2: VersionCreated, ordinals 0 to 0\n"},
	} {
		if row.Name == "a removed zone is deleted only when a wanted zone serves" {
			row.Scene.W.Set.Status.Update.Zone = "a"
			row.Scene.W.Set.Status.Zones = []v1alpha1.ZoneStatus{{Name: "a"}}
		}
		t.Run(row.Name, func(t *testing.T) { fixture.CheckSentence(t, row) })
	}
}

// turn swaps the two zones, so that fixture.Scene.Has adds StatefulSets to the second one.
func turn(w *facts.World) { w.Zones[0], w.Zones[1] = w.Zones[1], w.Zones[0] }

// TestScaledDuringAnUpgrade verifies that ordinals that a scale-down has not removed yet are not treated as
// missing ones. Otherwise phases Promoting and Canary alternate, and the surplus ordinals are never removed,
// because the record is written first.
func TestScaledDuringAnUpgrade(t *testing.T) {
	perOrdinal, coexist, promoting := v1alpha1.HandoverPerOrdinal, v1alpha1.HandoverCoexist, v1alpha1.PhasePromoting
	whole := func() *fixture.Scene {
		return fixture.Of(fixture.Plain()).Has(1, children.Span{Start: 0, Replicas: 3}).Upgrading(promoting, coexist).Has(2, children.Span{Start: 0, Replicas: 3})
	}
	fewer := func(replicas int32) func(*facts.World) {
		return func(w *facts.World) { w.Replicas = replicas }
	}
	for _, row := range []fixture.Sentence{
		{"a version that is scaled down in phase Promoting does not return to phase Canary", whole().But(fewer(1)), "record: CleaningUp, version 2"},
		{"a version that is scaled down in phase Promoting is complete when the remaining pods have completed their probation", whole().Turned(1, 0, 10*time.Second-1).But(fewer(1)),
			"patch statefulset db-v1: Scale, ordinals 0 to 0\npatch statefulset db-v2: Scale, ordinals 0 to 0\n"},
		{"a version that is scaled down after all ordinals have moved does not return to phase Canary", fixture.Of(fixture.Volumes()).Has(1, children.Span{}).Upgrading(promoting, perOrdinal).Has(2, children.Span{Start: 0, Replicas: 3}).But(fewer(2)),
			"record: CleaningUp, version 2"},
		{"a version that is scaled up in phase Promoting gets the added ordinals", fixture.Of(fixture.Plain()).Has(1, children.Span{Start: 0, Replicas: 2}).Upgrading(promoting, coexist).Has(2, children.Span{Start: 0, Replicas: 2}),
			"patch statefulset db-v1: Scale, ordinals 0 to 2\npatch statefulset db-v2: Scale, ordinals 0 to 2\n"},
		{"a zone that is scaled down while another is in phase Promoting gets no further canaries", fixture.Of(fixture.Plain()).But(fixture.InTwoZones).Has(1, children.Span{Start: 0, Replicas: 3}).Upgrading(promoting, coexist).Has(2, children.Span{Start: 0, Replicas: 3}).
			But(turn).Has(1, children.Span{Start: 0, Replicas: 3}).Has(2, children.Span{Start: 0, Replicas: 3}).But(turn).But(fewer(1)), "record: CleaningUp, version 2"},
		{"an upgrade begins before surplus ordinals of the current version are removed", fixture.Of(fixture.Plain()).Has(1, children.Span{Start: 0, Replicas: 3}).Edited().But(fewer(1)), "record: Canary, version 1 to 2, attempt 1"},
	} {
		t.Run(row.Name, func(t *testing.T) { fixture.CheckSentence(t, row) })
	}
}

// lost removes a Job, and sets its result.
func lost(uid types.UID, result v1alpha1.JobResult) func(*facts.World) {
	return func(w *facts.World) { w.Jobs, w.LostJobs = nil, map[types.UID]v1alpha1.JobResult{uid: result} }
}

// toThree changes the template again during an upgrade.
func toThree(w *facts.World) {
	w.Set.Spec.Template.Spec.Template.Spec.Containers[0].Image = "three"
	w.Digest, _ = children.DigestOf(w.Set)
}

// TestSuperseded verifies that a superseded version replaces the old one only if it has passed all
// checks. With handover PerOrdinal the old version finally has no pods, even if it is good.
func TestSuperseded(t *testing.T) {
	moved := func(unready ...int32) *fixture.Scene {
		return fixture.Of(fixture.Volumes()).Has(1, children.Span{Start: 0}).Upgrading(v1alpha1.PhasePostJob, v1alpha1.HandoverPerOrdinal).Has(2, children.Span{Start: 0, Replicas: 3}, unready...)
	}
	for _, row := range []fixture.Sentence{
		{"a version with all ordinals and good pods becomes current", moved().But(toThree), "record: Canary, version 2 to 3, attempt 1"},
		{"a version with a pod that is not Ready does not become current", moved(1).But(toThree), "record: Waiting, version 1"},
		{"a version with a pod on probation does not become current", moved().Turned(1, 1, spec.MaxProbation-1).But(toThree), "record: Waiting, version 1"},
		{"a version in phase PostJob does not become current", moved().But(fixture.PostJobRuns).But(toThree), "record: Waiting, version 1"},
		{"a version with Ready pods becomes current if the old one has none", fixture.Of(fixture.Volumes()).Has(1, children.Span{Start: 0, Replicas: 2}, 0, 1).Upgrading(v1alpha1.PhaseCanary, v1alpha1.HandoverPerOrdinal).
			Has(2, children.Span{Start: 2, Replicas: 1}).But(toThree), "record: Waiting, version 2"},
	} {
		t.Run(row.Name, func(t *testing.T) { fixture.CheckSentence(t, row) })
	}
}

// TestACanaryThatCrashes verifies E20: without a readiness probe a container is Ready while it runs,
// even if it crashes shortly after its start.
func TestACanaryThatCrashes(t *testing.T) {
	since := func(d time.Duration, ordinal int32) func(*facts.World) {
		return func(w *facts.World) {
			w.Children.Find(w.Zones[0].Index, 2).Pods[ordinal].Status.Conditions[0].LastTransitionTime = metav1.NewTime(w.Now.Add(-d))
		}
	}
	two := func(w *facts.World) { w.Set.Spec.UpdateStrategy.Canaries = ptr.To(int32(2)) }
	canary := func(how v1alpha1.Handover, sp children.Span) *fixture.Scene {
		return fixture.Of(fixture.Volumes()).Has(1, children.Span{Start: 0, Replicas: 2}).Upgrading(v1alpha1.PhaseCanary, how).Has(2, sp)
	}
	promoting := "record: Promoting, version 1 to 2, attempt 1"
	for _, row := range []struct {
		name  string
		scene *fixture.Scene
		want  string
	}{
		{"a canary that was Ready for 9 s is not good", canary(v1alpha1.HandoverPerOrdinal, children.Span{Start: 2, Replicas: 1}).But(since(9*time.Second, 2)), ""},
		{"a canary that was Ready for longer than the first restart delay is good", canary(v1alpha1.HandoverPerOrdinal, children.Span{Start: 2, Replicas: 1}).But(since(10*time.Second, 2)), promoting},
		{"minReadySeconds replaces the probation", canary(v1alpha1.HandoverPerOrdinal, children.Span{Start: 2, Replicas: 1}).
			But(func(w *facts.World) { w.Set.Spec.Template.Spec.MinReadySeconds = 1 }).But(since(2*time.Second, 2)), promoting},
		{"half of a short canaryWatchTime is enough", canary(v1alpha1.HandoverPerOrdinal, children.Span{Start: 2, Replicas: 1}).
			But(func(w *facts.World) {
				w.Set.Spec.UpdateStrategy.CanaryWatchTime = &metav1.Duration{Duration: 6 * time.Second}
			}).But(since(3*time.Second, 2)), promoting},
		{"the second ordinal is not taken while the first canary is on probation", canary(v1alpha1.HandoverPerOrdinal, children.Span{Start: 2, Replicas: 1}).But(two).But(since(9*time.Second, 2)), ""},
		{"the second ordinal is taken when the first canary is good", canary(v1alpha1.HandoverPerOrdinal, children.Span{Start: 2, Replicas: 1}).But(two).But(since(10*time.Second, 2)),
			"patch statefulset db-v1: Scale, ordinals 0 to 0\n"},
	} {
		t.Run(row.name, func(t *testing.T) {
			if got := row.scene.Says(); got != row.want {
				t.Errorf("got\n%s\nwant\n%s", got, row.want)
			}
		})
	}
}
