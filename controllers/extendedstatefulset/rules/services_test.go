package rules_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/children"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/rules"
)

// TestServices checks which Services are written.
func TestServices(t *testing.T) {
	withService := func(change func(*facts.World)) *fixture.Scene {
		s := fixture.Of(fixture.Plain()).Has(1, children.Span{Start: 0, Replicas: 3})
		s.W.Set.Spec.Template.Spec.ServiceName = "peers"
		s.W.Set.Status.CurrentDigest, s.W.Digest = "same", "same"
		s.W.Children[0].Set.Annotations[v1alpha1.AnnotationDigest] = "same"
		for _, service := range children.BuildServices(s.W.Set, rules.ServingLabels(fixture.AsRecorded(s.W))) {
			s.W.Services[service.Name] = service
		}
		return s.But(change)
	}
	writes := func(s *fixture.Scene) (lines []string) {
		_, p := fixture.Decided(s.W)
		for _, step := range p.Steps {
			for _, chain := range step {
				if _, is := chain[0].Object.(*corev1.Service); is {
					lines = append(lines, chain[0].String())
				}
			}
		}
		return lines
	}
	active := func(w *facts.World) *corev1.Service { return w.Services["db-active"] }
	if active(withService(func(*facts.World) {}).W) == nil {
		t.Fatal("no Service db-active")
	}
	for _, r := range []struct {
		name, want, foreign string
		change              func(*facts.World)
	}{
		{"both exist", "", "", func(*facts.World) {}},
		{"one is missing", "create service db-active: Child", "", func(w *facts.World) { delete(w.Services, "db-active") }},
		{"a selector was changed", "patch service db-active: Child, selects version 1", "", func(w *facts.World) { active(w).Spec.Selector = map[string]string{"app": "x"} }},
		{"a user changed the type", "", "", func(w *facts.World) { active(w).Spec.Type = corev1.ServiceTypeLoadBalancer }},
		{"it belongs to another owner", "", "db-active", func(w *facts.World) {
			active(w).OwnerReferences, active(w).Spec.Selector = nil, map[string]string{"app": "x"}
		}},
		{"it is terminating", "", "", func(w *facts.World) {
			active(w).DeletionTimestamp, active(w).Spec.Selector = &metav1.Time{Time: fixture.Noon}, nil
		}},
	} {
		s := withService(r.change)
		got := ""
		for _, line := range writes(s) {
			got += line
		}
		if got != r.want {
			t.Errorf("%s: %q, want %q", r.name, got, r.want)
		}
		if foreign := rules.ForeignService(fixture.AsRecorded(s.W)); foreign != r.foreign {
			t.Errorf("%s: Service %q belongs to another owner", r.name, foreign)
		}
	}
}

// TestWhatTheActiveServiceSelects checks that it selects all versions while ordinals move.
func TestWhatTheActiveServiceSelects(t *testing.T) {
	perOrdinal, coexist := v1alpha1.HandoverPerOrdinal, v1alpha1.HandoverCoexist
	tried := func(phase v1alpha1.Phase, how v1alpha1.Handover) *fixture.Scene {
		return fixture.Of(fixture.Volumes()).Has(1, children.Span{Start: 0, Replicas: 3}).Upgrading(phase, how)
	}
	for _, r := range []struct {
		name  string
		scene *fixture.Scene
		want  string
	}{
		{"at rest", fixture.Of(fixture.Volumes()).Has(1, children.Span{Start: 0, Replicas: 3}), "version 1"},
		{"before the first job has ended", tried(v1alpha1.PhasePreJob, perOrdinal), "version 1"},
		{"canaries that get ordinals", tried(v1alpha1.PhaseCanary, perOrdinal), "every version"},
		{"canaries beside the current version", tried(v1alpha1.PhaseCanary, coexist), "version 1"},
		{"a stale version that has returned its ordinals", tried(v1alpha1.PhaseStale, perOrdinal), "version 1"},
		{"a scale-down beside a stale version that has returned its ordinals",
			tried(v1alpha1.PhaseStale, perOrdinal).But(func(w *facts.World) { w.Replicas = 2 }), "version 1"},
		{"a version that still has an ordinal of the current one",
			fixture.Of(fixture.Volumes()).Has(1, children.Span{Start: 0, Replicas: 2}).Upgrading(v1alpha1.PhaseAborted, perOrdinal).Has(2, children.Span{Start: 2, Replicas: 1}), "every version"},
	} {
		if got := rules.Selected(rules.ServingLabels(fixture.AsRecorded(r.scene.W))); got != r.want {
			t.Errorf("%s: %s, want %s", r.name, got, r.want)
		}
	}
}
