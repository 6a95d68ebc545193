package facts_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/children"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/status"
)

// TestV6WhatIsGivenUpSaysWhatWasRefused verifies V6: the failure of a version includes the API server's
// error for writes of the operator. Such an error has no pod that could show it, and its condition may
// have changed when the version fails.
func TestV6WhatIsGivenUpSaysWhatWasRefused(t *testing.T) {
	const why = `create statefulset db-v2: exceeded quota: few, requested: count/statefulsets.apps=1`
	coexist := v1alpha1.HandoverCoexist
	refused := func(w *facts.World) { w.Refused = why }
	for _, row := range []struct {
		name  string
		scene *fixture.Scene
		want  string
	}{
		{"a StatefulSet that cannot be created", fixture.Of(fixture.Plain()).Has(1, children.Span{Start: 0, Replicas: 3}).Upgrading(v1alpha1.PhaseCanary, coexist).But(refused),
			"the upgrade did not complete within 10m0s (updateWatchTime), in phase Canary; the API server refuses a write: " + why},
		{"a StatefulSet with a good canary that cannot be scaled", fixture.Of(fixture.Plain()).Has(1, children.Span{Start: 0, Replicas: 3}).Upgrading(v1alpha1.PhasePromoting, coexist).Has(2, children.Span{Start: 0, Replicas: 1}).But(refused),
			"in phase Promoting; the API server refuses a write: " + why},
		{"a job that cannot be created", fixture.Of(fixture.Plain()).Has(1, children.Span{Start: 0, Replicas: 3}).Upgrading(v1alpha1.PhasePreJob, coexist).But(refused).
			But(func(w *facts.World) { w.Set.Spec.UpdateStrategy.PreUpdateJob = fixture.Job("fine") }),
			"the Job before the update did not complete within 10m0s (updateWatchTime); the API server refuses a write: " + why},
		{"a job that does not end", fixture.Of(fixture.Plain()).Has(1, children.Span{Start: 0, Replicas: 3}).Upgrading(v1alpha1.PhasePostJob, coexist).Has(2, children.Span{Start: 0, Replicas: 3}).But(fixture.PostJobRuns),
			"in phase PostJob; Job db-post-v2-1 has not ended"},
	} {
		t.Run(row.name, func(t *testing.T) {
			row.scene.After(time.Hour)
			f, p := fixture.Decided(row.scene.W)
			s := status.Summarize(f, p)
			if !facts.GivenUp(&s) {
				t.Fatalf("the attempt did not fail: %s", status.RecordLine(&row.scene.W.Set.Status, &s))
			}
			for _, c := range s.Conditions {
				said := c.Type == v1alpha1.ConditionStale || c.Type == v1alpha1.ConditionAborted
				if said && c.Status == "True" && !strings.Contains(c.Message, row.want) {
					t.Errorf("condition %s: got\n%s, want\n%s", c.Type, c.Message, row.want)
				}
			}
		})
	}
}

// TestWhyAPodIsReadyOnlyBetweenCrashes verifies V6: a version may fail at the moment when its container
// has just been restarted.
func TestWhyAPodIsReadyOnlyBetweenCrashes(t *testing.T) {
	crashed := func(w *facts.World) {
		w.Children[0].Pods[1].Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", RestartCount: 3,
			LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 7}}}}
	}
	lasting := func(w *facts.World) { w.Set.Spec.Template.Spec.MinReadySeconds = 10 }
	for _, row := range []struct {
		name  string
		scene *fixture.Scene
		want  string
	}{
		{"a crashed pod that has just become Ready", fixture.Of(fixture.Plain()).Has(1, children.Span{Start: 0, Replicas: 2}).Turned(0, 1, time.Second).But(lasting).But(crashed),
			"; not Ready: db-v1-1 (CrashLoopBackOff: container main ended with code 7)"},
		{"a crashed pod that was Ready for minReadySeconds", fixture.Of(fixture.Plain()).Has(1, children.Span{Start: 0, Replicas: 2}).Turned(0, 1, time.Minute).But(lasting).But(crashed), ""},
		{"a pod without crashes that has just become Ready", fixture.Of(fixture.Plain()).Has(1, children.Span{Start: 0, Replicas: 2}).Turned(0, 1, time.Second).But(lasting), ""},
	} {
		if got := facts.Unready(row.scene.W, 1); got != row.want {
			t.Errorf("%s: %q, want %q", row.name, got, row.want)
		}
	}
}
