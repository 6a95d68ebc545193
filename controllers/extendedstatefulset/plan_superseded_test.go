package extendedstatefulset

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/fixture"
)

func TestHazardsOfSuperseding(t *testing.T) {
	for _, h := range []hazard{
		{"the template is edited when the only pod has just become Ready", func() *v1alpha1.ExtendedStatefulSet { return fixture.WithClaims(fixture.FakeSet(1)) }, func(s *stage) {
			s.rest()
			s.image("two")
			s.until("db-v2-0 is Ready")
			s.image("bad")
			s.steps(2)
			s.ready("db-v2-0", corev1.ConditionFalse) // as at each start
		}, "= Stale, version 1, 1 Ready; db-v1 ordinals 0 to 0, db-v2 no pods, db-v3 no pods stale; active version 1"},
		{"the template is edited in phase PostJob", lastJob(fixture.Volumes, "hangs"), func(s *stage) {
			s.rest()
			s.floor = 2
			s.image("two")
			s.phase(v1alpha1.PhasePostJob)
			s.image("bad")
		}, "= Stale, version 1, 3 Ready; db-v1 ordinals 0 to 2, db-v2 no pods, db-v3 no pods stale; active version 1"},
		{"a version whose post job failed is retried during another upgrade, and its job runs again", lastJob(fixture.Plain, "bad"), func(s *stage) {
			s.rest()
			s.image("two")
			s.rest()
			s.change("the job is fine, and the image is three", func(set *v1alpha1.ExtendedStatefulSet) {
				set.Spec.UpdateStrategy.PostUpdateJob = fixture.Job("fine")
				set.Spec.Template.Spec.Template.Spec.Containers[0].Image = "three"
			})
			s.until("db-v3-0 is Ready")
			s.image("two")
		}, "= Stable, version 2, 3 Ready; db-v2 ordinals 0 to 2; active version 2"},
	} {
		t.Run(h.name, func(t *testing.T) { h.check(t) })
	}
}
