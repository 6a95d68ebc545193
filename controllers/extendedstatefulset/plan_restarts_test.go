package extendedstatefulset

import (
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/children"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/facts"
)

// counted returns a set that has the number of replicas in the environment of its pods, so that scaling
// restarts them.
func counted() *v1alpha1.ExtendedStatefulSet {
	set := volumes()
	set.Spec.InjectReplicasEnv = nil
	return set
}

// deletedClaim makes a claim terminating that its pod still uses.
func deletedClaim(ordinal int32) func(*facts.World) {
	return func(w *facts.World) {
		for o := range w.Replicas {
			c := children.BuildClaim(w.Set, &w.Set.Spec.Template.Spec.VolumeClaimTemplates[0], w.Zones[0], o)
			if o == ordinal {
				c.DeletionTimestamp = ptr.To(metav1.NewTime(noon))
			}
			w.Claims[c.Name] = c
		}
	}
}

// uncounted changes the pod template without creating a version.
func uncounted(w *facts.World) { w.Set.Spec.InjectReplicasEnv = ptr.To(false) }

// backToOne reverts the template to that of version 1 during an upgrade.
func backToOne(w *facts.World) {
	w.Set.Spec.Template.Spec.Template.Spec.Containers[0].Image = "one"
	w.Digest, _ = children.DigestOf(w.Set)
	st := &w.Set.Status
	st.Phase, st.Update, st.UpdateVersion, st.Attempts = v1alpha1.PhaseCleaningUp, nil, 1, 0
}

// postJobRuns adds a postUpdateJob that has not ended.
func postJobRuns(w *facts.World) {
	w.Set.Spec.UpdateStrategy.PostUpdateJob = job("hangs")
	j := children.BuildJob(w.Set, job("hangs"), children.PostJob, 2, 1)
	j.UID, j.Spec.Suspend = "j", ptr.To(false)
	w.Jobs = map[string]*batchv1.Job{j.Name: j}
	w.Set.Status.Update.PostJob = &v1alpha1.JobStatus{Name: j.Name, UID: j.UID}
}

// TestRestartsWait verifies that restarts wait while an ordinal moves, because a second pod would be
// down, and while a claim would be removed together with its pod.
func TestRestartsWait(t *testing.T) {
	perOrdinal := v1alpha1.HandoverPerOrdinal
	for _, row := range []sentence{
		{"a kept edit is not reverted while ordinals move", of(volumes()).has(1, children.Span{Start: 0, Replicas: 2}).but(keptEdit).upgrading(v1alpha1.PhaseCanary, perOrdinal).
			has(2, children.Span{Start: 2, Replicas: 1}).but(backToOne), "patch statefulset db-v2: Scale, no pods\n"},
		{"a kept edit is not reverted while a claim is terminating", of(volumes()).has(1, children.Span{Start: 0, Replicas: 3}).but(keptEdit).but(deletedClaim(0)), ""},
		{"a version in phase PostJob is not restarted while a claim is terminating", of(counted()).has(1, children.Span{Start: 0}).upgrading(v1alpha1.PhasePostJob, perOrdinal).
			has(2, children.Span{Start: 0, Replicas: 3}).but(deletedClaim(0)).but(postJobRuns).but(uncounted), ""},
		{"canaries are not restarted while a claim is terminating", of(counted()).has(1, children.Span{Start: 0, Replicas: 2}).upgrading(v1alpha1.PhaseCanary, perOrdinal).has(2, children.Span{Start: 2, Replicas: 1}, 2).but(deletedClaim(2)).but(uncounted), ""},
		{"canaries are restarted without a terminating claim", of(counted()).has(1, children.Span{Start: 0, Replicas: 2}).upgrading(v1alpha1.PhaseCanary, perOrdinal).has(2, children.Span{Start: 2, Replicas: 1}, 2).but(uncounted),
			"patch statefulset db-v2: Template\n"},
		{"a stale version is not restarted in a rollback", of(counted()).has(1, children.Span{Start: 0, Replicas: 1}).upgrading(v1alpha1.PhaseStale, perOrdinal).
			has(2, children.Span{Start: 1, Replicas: 2}).but(stale2).but(uncounted), "patch statefulset db-v2: Scale, ordinals 2 to 2\n"},
		{"a version whose post job failed is not restarted in a rollback", of(counted()).has(1, children.Span{Start: 0, Replicas: 1}).upgrading(v1alpha1.PhasePostJob, perOrdinal).has(2, children.Span{Start: 1, Replicas: 2}).
			but(func(w *facts.World) { w.Set.Status.Update.Returning = true }).but(uncounted), "patch statefulset db-v2: Scale, ordinals 2 to 2\n"},
		{"a good canary is not restarted while the second ordinal is taken", of(counted()).has(1, children.Span{Start: 0, Replicas: 2}).upgrading(v1alpha1.PhaseCanary, perOrdinal).has(2, children.Span{Start: 2, Replicas: 1}).
			but(func(w *facts.World) { w.Set.Spec.UpdateStrategy.Canaries = ptr.To(int32(2)) }).but(uncounted), "patch statefulset db-v1: Scale, ordinals 0 to 0\n"},
	} {
		t.Run(row.name, func(t *testing.T) {
			row.check(t)
			if got, want := row.scene.restarts(), strings.HasSuffix(row.want, ": Template\n"); got != want {
				t.Errorf("pods are restarted: %t, want %t", got, want)
			}
		})
	}
}

// restarts reports whether a pod template changes, whatever the reason of the write.
func (s *scene) restarts() bool {
	_, p := decided(s.w)
	for _, chain := range slices.Concat(p.Steps...) {
		for _, a := range chain {
			if next, ok := a.Object.(*appsv1.StatefulSet); ok && a.From != nil &&
				!apiequality.Semantic.DeepEqual(next.Spec.Template, a.From.(*appsv1.StatefulSet).Spec.Template) {
				return true
			}
		}
	}
	return false
}

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
		s.look()
		_, wait := s.pass()
		if s.set().Status.Phase == phase {
			return
		}
		for _, move := range s.machines() {
			move()
		}
		s.Now = s.Now.Add(100*time.Millisecond + min(wait, time.Second))
	}
	s.Fatal(s.t, "never in phase "+string(phase))
}

// badLast has a postUpdateJob that fails after the new version got all ordinals.
var badLast = lastJob(counted, "bad")

// restartHazards must end with all edits of other clients undone, and with at most one pod down at a
// time.
var restartHazards = []hazard{
	{"the pods of the old version are restarted during an upgrade, and the template is reverted", volumes, func(s *stage) {
		s.rest()
		s.image("two")
		s.until("db-v2-2 is Ready")
		s.rollOut("db-v1")
		s.rolled(2)
		s.floor = 2
		s.image("one")
	}, "= Stable, version 1, 3 Ready; db-v1 ordinals 0 to 2; active version 1"},
	{"the pods of the old version are restarted during an upgrade, and the template is reverted with more replicas", counted, func(s *stage) {
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
	{"the new version is edited by another client while it is scaled up and down", counted, func(s *stage) {
		s.rest()
		s.image("two")
		s.phase(v1alpha1.PhasePromoting)
		s.scale(4)
		s.steps(2)
		s.pull("db-v2", "evil")
		s.until("db-v2-1 is created")
		s.scale(3)
	}, "= Stable, version 2, 3 Ready; db-v2 ordinals 0 to 2; active version 2"},
	{"a claim is deleted after an edit was kept", volumes, func(s *stage) {
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
		set := counted()
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
	{"a claim is deleted and a replica is added in phase PostJob", lastJob(counted, "hangs"), func(s *stage) {
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
