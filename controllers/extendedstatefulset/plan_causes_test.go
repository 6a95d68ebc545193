package extendedstatefulset

import (
	"strings"
	"testing"
	"time"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/children"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/facts"
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
		scene *scene
		want  string
	}{
		{"a StatefulSet that cannot be created", of(plain()).has(1, children.Span{Start: 0, Replicas: 3}).upgrading(v1alpha1.PhaseCanary, coexist).but(refused),
			"the upgrade did not complete within 10m0s (updateWatchTime), in phase Canary; the API server refuses a write: " + why},
		{"a StatefulSet with a good canary that cannot be scaled", of(plain()).has(1, children.Span{Start: 0, Replicas: 3}).upgrading(v1alpha1.PhasePromoting, coexist).has(2, children.Span{Start: 0, Replicas: 1}).but(refused),
			"in phase Promoting; the API server refuses a write: " + why},
		{"a job that cannot be created", of(plain()).has(1, children.Span{Start: 0, Replicas: 3}).upgrading(v1alpha1.PhasePreJob, coexist).but(refused).
			but(func(w *facts.World) { w.Set.Spec.UpdateStrategy.PreUpdateJob = job("fine") }),
			"the Job before the update did not complete within 10m0s (updateWatchTime); the API server refuses a write: " + why},
		{"a job that does not end", of(plain()).has(1, children.Span{Start: 0, Replicas: 3}).upgrading(v1alpha1.PhasePostJob, coexist).has(2, children.Span{Start: 0, Replicas: 3}).but(postJobRuns),
			"in phase PostJob; Job db-post-v2-1 has not ended"},
	} {
		t.Run(row.name, func(t *testing.T) {
			row.scene.after(time.Hour)
			f, p := decided(row.scene.w)
			s := status.Summarize(f, p)
			if !facts.GivenUp(&s) {
				t.Fatalf("the attempt did not fail: %s", status.RecordLine(&row.scene.w.Set.Status, &s))
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
