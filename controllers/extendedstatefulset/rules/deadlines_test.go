package rules_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/children"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/rules"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/spec"
	"github.com/stateful-operator/stateful-operator/controllers/internal/leadership"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podexec"
)

// deadline is a deadline of this kind. It applies to something that did not happen between noon and
// noon plus limit.
type deadline struct {
	name  string
	limit time.Duration
	// blames reports whether the deadline has passed at the given time, if watch is the time during
	// which the operator watched the cluster.
	blames func(now time.Time, watch leadership.Watch) bool
	// heals is true if the deadline is met when it is extended.
	heals bool
}

// saying returns a blames function that checks whether the decision contains words.
func saying(scene func() *fixture.Scene, words string) func(time.Time, leadership.Watch) bool {
	return func(now time.Time, watch leadership.Watch) bool {
		s := scene()
		s.W.Now, s.W.Watch = now, watch
		return strings.Contains(s.Says(), words)
	}
}

// readySince makes the canary Ready at the given time after noon.
func readySince(d time.Duration) func(*facts.World) {
	return func(w *facts.World) {
		w.Children.Find(w.Zones[0].Index, 2).Pods[0].Status.Conditions[0].LastTransitionTime = metav1.NewTime(fixture.Noon.Add(d))
	}
}

func deadlines() []deadline {
	canary := func(unready ...int32) *fixture.Scene {
		return fixture.Of(fixture.Plain()).Has(1, children.Span{Start: 0, Replicas: 3}).Upgrading(v1alpha1.PhaseCanary, v1alpha1.HandoverCoexist).Has(2, children.Span{Start: 0, Replicas: 1}, unready...)
	}
	pod := func(deleted bool) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "db-v1-2", UID: "u", CreationTimestamp: metav1.NewTime(fixture.Noon)}}
		if deleted {
			p.DeletionTimestamp = ptr.To(metav1.NewTime(fixture.Noon))
		}
		return p
	}
	set := func(now time.Time, watch leadership.Watch) *facts.World {
		s := fixture.Of(fixture.Volumes())
		s.W.Now, s.W.Watch = now, watch
		return s.W
	}
	return []deadline{
		{"canaryWatchTime of a canary that is not Ready", 5 * time.Minute, saying(func() *fixture.Scene { return canary(0) }, "CanaryFailed"), false},
		{"canaryWatchTime of a canary that was Ready for 2 of the required 5 s", 5 * time.Minute, saying(func() *fixture.Scene {
			return canary().But(readySince(5*time.Minute - 2*time.Second)).But(func(w *facts.World) { w.Set.Spec.Template.Spec.MinReadySeconds = 5 })
		}, "CanaryFailed"), true},
		{"canaryWatchTime of a canary that failed while it waited for approval", 5 * time.Minute, saying(func() *fixture.Scene { return canary(0).But(fixture.Manual).But(fixture.Approved) }, "CanaryFailed"), false},
		{"updateWatchTime while the job for the canary runs", 10*time.Minute + spec.MaxProbation, saying(func() *fixture.Scene {
			return canary().But(fixture.AskedAt(v1alpha1.WhenCanary, ""))
		}, "UpdateTimeout"), false},
		{"updateWatchTime in phase Promoting", 10 * time.Minute, saying(func() *fixture.Scene {
			return fixture.Of(fixture.Plain()).Has(1, children.Span{Start: 0, Replicas: 3}).Upgrading(v1alpha1.PhasePromoting, v1alpha1.HandoverCoexist).Has(2, children.Span{Start: 0, Replicas: 3}, 2)
		}, "UpdateTimeout"), false},
		{"updateWatchTime while the job before the upgrade runs", 10 * time.Minute, saying(func() *fixture.Scene {
			return fixture.Of(fixture.Plain()).Has(1, children.Span{Start: 0, Replicas: 3}).Upgrading(v1alpha1.PhasePreJob, v1alpha1.HandoverCoexist).
				But(func(w *facts.World) { w.Set.Spec.UpdateStrategy.PreUpdateJob = fixture.Job("hangs") })
		}, "Aborted"), false},
		{"updateWatchTime while the job after the upgrade runs and all pods are Ready", 10*time.Minute + spec.MaxProbation, saying(func() *fixture.Scene {
			return fixture.Of(fixture.Plain()).Has(1, children.Span{Start: 0, Replicas: 3}).Upgrading(v1alpha1.PhasePostJob, v1alpha1.HandoverCoexist).Has(2, children.Span{Start: 0, Replicas: 3}).But(fixture.PostJobRuns)
		}, "UpdateTimeout"), false},
		{"canaryWatchTime of a pod that is not Ready and delays a rollback", 5 * time.Minute, func(now time.Time, watch leadership.Watch) bool {
			return set(now, watch).Clock().UnreadyTooLong(pod(false))
		}, false},
		{"canaryWatchTime of a terminating pod that keeps its ordinal", 5 * time.Minute, func(now time.Time, watch leadership.Watch) bool {
			w := set(now, watch)
			w.Pods = []facts.PodOfOrdinal{{Zone: w.Zones[0].Index, Version: 1, Ordinal: 2, Pod: pod(true), Owned: true}}
			return !w.InTransit(w.Zones[0], 2)
		}, false},
		{"probation of a canary, which does not count while the operator is down", spec.MaxProbation, saying(func() *fixture.Scene { return canary().But(readySince(0)) }, "Promoting"), false},
		{"timeoutSeconds of an active/passive probe", spec.ProbeTimeout, func(now time.Time, watch leadership.Watch) bool {
			w, p := set(now, watch), pod(false)
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", ContainerID: "c", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
			w.Probes = map[types.UID]facts.Probed{p.UID: {Results: map[string]podexec.Result{
				"main": {Command: podexec.Command{ContainerID: "c"}, Sent: true, Began: fixture.Noon, Ended: now, Outcome: podexec.Unknown}}}}
			return rules.Answer(w, p, "main", &v1alpha1.ActivePassiveProbe{}) == rules.Passive
		}, false},
	}
}

// TestV5TimeInWhichTheOperatorWasAwayDoesNotCount verifies V5: time during which the operator did not
// watch is not counted, because it was frozen, the API server was unreachable, or another process led.
// Docs: "Deadlines".
func TestV5TimeInWhichTheOperatorWasAwayDoesNotCount(t *testing.T) {
	for _, d := range deadlines() {
		t.Run(d.name, func(t *testing.T) {
			over := fixture.Noon.Add(d.limit)
			away := leadership.Watch{Gaps: []leadership.Gap{{From: fixture.Noon.Add(time.Second), To: fixture.Noon.Add(d.limit - time.Second)}}}
			still := leadership.Watch{Gaps: []leadership.Gap{{From: fixture.Noon.Add(time.Second), To: over}}}
			restarted := leadership.Watch{Since: over.Add(-time.Second)}
			if !d.blames(over, leadership.Watch{}) {
				t.Error("the version did not fail although the operator was running all the time")
			}
			if d.blames(over.Add(-2*time.Nanosecond), leadership.Watch{}) {
				t.Error("the version failed before the deadline")
			}
			for name, watch := range map[string]leadership.Watch{"frozen and resumed": away, "still frozen": still, "restarted": restarted} {
				if d.blames(over, watch) {
					t.Errorf("the version failed although the operator was %s", name)
				}
				if due := watch.Deadline(fixture.Noon, d.limit); !d.heals && !d.blames(due, watch) && watch.Elapsed(fixture.Noon, due) >= d.limit {
					t.Errorf("the version did not fail although the operator that was %s has been running long enough", name)
				}
			}
		})
	}
}

// TestV5LooksAgainWhenTheTimeIsOver verifies V5: the requeue delay includes the gap that extends a
// deadline.
func TestV5LooksAgainWhenTheTimeIsOver(t *testing.T) {
	s := fixture.Of(fixture.Plain()).Has(1, children.Span{Start: 0, Replicas: 3}).Upgrading(v1alpha1.PhaseCanary, v1alpha1.HandoverCoexist).Has(2, children.Span{Start: 0, Replicas: 1}, 0)
	s.W.Watch = leadership.Watch{Gaps: []leadership.Gap{{From: fixture.Noon.Add(time.Second), To: fixture.Noon.Add(time.Minute)}}}
	s.After(time.Minute)
	for range 10 {
		_, p := fixture.Decided(s.W)
		if p.RecordFirst {
			return
		}
		if p.Wait <= 0 {
			t.Fatal("no further pass is scheduled, so the canary never fails")
		}
		s.After(p.Wait)
	}
	t.Error("the canary never fails")
}

// madeAt sets the creation of version 2's StatefulSet to the given time after noon.
func madeAt(late time.Duration) func(*facts.World) {
	return func(w *facts.World) { w.Children[1].Set.CreationTimestamp = metav1.NewTime(fixture.Noon.Add(late)) }
}

func TestACanaryIsWatchedFromItsCreation(t *testing.T) {
	canary, coexist := v1alpha1.PhaseCanary, v1alpha1.HandoverCoexist
	for _, row := range []fixture.Sentence{
		{"a canary that was not created has not failed", fixture.Of(fixture.Plain()).Has(1, children.Span{Start: 0, Replicas: 3}).Upgrading(canary, coexist).After(5 * time.Minute), "create statefulset db-v2: VersionCreated, ordinals 0 to 0\n"},
		{"canaryWatchTime of a canary begins at its creation", fixture.Of(fixture.Plain()).Has(1, children.Span{Start: 0, Replicas: 3}).Upgrading(canary, coexist).Has(2, children.Span{Start: 0, Replicas: 1}, 0).But(madeAt(time.Minute)).After(5 * time.Minute), ""},
		{"a canary that was created late fails after canaryWatchTime", fixture.Of(fixture.Plain()).Has(1, children.Span{Start: 0, Replicas: 3}).Upgrading(canary, coexist).Has(2, children.Span{Start: 0, Replicas: 1}, 0).But(madeAt(time.Minute)).After(6 * time.Minute),
			"record: Stale, version 1 to 2, attempt 1, CanaryFailed"},
	} {
		t.Run(row.Name, func(t *testing.T) { fixture.CheckSentence(t, row) })
	}
}
