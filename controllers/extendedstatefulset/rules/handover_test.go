package rules_test

import (
	"maps"
	"strings"
	"testing"

	"k8s.io/utils/ptr"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/children"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/rules"
)

// uncounted changes the pod template without creating a version.
func uncounted(w *facts.World) { w.Set.Spec.InjectReplicasEnv = ptr.To(false) }

// backToOne reverts the template to that of version 1 during an upgrade.
func backToOne(w *facts.World) {
	w.Set.Spec.Template.Spec.Template.Spec.Containers[0].Image = "one"
	w.Digest, _ = children.DigestOf(w.Set)
	st := &w.Set.Status
	st.Phase, st.Update, st.UpdateVersion, st.Attempts = v1alpha1.PhaseCleaningUp, nil, 1, 0
}

// TestRestartsWait verifies that restarts wait while an ordinal moves, because a second pod would be
// down, and while a claim would be removed together with its pod.
func TestRestartsWait(t *testing.T) {
	perOrdinal := v1alpha1.HandoverPerOrdinal
	for _, row := range []fixture.Sentence{
		{"a kept edit is not reverted while ordinals move", fixture.Of(fixture.Volumes()).Has(1, children.Span{Start: 0, Replicas: 2}).But(keptEdit).Upgrading(v1alpha1.PhaseCanary, perOrdinal).
			Has(2, children.Span{Start: 2, Replicas: 1}).But(backToOne), "patch statefulset db-v2: Scale, no pods\n"},
		{"a kept edit is not reverted while a claim is terminating", fixture.Of(fixture.Volumes()).Has(1, children.Span{Start: 0, Replicas: 3}).But(keptEdit).But(fixture.DeletedClaim(0)), ""},
		{"a version in phase PostJob is not restarted while a claim is terminating", fixture.Of(fixture.Counted()).Has(1, children.Span{Start: 0}).Upgrading(v1alpha1.PhasePostJob, perOrdinal).
			Has(2, children.Span{Start: 0, Replicas: 3}).But(fixture.DeletedClaim(0)).But(fixture.PostJobRuns).But(uncounted), ""},
		{"canaries are not restarted while a claim is terminating", fixture.Of(fixture.Counted()).Has(1, children.Span{Start: 0, Replicas: 2}).Upgrading(v1alpha1.PhaseCanary, perOrdinal).Has(2, children.Span{Start: 2, Replicas: 1}, 2).But(fixture.DeletedClaim(2)).But(uncounted), ""},
		{"canaries are restarted without a terminating claim", fixture.Of(fixture.Counted()).Has(1, children.Span{Start: 0, Replicas: 2}).Upgrading(v1alpha1.PhaseCanary, perOrdinal).Has(2, children.Span{Start: 2, Replicas: 1}, 2).But(uncounted),
			"patch statefulset db-v2: Template\n"},
		{"a stale version is not restarted in a rollback", fixture.Of(fixture.Counted()).Has(1, children.Span{Start: 0, Replicas: 1}).Upgrading(v1alpha1.PhaseStale, perOrdinal).
			Has(2, children.Span{Start: 1, Replicas: 2}).But(fixture.Stale2).But(uncounted), "patch statefulset db-v2: Scale, ordinals 2 to 2\n"},
		{"a version whose post job failed is not restarted in a rollback", fixture.Of(fixture.Counted()).Has(1, children.Span{Start: 0, Replicas: 1}).Upgrading(v1alpha1.PhasePostJob, perOrdinal).Has(2, children.Span{Start: 1, Replicas: 2}).
			But(func(w *facts.World) { w.Set.Status.Update.Returning = true }).But(uncounted), "patch statefulset db-v2: Scale, ordinals 2 to 2\n"},
		{"a good canary is not restarted while the second ordinal is taken", fixture.Of(fixture.Counted()).Has(1, children.Span{Start: 0, Replicas: 2}).Upgrading(v1alpha1.PhaseCanary, perOrdinal).Has(2, children.Span{Start: 2, Replicas: 1}).
			But(func(w *facts.World) { w.Set.Spec.UpdateStrategy.Canaries = ptr.To(int32(2)) }).But(uncounted), "patch statefulset db-v1: Scale, ordinals 0 to 0\n"},
	} {
		t.Run(row.Name, func(t *testing.T) {
			fixture.CheckSentence(t, row)
			if got, want := row.Scene.Restarts(), strings.HasSuffix(row.Want, ": Template\n"); got != want {
				t.Errorf("pods are restarted: %t, want %t", got, want)
			}
		})
	}
}

func TestTrim(t *testing.T) {
	for _, row := range []struct {
		name       string
		have, want facts.Spans
	}{
		{"ordinals of one version are kept", facts.Spans{1: {Start: 0, Replicas: 2}, 2: {Start: 2, Replicas: 1}}, facts.Spans{1: {Start: 0, Replicas: 2}, 2: {Start: 2, Replicas: 1}}},
		{"ordinals above replicas are removed", facts.Spans{1: {Start: 0, Replicas: 5}}, facts.Spans{1: {Start: 0, Replicas: 3}}},
		{"the goal keeps ordinals that two versions have", facts.Spans{1: {Start: 0, Replicas: 3}, 2: {Start: 1, Replicas: 2}}, facts.Spans{1: {Start: 0, Replicas: 3}, 2: {Start: 3, Replicas: 0}}},
		{"the goal keeps its lower ordinals that two versions have", facts.Spans{1: {Start: 1, Replicas: 2}, 2: {Start: 0, Replicas: 2}}, facts.Spans{1: {Start: 1, Replicas: 2}, 2: {Start: 0, Replicas: 1}}},
		{"a version with ordinals on both sides of the goal keeps the lower ones", facts.Spans{1: {Start: 1, Replicas: 1}, 2: {Start: 0, Replicas: 3}}, facts.Spans{1: {Start: 1, Replicas: 1}, 2: {Start: 0, Replicas: 1}}},
	} {
		if rules.Trim(row.have, 1, 3); !maps.Equal(row.have, row.want) {
			t.Errorf("%s: %v, want %v", row.name, row.have, row.want)
		}
	}
}
