package rules_test

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/children"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/fixture"
)

// keptEdit marks the first StatefulSet as edited by another client, with the edit already reported.
func keptEdit(w *facts.World) {
	set := w.Children[0].Set
	set.Generation, set.Annotations[v1alpha1.AnnotationApplied] = 2, children.Applied{Hash: children.ContentHash(set), Generation: children.EditedGeneration}.String()
}

func observedLater(c *facts.Child) { c.Set.Generation++ }

func TestDecide(t *testing.T) {
	perOrdinal, coexist := v1alpha1.HandoverPerOrdinal, v1alpha1.HandoverCoexist
	canary, promoting, postJob := v1alpha1.PhaseCanary, v1alpha1.PhasePromoting, v1alpha1.PhasePostJob
	for _, row := range []fixture.Sentence{
		{"a stable set is not changed", fixture.Of(fixture.Plain()).Has(1, children.Span{Start: 0, Replicas: 3}), ""},
		{"E12 ordinals that another client added are removed", fixture.Of(fixture.Plain()).Has(1, children.Span{Start: 0, Replicas: 5}), "patch statefulset db-v1: Scale, ordinals 0 to 2\n"},
		{"a version is recorded before its objects are created", fixture.Of(fixture.Plain()).Has(1, children.Span{Start: 0, Replicas: 3}).Edited(),
			"record: Canary, version 1 to 2, attempt 1"},
		{"E22 an upgrade waits until the current version is Ready", fixture.Of(fixture.Plain()).Has(1, children.Span{Start: 0, Replicas: 3}, 2).Edited(), "record: Waiting, version 1"},
		{"E22 an upgrade with updateNotReady does not wait", fixture.Of(fixture.Plain()).Has(1, children.Span{Start: 0, Replicas: 3}, 2).Edited().But(func(w *facts.World) { w.Set.Spec.UpdateStrategy.UpdateNotReady = true }),
			"record: Canary, version 1 to 2, attempt 1"},
		{"an upgrade with updateNotReady waits until the ordinals of an earlier upgrade are returned", fixture.Of(fixture.Plain()).Has(1, children.Span{Start: 0, Replicas: 3}).Edited().
			But(func(w *facts.World) { w.Set.Spec.UpdateStrategy.UpdateNotReady, w.Set.Status.UpdateVersion = true, 0 }).Has(2, children.Span{Start: 0, Replicas: 1}),
			"record: Waiting, version 1"},
		{"a write without a change is not treated as an edit", fixture.Of(fixture.Plain()).Has(1, children.Span{Start: 0, Replicas: 3}).But(func(w *facts.World) {
			set := w.Children[0].Set
			set.Annotations[v1alpha1.AnnotationApplied] = children.Applied{Hash: children.ContentHash(set), Generation: 2}.String()
		}), "patch statefulset db-v1: Child\n"},
		{"E9 a version number above all earlier ones is used after their StatefulSets were deleted",
			fixture.Of(fixture.Plain()).Has(1, children.Span{Start: 0, Replicas: 3}).Edited().But(func(w *facts.World) { w.Set.Status.VersionHighWater = 11 }), "record: Canary, version 1 to 12, attempt 1"},
		{"E19 phase Canary continues with one of two canaries", fixture.Of(fixture.Plain()).Has(1, children.Span{Start: 0, Replicas: 3}).Upgrading(canary, coexist).Has(2, children.Span{Start: 0, Replicas: 1}).
			But(func(w *facts.World) { w.Set.Spec.UpdateStrategy.Canaries = ptr.To(int32(2)) }), "patch statefulset db-v2: Scale, ordinals 0 to 1\n"},
		{"E19 phase Canary ends with two of two canaries", fixture.Of(fixture.Plain()).Has(1, children.Span{Start: 0, Replicas: 3}).Upgrading(canary, coexist).Has(2, children.Span{Start: 0, Replicas: 2}).
			But(func(w *facts.World) { w.Set.Spec.UpdateStrategy.Canaries = ptr.To(int32(2)) }), "record: Promoting, version 1 to 2, attempt 1"},
		{"a canary is good only after minReadySeconds", fixture.Of(fixture.Plain()).But(func(w *facts.World) { w.Set.Spec.Template.Spec.MinReadySeconds = 3601 }).
			Has(1, children.Span{Start: 0, Replicas: 3}).Upgrading(canary, coexist).Has(2, children.Span{Start: 0, Replicas: 1}), ""},
		{"a canary does not fail before canaryWatchTime ends", fixture.Of(fixture.Plain()).Has(1, children.Span{Start: 0, Replicas: 3}).Upgrading(canary, coexist).Has(2, children.Span{Start: 0, Replicas: 1}, 0).After(5*time.Minute - 1), ""},
		{"a canary fails when canaryWatchTime ends", fixture.Of(fixture.Plain()).Has(1, children.Span{Start: 0, Replicas: 3}).Upgrading(canary, coexist).Has(2, children.Span{Start: 0, Replicas: 1}, 0).After(5 * time.Minute),
			"record: Stale, version 1 to 2, attempt 1, CanaryFailed"},
		{"E20 another attempt follows within retryCount", fixture.Of(fixture.Plain()).Has(1, children.Span{Start: 0, Replicas: 3}).Upgrading(canary, coexist).Has(2, children.Span{Start: 0, Replicas: 1}, 0).After(5 * time.Minute).
			But(func(w *facts.World) { w.Set.Spec.UpdateStrategy.RetryCount = 1 }), "record: Canary, version 1 to 2, attempt 1, CanaryFailed"},
		{"an upgrade fails when updateWatchTime ends", fixture.Of(fixture.Plain()).Has(1, children.Span{Start: 0, Replicas: 3}).Upgrading(promoting, coexist).Has(2, children.Span{Start: 0, Replicas: 3}, 2).After(10 * time.Minute),
			"record: Stale, version 1 to 2, attempt 1, UpdateTimeout"},
		{"the old version is kept until all new pods serve", fixture.Of(fixture.Plain()).Has(1, children.Span{Start: 0, Replicas: 3}).Upgrading(postJob, coexist).Has(2, children.Span{Start: 0, Replicas: 3}, 1), ""},
		{"a reverted template restores the current version", fixture.Of(fixture.Plain()).Has(1, children.Span{Start: 0, Replicas: 3}).Upgrading(canary, coexist).Has(2, children.Span{Start: 0, Replicas: 1}).
			But(func(w *facts.World) { w.Digest = w.Set.Status.CurrentDigest }), "record: CleaningUp, version 1"},
		{"an ordinal is not assigned while its old pod is terminating", fixture.Of(fixture.Volumes()).Has(1, children.Span{Start: 0, Replicas: 2}).Upgrading(canary, perOrdinal).Has(2, children.Span{Start: 3}).Leaving(1, 2), ""},
		{"an ordinal is not assigned before the StatefulSet controller has observed its removal", fixture.Of(fixture.Volumes()).Has(1, children.Span{Start: 0, Replicas: 2}).Upgrading(canary, perOrdinal).
			Has(2, children.Span{Start: 3}).But(func(w *facts.World) {
			observedLater(w.Children[0])
			w.Children[0].Set.Annotations[v1alpha1.AnnotationApplied] = ""
		}), ""},
		{"an ordinal is assigned after the old pod is deleted and its removal is observed", fixture.Of(fixture.Volumes()).Has(1, children.Span{Start: 0, Replicas: 2}).Upgrading(canary, perOrdinal).Has(2, children.Span{Start: 3}),
			"patch statefulset db-v2: Scale, ordinals 2 to 2\n"},
		{"no ordinal of a serving pod is taken while another does not serve", fixture.Of(fixture.Volumes()).Has(1, children.Span{Start: 0, Replicas: 2}, 0).Upgrading(promoting, perOrdinal).Has(2, children.Span{Start: 2, Replicas: 1}), ""},
		{"an ordinal whose pod does not serve is taken", fixture.Of(fixture.Volumes()).Has(1, children.Span{Start: 0, Replicas: 2}, 1).Upgrading(promoting, perOrdinal).Has(2, children.Span{Start: 2, Replicas: 1}),
			"patch statefulset db-v1: Scale, ordinals 0 to 0\n"},
		{"a rollback does not wait for a pod that was not Ready for canaryWatchTime", fixture.Of(fixture.Volumes()).Has(1, children.Span{Start: 0, Replicas: 2}, 0).Upgrading(v1alpha1.PhaseStale, perOrdinal).
			Has(2, children.Span{Start: 2, Replicas: 1}).But(fixture.Stale2), "patch statefulset db-v2: Scale, no pods\n"},
		{"E6 versions below the current one are deleted, and versions above it are kept", fixture.Of(fixture.Plain()).Has(1, children.Span{}).Upgrading(canary, coexist).Has(2, children.Span{Start: 0, Replicas: 3}).
			But(func(w *facts.World) {
				w.Set.Status.CurrentVersion, w.Set.Status.CurrentDigest, w.Set.Status.UpdateVersion = 2, "of version 2", 3
				w.Set.Status.VersionHighWater = 3
			}).Has(3, children.Span{Start: 0, Replicas: 1}, 0), "delete statefulset db-v1: OldVersion\n"},
		{"E8 no version is deleted while none serves", fixture.Of(fixture.Plain()).Has(1, children.Span{Start: 0, Replicas: 3}, 0, 1, 2).Upgrading(canary, coexist).Has(2, children.Span{Start: 0, Replicas: 1}, 0), ""},
		{"a lost status is restored from the StatefulSets", fixture.Of(fixture.Plain()).Has(1, children.Span{Start: 0, Replicas: 3}).Has(7, children.Span{}).
			But(func(w *facts.World) { w.Set.Status = v1alpha1.ExtendedStatefulSetStatus{} }), "record: CleaningUp, version 1"},
		{"ES10 a lost status is restored from a job of an earlier version", fixture.Of(fixture.Plain()).
			But(func(w *facts.World) {
				w.Set.Status = v1alpha1.ExtendedStatefulSetStatus{}
				w.Jobs = map[string]*batchv1.Job{"db-post-v7-1": children.BuildJob(w.Set, fixture.Job("x"), "post", 7, 1)}
			}), "record: Promoting, version 8"},
		{"a terminating set is not changed", fixture.Of(fixture.Plain()).But(func(w *facts.World) { w.Set.DeletionTimestamp = ptr.To(metav1.NewTime(fixture.Noon)) }), ""},
	} {
		t.Run(row.Name, func(t *testing.T) {
			fixture.CheckSentence(t, row)
		})
	}
}
