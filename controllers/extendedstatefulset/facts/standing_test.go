package facts_test

import (
	"testing"

	"k8s.io/utils/ptr"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/children"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/fixture"
)

// TestHoldsPods verifies that pods are not restarted while an ordinal moves, because two pods would be
// down.
func TestHoldsPods(t *testing.T) {
	perOrdinal, coexist := v1alpha1.HandoverPerOrdinal, v1alpha1.HandoverCoexist
	const split = "ordinals are moving between versions"
	for _, row := range []struct {
		name   string
		scene  *fixture.Scene
		number int64
		want   string
	}{
		{"pods of a stable version are restarted", fixture.Of(fixture.Volumes()).Has(1, children.Span{Start: 0, Replicas: 3}), 1, ""},
		{"pods of a version that is scaled are restarted", fixture.Of(fixture.Volumes()).Has(1, children.Span{Start: 0, Replicas: 2}), 1, ""},
		{"pods of the old version that is scaled down after a rollback are restarted", fixture.Of(fixture.Volumes()).Has(1, children.Span{Start: 0, Replicas: 5}).Upgrading(v1alpha1.PhaseStale, perOrdinal).Has(2, children.Span{}), 1, ""},
		{"pods of the old version with surplus ordinals are not restarted in a rollback", fixture.Of(fixture.Volumes()).Has(1, children.Span{Start: 1, Replicas: 4}).Upgrading(v1alpha1.PhaseStale, perOrdinal).Has(2, children.Span{Start: 0, Replicas: 1}), 1, split},
		{"pods of a new version in phase Promoting are not restarted", fixture.Of(fixture.Volumes()).Has(1, children.Span{Start: 0, Replicas: 1}).Upgrading(v1alpha1.PhasePromoting, perOrdinal).Has(2, children.Span{Start: 2, Replicas: 1}), 2, split},
		{"failed canaries are restarted because a restart may fix them", fixture.Of(fixture.Volumes()).Has(1, children.Span{Start: 0, Replicas: 2}).Upgrading(v1alpha1.PhaseCanary, perOrdinal).Has(2, children.Span{Start: 2, Replicas: 1}, 2), 2, ""},
		{"good canaries are not restarted while the next ordinal is taken", fixture.Of(fixture.Volumes()).Has(1, children.Span{Start: 0, Replicas: 2}).Upgrading(v1alpha1.PhaseCanary, perOrdinal).Has(2, children.Span{Start: 2, Replicas: 1}), 2, split},
		{"canaries are not restarted in a rollback", fixture.Of(fixture.Volumes()).Has(1, children.Span{Start: 0, Replicas: 2}).Upgrading(v1alpha1.PhaseCanary, perOrdinal).Has(2, children.Span{Start: 2, Replicas: 1}, 2).
			But(func(w *facts.World) { w.Set.Status.Update.Returning = true }), 2, split},
		{"pods of a new version are restarted with Coexist", fixture.Of(fixture.Plain()).Has(1, children.Span{Start: 0, Replicas: 3}).Upgrading(v1alpha1.PhasePromoting, coexist).Has(2, children.Span{Start: 0, Replicas: 3}), 2, ""},
		{"pods of the old version are not restarted in a rollback", fixture.Of(fixture.Volumes()).Has(1, children.Span{Start: 0, Replicas: 1}).Upgrading(v1alpha1.PhaseStale, perOrdinal).Has(2, children.Span{Start: 2, Replicas: 1}), 1, split},
		{"pods of the old version are restarted after a rollback", fixture.Of(fixture.Volumes()).Has(1, children.Span{Start: 0, Replicas: 3}).Upgrading(v1alpha1.PhaseStale, perOrdinal).Has(2, children.Span{}), 1, ""},
		{"pods of a stale version are not restarted in a rollback", fixture.Of(fixture.Volumes()).Has(1, children.Span{Start: 0, Replicas: 1}).Upgrading(v1alpha1.PhaseStale, perOrdinal).Has(2, children.Span{Start: 1, Replicas: 2}), 2, split},
		{"pods of a new version whose post job failed are not restarted", fixture.Of(fixture.Volumes()).Has(1, children.Span{Start: 0, Replicas: 1}).Upgrading(v1alpha1.PhasePostJob, perOrdinal).Has(2, children.Span{Start: 1, Replicas: 2}), 2, split},
		{"pods are not restarted while a claim is terminating", fixture.Of(fixture.Volumes()).Has(1, children.Span{Start: 0, Replicas: 3}).But(fixture.DeletedClaim(1)), 1, "claim data-db-1 is terminating, and its data is lost when its pod is deleted"},
		{"canaries are not restarted while their claim is terminating", fixture.Of(fixture.Volumes()).Has(1, children.Span{Start: 0, Replicas: 2}).Upgrading(v1alpha1.PhaseCanary, perOrdinal).Has(2, children.Span{Start: 2, Replicas: 1}, 2).But(fixture.DeletedClaim(2)), 2,
			"claim data-db-2 is terminating, and its data is lost when its pod is deleted"},
	} {
		if got := row.scene.W.HoldsPods(row.number); got != row.want {
			t.Errorf("%s: %q, want %q", row.name, got, row.want)
		}
	}
	w := fixture.Of(fixture.Volumes()).Has(1, children.Span{Start: 0, Replicas: 1}).Upgrading(v1alpha1.PhasePromoting, perOrdinal).Has(2, children.Span{Start: 1, Replicas: 2}, 2).W
	w.Set.Spec.InjectReplicasEnv = ptr.To(true) // as if the number of replicas changed
	if got := (&fixture.Scene{W: w}).Says(); got != "" {
		t.Errorf("a template was changed while restarts wait: %s", got)
	}
}
