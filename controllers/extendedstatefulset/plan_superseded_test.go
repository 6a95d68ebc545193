package extendedstatefulset

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/children"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/spec"
)

// toThree changes the template again during an upgrade.
func toThree(w *facts.World) {
	w.Set.Spec.Template.Spec.Template.Spec.Containers[0].Image = "three"
	w.Digest, _ = children.DigestOf(w.Set)
}

// TestSuperseded verifies that a superseded version replaces the old one only if it has passed all
// checks. With handover PerOrdinal the old version finally has no pods, even if it is good.
func TestSuperseded(t *testing.T) {
	moved := func(unready ...int32) *scene {
		return of(volumes()).has(1, children.Span{Start: 0}).upgrading(v1alpha1.PhasePostJob, v1alpha1.HandoverPerOrdinal).has(2, children.Span{Start: 0, Replicas: 3}, unready...)
	}
	for _, row := range []sentence{
		{"a version with all ordinals and good pods becomes current", moved().but(toThree), "record: Canary, version 2 to 3, attempt 1"},
		{"a version with a pod that is not Ready does not become current", moved(1).but(toThree), "record: Waiting, version 1"},
		{"a version with a pod on probation does not become current", moved().turned(1, 1, spec.MaxProbation-1).but(toThree), "record: Waiting, version 1"},
		{"a version in phase PostJob does not become current", moved().but(postJobRuns).but(toThree), "record: Waiting, version 1"},
		{"a version with Ready pods becomes current if the old one has none", of(volumes()).has(1, children.Span{Start: 0, Replicas: 2}, 0, 1).upgrading(v1alpha1.PhaseCanary, v1alpha1.HandoverPerOrdinal).
			has(2, children.Span{Start: 2, Replicas: 1}).but(toThree), "record: Waiting, version 2"},
	} {
		t.Run(row.name, row.check)
	}
}

func TestHazardsOfSuperseding(t *testing.T) {
	for _, h := range []hazard{
		{"the template is edited when the only pod has just become Ready", func() *v1alpha1.ExtendedStatefulSet { return withClaims(fakeSet(1)) }, func(s *stage) {
			s.rest()
			s.image("two")
			s.until("db-v2-0 is Ready")
			s.image("bad")
			s.steps(2)
			s.ready("db-v2-0", corev1.ConditionFalse) // as at each start
		}, "= Stale, version 1, 1 Ready; db-v1 ordinals 0 to 0, db-v2 no pods, db-v3 no pods stale; active version 1"},
		{"the template is edited in phase PostJob", lastJob(volumes, "hangs"), func(s *stage) {
			s.rest()
			s.floor = 2
			s.image("two")
			s.phase(v1alpha1.PhasePostJob)
			s.image("bad")
		}, "= Stale, version 1, 3 Ready; db-v1 ordinals 0 to 2, db-v2 no pods, db-v3 no pods stale; active version 1"},
		{"a version whose post job failed is retried during another upgrade, and its job runs again", lastJob(plain, "bad"), func(s *stage) {
			s.rest()
			s.image("two")
			s.rest()
			s.change("the job is fine, and the image is three", func(set *v1alpha1.ExtendedStatefulSet) {
				set.Spec.UpdateStrategy.PostUpdateJob = job("fine")
				set.Spec.Template.Spec.Template.Spec.Containers[0].Image = "three"
			})
			s.until("db-v3-0 is Ready")
			s.image("two")
		}, "= Stable, version 2, 3 Ready; db-v2 ordinals 0 to 2; active version 2"},
	} {
		t.Run(h.name, func(t *testing.T) { h.check(t) })
	}
}
