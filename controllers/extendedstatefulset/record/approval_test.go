package record_test

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/children"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/record"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/rules"
	"github.com/stateful-operator/stateful-operator/controllers/internal/leadership"
)

// triedBeside returns an upgrade with handover Coexist and one canary. The canary is Ready unless
// unready includes it.
func triedBeside(unready ...int32) *fixture.Scene {
	return fixture.Of(fixture.Plain()).Has(1, children.Span{Start: 0, Replicas: 3}).Upgrading(v1alpha1.PhaseCanary, v1alpha1.HandoverCoexist).Has(2, children.Span{Start: 0, Replicas: 1}, unready...).But(fixture.Manual)
}

// triedInPlace returns the same upgrade with handover PerOrdinal, on the claims of the old version.
func triedInPlace(unready ...int32) *fixture.Scene {
	return fixture.Of(fixture.Volumes()).Has(1, children.Span{Start: 0, Replicas: 2}).Upgrading(v1alpha1.PhaseCanary, v1alpha1.HandoverPerOrdinal).Has(2, children.Span{Start: 2, Replicas: 1}, unready...).But(fixture.Manual)
}

const (
	waits     = "record: Canary, version 1 to 2, attempt 1, waiting for approval"
	goesOn    = "record: Promoting, version 1 to 2, attempt 1"
	mended    = "record: Canary, version 1 to 2, attempt 1"
	givesUp   = "record: Stale, version 1 to 2, attempt 1, CanaryFailed"
	otherWord = "v2-0000000000000000"
)

func TestE36AGoodCanaryWaitsForItsApproval(t *testing.T) {
	renumbered := func(w *facts.World) {
		w.Set.Spec.ApprovedRevision = strings.Replace(record.UpdateRevision(&w.Set.Status), "v2-", "v3-", 1)
	}
	for _, row := range []fixture.Sentence{
		{"without approval Manual the upgrade continues", triedBeside().But(func(w *facts.World) { w.Set.Spec.Approval = "" }), goesOn},
		{"with approval Automatic the upgrade continues", triedBeside().But(func(w *facts.World) { w.Set.Spec.Approval = v1alpha1.ApprovalAutomatic }), goesOn},
		{"with approval Manual the upgrade waits", triedBeside(), waits},
		{"with an unknown value of approval the upgrade waits", triedBeside().But(func(w *facts.World) { w.Set.Spec.Approval = "Later" }), waits},
		{"nothing is changed while the upgrade waits", triedBeside().But(fixture.Held(0)), ""},
		{"waiting for approval has no timeout", triedBeside().But(fixture.Held(0)).After(1000 * time.Hour), ""},
		{"with PerOrdinal the upgrade waits", triedInPlace(), waits},
		{"with PerOrdinal no other ordinal is taken while the upgrade waits", triedInPlace().But(fixture.Held(0)).After(1000 * time.Hour), ""},
		{"an approved upgrade continues", triedBeside().But(fixture.Held(0)).But(fixture.Approved), goesOn},
		{"an approved upgrade with PerOrdinal continues", triedInPlace().But(fixture.Held(0)).But(fixture.Approved), goesOn},
		{"an upgrade that was approved early continues", triedBeside().But(fixture.Approved), goesOn},
		{"an approved upgrade waits for a canary that is not Ready", triedBeside(0).But(fixture.Approved), ""},
		{"an approved upgrade stops if the canary is no longer Ready", triedBeside(0).But(fixture.Held(0)).But(fixture.Approved), mended},
		{"an approved upgrade waits for a canary that has just become Ready", triedBeside().But(fixture.Held(0)).But(fixture.Approved).Turned(1, 0, 10*time.Second-1), ""},
		{"approval of the current revision is ignored", triedBeside().But(fixture.Held(0)).But(func(w *facts.World) { fixture.Word(record.RevisionName(1, w.Set.Status.CurrentDigest))(w) }), ""},
		{"approval of the version number with another digest is ignored", triedBeside().But(fixture.Held(0)).But(fixture.Word(otherWord)), ""},
		{"approval of the digest with another version number is ignored", triedBeside().But(fixture.Held(0)).But(renumbered), ""},
		{"approval of a version number without a digest is ignored", triedBeside().But(fixture.Held(0)).But(fixture.Word("v2")), ""},
		{"E38 a change to Automatic continues a waiting upgrade", triedBeside().But(fixture.Held(0)).But(func(w *facts.World) { w.Set.Spec.Approval = v1alpha1.ApprovalAutomatic }), goesOn},
		{"E38 a rollback needs no approval", triedBeside().But(fixture.Held(0)).But(func(w *facts.World) { w.Digest = w.Set.Status.CurrentDigest }), "record: CleaningUp, version 1"},
		{"E38 a new template replaces a waiting version", triedBeside().But(fixture.Held(0)).But(func(w *facts.World) { w.Digest = "another" }), "record: Waiting, version 1"},
		{"E38 ordinals of a failed version are returned without approval", triedInPlace(2).But(fixture.Held(0)).But(func(w *facts.World) { w.Set.Status.Phase = v1alpha1.PhaseStale }).But(fixture.Stale2),
			"patch statefulset db-v2: Scale, no pods\n"},
		{"an upgrade that was approved once does not wait again", triedBeside().But(func(w *facts.World) { w.Set.Status.Update.Approved = true }), goesOn},
		{"a version without pods is not good", fixture.Of(fixture.FakeSet(0)).Has(1, children.Span{}).Edited().But(fixture.Manual), mended},
		{"an unapproved version does not become current when it is superseded", fixture.Of(fixture.Plain()).Has(1, children.Span{Start: 0, Replicas: 3}, 0, 1, 2).Upgrading(v1alpha1.PhaseCanary, v1alpha1.HandoverCoexist).
			Has(2, children.Span{Start: 0, Replicas: 1}).But(fixture.Manual).But(fixture.Held(0)).But(func(w *facts.World) { w.Digest = "another" }), "record: Waiting, version 1"},
		{"an approved version becomes current when it is superseded", fixture.Of(fixture.Plain()).Has(1, children.Span{Start: 0, Replicas: 3}, 0, 1, 2).Upgrading(v1alpha1.PhasePromoting, v1alpha1.HandoverCoexist).
			Has(2, children.Span{Start: 0, Replicas: 3}).But(fixture.Manual).But(func(w *facts.World) { w.Digest, w.Set.Status.Update.Approved = "another", true }), "record: Waiting, version 2"},
	} {
		t.Run(row.Name, func(t *testing.T) { fixture.CheckSentence(t, row) })
	}
}

// aged moves the start of the attempt to the given time before noon.
func aged(before time.Duration) func(*facts.World) {
	return func(w *facts.World) {
		at := metav1.NewTime(fixture.Noon.Add(-before))
		w.Set.Status.Update.StartedAt, w.Set.Status.Update.CanaryAt = &at, ptr.To(at)
	}
}

// TestE37TimesStandStillWhileGoodCanariesWait verifies E37: while good canaries wait, neither timeout
// counts. When they are no longer good, both continue.
func TestE37TimesStandStillWhileGoodCanariesWait(t *testing.T) {
	for _, row := range []struct {
		name  string
		scene *fixture.Scene
		// canary and update are the remaining durations of both timeouts after the next step.
		canary, update time.Duration
	}{
		{"canaries that failed soon have the remaining time", triedBeside(0).But(aged(time.Minute)).But(fixture.Held(0)).After(4 * time.Minute), 4 * time.Minute, 9 * time.Minute},
		{"canaries that failed later have the full time", triedBeside(0).But(aged(time.Minute)).But(fixture.Held(0)).After(5 * time.Minute), 5 * time.Minute, 10 * time.Minute},
		{"canaries that failed much later have the full time", triedBeside(0).But(aged(4 * time.Minute)).But(fixture.Held(0)).After(1000 * time.Hour), 5 * time.Minute, 10 * time.Minute},
		{"canaries whose StatefulSet was deleted have the remaining time", triedBeside().But(aged(time.Minute)).But(fixture.Held(0)).But(func(w *facts.World) { w.Children = w.Children[:1] }).After(time.Minute), 4 * time.Minute, 9 * time.Minute},
		{"time in which the operator was down does not count as good", triedBeside(0).But(aged(time.Minute)).But(fixture.Held(0)).But(func(w *facts.World) {
			w.Watch = leadership.Watch{Gaps: []leadership.Gap{{From: fixture.Noon.Add(time.Second), To: fixture.Noon.Add(30 * time.Minute)}}}
		}).After(33 * time.Minute), 4 * time.Minute, 9 * time.Minute},
		{"time in which the operator was down before the canaries waited does not count", triedBeside(0).But(aged(3 * time.Minute)).But(fixture.Held(0)).But(func(w *facts.World) {
			w.Watch = leadership.Watch{Gaps: []leadership.Gap{{From: fixture.Noon.Add(-2 * time.Minute), To: fixture.Noon.Add(-time.Minute)}}}
		}).After(time.Minute), 3 * time.Minute, 8 * time.Minute},
		{"the time of the job for the canaries counts for the update", triedBeside(0).But(aged(time.Minute)).But(fixture.Held(0)).But(func(w *facts.World) {
			w.Set.Status.Update.HeldAt = nil
		}).After(2 * time.Minute), 4 * time.Minute, 7 * time.Minute},
		{"after approval the update has the remaining time", triedBeside().But(aged(time.Minute)).But(fixture.Held(0)).But(fixture.Approved).After(1000 * time.Hour), 0, 9 * time.Minute},
	} {
		w := row.scene.W
		u, clock := record.Advance(w).Update, w.Clock()
		if u.GoodAt != nil || u.HeldAt != nil {
			t.Errorf("%s: the upgrade still waits", row.name)
		}
		left := func(from *metav1.Time, limit time.Duration) time.Duration {
			return clock.In(clock.Deadline(from.Time, limit))
		}
		if got := left(u.StartedAt, clock.UpdateTime()); got != row.update {
			t.Errorf("%s: remaining updateWatchTime %s, want %s", row.name, got, row.update)
		}
		if got := left(u.CanaryAt, clock.CanaryTime()); row.canary != 0 && got != row.canary {
			t.Errorf("%s: remaining canaryWatchTime %s, want %s", row.name, got, row.canary)
		}
	}
	for _, row := range []fixture.Sentence{
		{"failed canaries are kept until canaryWatchTime ends", triedBeside(0).After(5*time.Minute - 1), ""},
		{"failed canaries are rolled back after canaryWatchTime", triedBeside(0).After(5 * time.Minute), givesUp},
		{"canaries are not good after a pod was deleted", triedBeside().But(fixture.Held(0)).But(func(w *facts.World) { delete(w.Children[1].Pods, 0) }), mended},
		{"canaries are not good while a pod is terminating", triedBeside().But(fixture.Held(0)).But(func(w *facts.World) {
			w.Children[1].Pods[0].DeletionTimestamp = ptr.To(metav1.NewTime(fixture.Noon))
		}), mended},
		{"canaries are not good if spec requires more", triedBeside().But(fixture.Held(0)).But(func(w *facts.World) { w.Set.Spec.UpdateStrategy.Canaries = ptr.To(int32(2)) }), mended},
		{"canaries are not good without replicas", triedBeside().But(fixture.Held(0)).But(func(w *facts.World) { w.Replicas = 0 }), mended},
	} {
		t.Run(row.Name, func(t *testing.T) { fixture.CheckSentence(t, row) })
	}
	if at := triedBeside().But(fixture.Held(0)).W; len(deadlinesIn(at)) > 0 {
		t.Error("a pass is scheduled for a paused timeout")
	}
}

func deadlinesIn(w *facts.World) []time.Time {
	return rules.Deadlines(fixture.AsRecorded(w))
}

func automatic(w *facts.World) { w.Set.Spec.Approval = v1alpha1.ApprovalAutomatic }
