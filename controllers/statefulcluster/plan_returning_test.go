package statefulcluster

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/fixture"
)

var noCommand = act{"the user restores the old template", func(s *stage) {
	s.edit(func(spec *v1alpha1.StatefulClusterSpec) { spec.Template.Spec.Containers[0].Command = nil })
}}

// V1 The API server refuses pods of the new template. With a corrected template the member is
// recreated, with its name and claims.
func TestV1ARefusedTemplateIsCorrected(t *testing.T) {
	for _, story := range []story{
		{"corrected with the old template", three, []act{command("refused"), noCommand}},
		{"corrected with another template", three, []act{command("refused"), command("serve")}},
		{"corrected while maxUnavailable is 2", func() *fixture.SetFixture { return three().MaxUnavailable(2) }, []act{command("refused"), command("serve")}},
	} {
		t.Run(story.name, func(t *testing.T) {
			s := newStage(t, story.set())
			s.Interfere = func(_ int, a action.Action) (before, after error) {
				if p, isPod := a.Object.(*corev1.Pod); isPod && a.Verb == action.Create && slices.Contains(p.Spec.Containers[0].Command, "refused") {
					return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, p.Name, errors.New("quota")), nil
				}
				return nil, nil
			}
			// The last retry was delayed for longer than that: only the edit causes the next one.
			s.play(story, func() { s.settle(10 * time.Second) })
			s.ends()
			if len(s.invariants.names) != 3 {
				s.Breaks("V1 %d names were used, want 3", len(s.invariants.names))
			}
			s.Check(s.t)
		})
	}
}

// SC-48 A dry-run create shows that the API server would refuse pods of the new template.
func TestSC48ARefusedTemplateTakesNoOneDown(t *testing.T) {
	s := newStage(t, three())
	s.Interfere = func(_ int, a action.Action) (before, after error) {
		if p, isPod := a.Object.(*corev1.Pod); isPod && a.Verb == action.Try && slices.Contains(p.Spec.Containers[0].Command, "refused") {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, p.Name, errors.New("policy")), nil
		}
		return nil, nil
	}
	s.play(story{"", three, []act{command("refused"), noCommand}}, func() { s.settle(10 * time.Second) })
	s.ends()
	for _, line := range s.Story {
		if strings.Contains(line, "delete pod") {
			s.Breaks("SC-48 the update to a refused template has step: %s", line)
		}
	}
	s.Check(s.t)
}
