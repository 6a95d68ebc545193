package extendedstatefulset

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/utils/ptr"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/children"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/fixture"
)

// restartedAt is the annotation that kubectl rollout restart sets.
const restartedAt = "kubectl.kubernetes.io/restartedAt"

func (s *stage) rollOut(name string) {
	s.edit(name, func(c *appsv1.StatefulSet) {
		c.Spec.Template.Annotations = children.Merged(c.Spec.Template.Annotations, map[string]string{restartedAt: "now"})
	})
}

// pull edits the image of a StatefulSet manually.
func (s *stage) pull(name, image string) {
	s.edit(name, func(c *appsv1.StatefulSet) { c.Spec.Template.Spec.Containers[0].Image = image })
}

// uncount is a user action that restarts pods and creates no version.
func (s *stage) uncount() {
	s.change("injectReplicasEnv is false", func(set *v1alpha1.ExtendedStatefulSet) { set.Spec.InjectReplicasEnv = ptr.To(false) })
}

// rolled lets all participants act until the given number of pods has the edit of another client, and
// three pods are Ready.
func (s *stage) rolled(edited int) {
	s.settleUntil(func() bool {
		n := 0
		for _, p := range s.pods() {
			if p.Annotations[restartedAt] != "" || p.Spec.Containers[0].Image == "evil" {
				n++
			}
		}
		return n == edited && s.readyNow() == 3
	})
}

// phase lets all participants act until the record has the given phase, and stops immediately.
func (s *stage) phase(phase v1alpha1.Phase) {
	s.t.Helper()
	for range 500 {
		s.Look()
		_, wait := s.pass()
		if s.set().Status.Phase == phase {
			return
		}
		for _, move := range s.Moves() {
			move()
		}
		s.Now = s.Now.Add(100*time.Millisecond + min(wait, time.Second))
	}
	s.Fatal(s.t, "never in phase "+string(phase))
}

// badLast has a postUpdateJob that fails after the new version got all ordinals.
var badLast = lastJob(fixture.Counted, "bad")

// restartHazards must end with all edits of other clients undone, and with at most one pod down at a
// time.
var restartHazards = []hazard{
	{"the pods of the old version are restarted during an upgrade, and the template is reverted", fixture.Volumes, func(s *stage) {
		s.rest()
		s.image("two")
		s.until("db-v2-2 is Ready")
		s.rollOut("db-v1")
		s.rolled(2)
		s.floor = 2
		s.image("one")
	}, "= Stable, version 1, 3 Ready; db-v1 ordinals 0 to 2; active version 1"},
	{"the pods of the old version are restarted during an upgrade, and the template is reverted with more replicas", fixture.Counted, func(s *stage) {
		s.rest()
		s.image("two")
		s.until("db-v2-2 is Ready")
		s.pull("db-v1", "evil")
		s.rolled(2)
		s.change("the image is one, 4 replicas", func(set *v1alpha1.ExtendedStatefulSet) {
			set.Spec.Template.Spec.Template.Spec.Containers[0].Image = "one"
			set.Spec.Template.Spec.Replicas = ptr.To(int32(4))
		})
		s.until("db-v1-3 is created")
		s.scale(3)
	}, "= Stable, version 1, 3 Ready; db-v1 ordinals 0 to 2; active version 1"},
	{"the new version is edited by another client while it is scaled up and down", fixture.Counted, func(s *stage) {
		s.rest()
		s.image("two")
		s.phase(v1alpha1.PhasePromoting)
		s.scale(4)
		s.steps(2)
		s.pull("db-v2", "evil")
		s.until("db-v2-1 is created")
		s.scale(3)
	}, "= Stable, version 2, 3 Ready; db-v2 ordinals 0 to 2; active version 2"},
	{"a claim is deleted after an edit was kept", fixture.Volumes, func(s *stage) {
		s.rest()
		s.image("bad")
		s.rest()
		s.rollOut("db-v1")
		s.rest()
		s.Delete(s.object("PersistentVolumeClaim", "data-db-1"))
		s.rest()
		s.image("one")
	}, "= Stable, version 1, 3 Ready; db-v1 ordinals 0 to 2; active version 1"},
	{"pods are restarted when one of two canaries is good", func() *v1alpha1.ExtendedStatefulSet {
		set := fixture.Counted()
		set.Spec.UpdateStrategy.Canaries = ptr.To(int32(2))
		return set
	}, func(s *stage) {
		s.rest()
		s.floor = 2
		s.image("two")
		s.until("db-v2-2 is Ready")
		s.Now = s.Now.Add(11 * time.Second)
		s.uncount()
	}, "= Stable, version 2, 3 Ready; db-v2 ordinals 0 to 2; active version 2"},
	{"a claim is deleted and a replica is added in phase PostJob", lastJob(fixture.Counted, "hangs"), func(s *stage) {
		s.rest()
		s.image("two")
		s.phase(v1alpha1.PhasePostJob)
		s.Delete(s.object("PersistentVolumeClaim", "data-db-1"))
		s.scale(4)
	}, "= Stale, version 1, 4 Ready; db-v1 ordinals 0 to 0, db-v2 ordinals 1 to 3 stale; active every version"}, // the claim is kept
	{"pods are restarted in a rollback", badLast, func(s *stage) {
		s.rest()
		s.floor = 2
		s.image("two")
		s.phase(v1alpha1.PhaseStale)
		s.uncount()
	}, "= Stale, version 1, 3 Ready; db-v1 ordinals 0 to 2, db-v2 no pods stale; active version 1"},
	{"a replica is added in a rollback", badLast, func(s *stage) {
		s.rest()
		s.floor = 2
		s.image("two")
		s.phase(v1alpha1.PhaseStale)
		s.scale(4)
	}, "= Stale, version 1, 4 Ready; db-v1 ordinals 0 to 3, db-v2 no pods stale; active version 1"},
}

func TestHazardsOfRestarts(t *testing.T) {
	for _, h := range restartHazards {
		t.Run(h.name, func(t *testing.T) {
			t.Parallel()
			s := h.check(t)
			for _, pod := range s.pods() {
				if pod.Spec.Containers[0].Image == "evil" {
					s.Fatal(t, pod.Name+" runs the template of another client")
				}
			}
		})
	}
}
