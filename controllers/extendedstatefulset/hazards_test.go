package extendedstatefulset

import (
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation/kubelet"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation/objects"
)

// hazard is a disturbance of a set, with the expected final state.
type hazard struct {
	name string
	set  func() *v1alpha1.ExtendedStatefulSet
	tell func(s *stage)
	want string
}

func (s *stage) zones(zones ...string) {
	s.change("the zones are "+strings.Join(zones, ", "), func(set *v1alpha1.ExtendedStatefulSet) { set.Spec.Zones = zones })
}

func (s *stage) loseStatus() {
	s.change("the status is lost", func(set *v1alpha1.ExtendedStatefulSet) { set.Status = v1alpha1.ExtendedStatefulSetStatus{} })
}

// object returns an object of the fake cluster by kind and name.
func (s *stage) object(kind, name string) client.Object {
	s.t.Helper()
	obj := s.All[objects.Key{Kind: kind, Namespace: "ns", Name: name}]
	if obj == nil {
		s.Fatal(s.t, "missing "+kind+" "+name)
	}
	return obj
}

// ready sets the Ready condition of a pod, like its kubelet.
func (s *stage) ready(name string, status corev1.ConditionStatus) {
	pod := s.object("Pod", name).DeepCopyObject().(*corev1.Pod)
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == corev1.PodReady {
			c.Status, c.LastTransitionTime = status, metav1.NewTime(s.Now)
		}
	}
	s.Say("# %s: Ready is %s", name, status)
	s.Put(pod)
}

// steps runs n passes of the operator while everything else is idle.
func (s *stage) steps(n int) {
	s.t.Helper()
	for range n {
		s.Look()
		s.pass()
		s.Check(s.t)
	}
}

// readyNow returns the number of Ready pods.
func (s *stage) readyNow() (n int) {
	for _, pod := range s.pods() {
		if podstate.Ready(pod) && !podstate.Terminating(pod) {
			n++
		}
	}
	return n
}

// dataHazards are hazards to data: no claim may be deleted, used by two pods, or used in another zone.
var dataHazards = []hazard{
	{"another client removes the labels of the StatefulSet of a new version before it has pods", fixture.Volumes, func(s *stage) {
		s.rest()
		s.floor = 2
		s.image("two")
		s.until("db-v2: VersionCreated, no pods")
		s.edit("db-v2", func(c *appsv1.StatefulSet) { c.Labels = nil })
	}, "= Stable, version 2, 3 Ready; db-v2 ordinals 0 to 2; active version 2"},
	{"the status is lost after the zones were reordered", func() *v1alpha1.ExtendedStatefulSet { return fixture.Zoned(1, "a", "b") }, func(s *stage) {
		s.rest()
		s.zones("b", "a")
		s.rest()
		s.loseStatus()
	}, "= Stable, version 1, 2 Ready; db-z0-v1 ordinals 0 to 0, db-z1-v1 ordinals 0 to 0; active version 1"},
	{"all objects except the claims and the spec are lost after the zones were reordered", func() *v1alpha1.ExtendedStatefulSet { return fixture.Zoned(1, "a", "b") }, func(s *stage) {
		s.rest()
		s.zones("b", "a")
		s.rest()
		s.loseStatus()
		for _, c := range s.children() {
			s.Delete(c)
		}
		for _, pod := range s.pods() {
			s.DeleteNow(pod)
		}
	}, "= Stable, version 1, 2 Ready; db-z0-v1 ordinals 0 to 0, db-z1-v1 ordinals 0 to 0; active version 1"},
	{"zones are added to a set with claims", fixture.Volumes, func(s *stage) {
		s.rest()
		s.zones("a")
	}, "= Stable, version 1, 3 Ready; db-v1 ordinals 0 to 2; active version 1"},
	{"zones are added to a set with claims, and the status is lost", fixture.Volumes, func(s *stage) {
		s.rest()
		s.zones("a")
		s.loseStatus()
	}, "= , version 0, 0 Ready; db-v1 ordinals 0 to 2; active version 1"},
	{"all zones are removed from a set with claims", func() *v1alpha1.ExtendedStatefulSet { return fixture.Zoned(1, "a") }, func(s *stage) {
		s.rest()
		s.zones()
	}, "= Stable, version 1, 1 Ready; db-z0-v1 ordinals 0 to 0; active version 1"},
	{"the template is edited while a claim that its pod uses is terminating", fixture.Volumes, func(s *stage) {
		s.rest()
		s.Delete(s.object("PersistentVolumeClaim", "data-db-2"))
		s.image("two")
	}, "= Stale, version 1, 3 Ready; db-v1 ordinals 0 to 2, db-v2 no pods stale; active version 1"},
	{"another client removes the owner of a StatefulSet during an upgrade, and deletes its pod", fixture.Volumes, func(s *stage) {
		s.rest()
		s.image("two")
		s.until("db-v2-2 is Ready")
		s.edit("db-v1", func(c *appsv1.StatefulSet) { c.OwnerReferences = nil })
		s.settle()
		s.Remove(s.object("Pod", "db-v1-1"))
		s.steps(3)
	}, "= Promoting, version 2, 1 Ready; db-v1 ordinals 0 to 1, db-v2 ordinals 2 to 2; active version 2"},
}

func (h hazard) check(t *testing.T) *stage {
	s := newStage(t, h.set())
	homes := map[string]string{} // the index of each zone, taken from its pods
	h.tell(s)
	s.rest()
	for _, pod := range s.pods() {
		name, index := pod.Labels[v1alpha1.LabelZoneName], pod.Labels[v1alpha1.LabelZoneIndex]
		homes[name] = index
	}
	if a, known := homes["a"]; known && a != "0" {
		s.Fatal(t, "zone a has the claims of index "+a)
	}
	if end(s) != h.want {
		s.Fatal(t, "final state\n"+end(s)+", want\n"+h.want)
	}
	return s
}

func TestHazardsToData(t *testing.T) {
	for _, h := range dataHazards {
		t.Run(h.name, func(t *testing.T) {
			t.Parallel()
			h.check(t)
		})
	}
}

// serviceHazards are hazards to the serving pods.
var serviceHazards = []hazard{
	{"a bad version is scaled to 0 during the upgrade and back, with Coexist", fixture.Plain, func(s *stage) {
		s.rest()
		s.image("bad")
		s.until("db-v2-0 runs bad")
		s.scale(0)
		s.rest()
		s.scale(3)
	}, "= Stale, version 1, 3 Ready; db-v1 ordinals 0 to 2, db-v2 no pods stale; active version 1"},
	{"a bad version is scaled to 0 during the upgrade and back, with PerOrdinal", fixture.Volumes, func(s *stage) {
		s.rest()
		s.image("bad")
		s.until("db-v2-2 runs bad")
		s.scale(0)
		s.rest()
		s.Now = s.Now.Add(time.Hour)
		s.scale(3)
		s.until("db-v2-2 runs bad")
		s.settleUntil(func() bool { return s.readyNow() == 2 })
		s.floor = 2
	}, "= Stale, version 1, 3 Ready; db-v1 ordinals 0 to 2, db-v2 no pods stale; active version 1"},
	{"a bad version is scaled to 0 and back between two attempts", func() *v1alpha1.ExtendedStatefulSet {
		set := fixture.Plain()
		set.Spec.UpdateStrategy.RetryCount = 1
		return set
	}, func(s *stage) {
		s.rest()
		s.image("bad")
		s.until("attempt 1, CanaryFailed")
		s.scale(0)
		s.rest()
		s.scale(3)
	}, "= Stale, version 1, 3 Ready; db-v1 ordinals 0 to 2, db-v2 no pods stale; active version 1"},
	{"a set without pods is upgraded", func() *v1alpha1.ExtendedStatefulSet { return fixture.FakeSet(0) }, func(s *stage) {
		s.rest()
		s.image("two")
	}, "= Stable, version 2, 0 Ready; db-v2 no pods; active version 2"},
	{"zones are added together with a bad template", fixture.Plain, func(s *stage) {
		s.rest()
		s.floor = 3
		s.change("zones, and the image is bad", func(set *v1alpha1.ExtendedStatefulSet) {
			set.Spec.Zones = []string{"a", "b"}
			set.Spec.Template.Spec.Template.Spec.Containers[0].Image = "bad"
		})
		s.rest()
		s.image("three")
	}, "= Stable, version 3, 6 Ready; db-z0-v3 ordinals 0 to 2, db-z1-v3 ordinals 0 to 2; active version 3"},
	{"a zone is added together with a bad template, followed by a good one", func() *v1alpha1.ExtendedStatefulSet {
		set := fixture.FakeSet(2)
		set.Spec.Zones = []string{"a"}
		return set
	}, func(s *stage) {
		s.rest()
		s.floor = 2
		s.change("zone b, and the image is bad", func(set *v1alpha1.ExtendedStatefulSet) {
			set.Spec.Zones = []string{"b", "a"}
			set.Spec.Template.Spec.Template.Spec.Containers[0].Image = "bad"
		})
		s.rest()
		s.image("three")
	}, "= Stable, version 3, 4 Ready; db-z0-v3 ordinals 0 to 1, db-z1-v3 ordinals 0 to 1; active version 3"},
	{"a zone is removed from the spec while it is upgraded", func() *v1alpha1.ExtendedStatefulSet {
		set := fixture.FakeSet(2)
		set.Spec.Zones = []string{"a", "b"}
		return set
	}, func(s *stage) {
		s.rest()
		s.floor = 2
		s.image("two")
		s.until("db-z0-v2-0 is created")
		s.zones("b")
	}, "= Stable, version 2, 2 Ready; db-z1-v2 ordinals 0 to 1; active version 2"},
	{"a version fails only in the last zone", func() *v1alpha1.ExtendedStatefulSet { return fixture.Zoned(1, "a", "b", "c") }, func(s *stage) {
		s.rest()
		s.image("two")
		s.until("db-z1-v2-0 is Ready")
		s.until("db-z2-v2-0 is Ready")
		s.floor = 1 // c is bad, and one pod may be returning to the old version
		s.ready("db-z2-v2-0", corev1.ConditionFalse)
		s.object("Pod", "db-z2-v2-0").(*corev1.Pod).Spec.NodeName = "lost"
	}, "= Stale, version 1, 2 Ready; db-z0-v1 ordinals 0 to 0, db-z0-v2 no pods stale, db-z1-v1 ordinals 0 to 0, db-z1-v2 no pods stale, db-z2-v1 no pods, db-z2-v2 no pods stale; active every version"},
	{"a post job fails with updateNotReady", func() *v1alpha1.ExtendedStatefulSet {
		set := fixture.Volumes()
		set.Spec.UpdateStrategy.UpdateNotReady, set.Spec.UpdateStrategy.PostUpdateJob = true, fixture.Job("bad")
		return set
	}, func(s *stage) {
		s.rest()
		s.floor = 2
		s.image("two")
	}, "= Stale, version 1, 3 Ready; db-v1 ordinals 0 to 2, db-v2 no pods stale; active version 1"},
	{"all pods of a new version crash soon after they were Ready", fixture.Plain, func(s *stage) {
		s.rest()
		s.floor = 3
		s.image("two")
		s.until("db-v2-2 is Ready")
		s.Now = s.Now.Add(2 * time.Second)
		s.steps(3)
		for _, name := range []string{"db-v2-0", "db-v2-1", "db-v2-2"} {
			s.ready(name, corev1.ConditionFalse)
			s.object("Pod", name).(*corev1.Pod).Spec.Containers[0].Image = "bad"
		}
	}, "= Stale, version 1, 3 Ready; db-v1 ordinals 0 to 2, db-v2 no pods stale; active version 1"},
	{"another client removes the labels of the old version during an upgrade", fixture.Plain, func(s *stage) {
		s.rest()
		s.floor = 3
		s.image("two")
		s.until("db-v2-0 is Ready")
		s.edit("db-v1", func(c *appsv1.StatefulSet) { c.Labels, c.Annotations = nil, nil })
	}, "= Stable, version 2, 3 Ready; db-v2 ordinals 0 to 2; active version 2"},
	{"another client removes the labels of a superseded version", fixture.Volumes, func(s *stage) {
		s.rest()
		s.floor = 2
		s.image("two")
		s.until("db-v2-2 is Ready")
		s.edit("db-v2", func(c *appsv1.StatefulSet) { c.Labels, c.Annotations = nil, nil })
		s.image("three")
	}, "= Stable, version 3, 3 Ready; db-v3 ordinals 0 to 2; active version 3"},
	{"ES12 another client removes the labels of the old version in one zone, with a stale version, when no action requires a live read",
		func() *v1alpha1.ExtendedStatefulSet {
			set := fixture.FakeSet(1)
			set.Spec.Zones = []string{"a", "b"}
			return set
		}, func(s *stage) {
			s.rest()
			s.floor = 2
			s.image("bad")
			s.rest()
			s.edit("db-z1-v1", func(c *appsv1.StatefulSet) { c.Labels, c.Annotations = nil, nil })
			s.rest()
			if c := s.object("StatefulSet", "db-z1-v1"); c.GetLabels()[v1alpha1.LabelSet] != "db" {
				s.Fatal(s.t, "the labels were not restored")
			}
		}, "= Stale, version 1, 2 Ready; db-z0-v1 ordinals 0 to 0, db-z0-v2 no pods stale, db-z1-v1 ordinals 0 to 0; active version 1"},
	{"a node is lost while its pod terminates for an upgrade", fixture.Volumes, func(s *stage) {
		s.rest()
		s.floor = 2
		s.image("two")
		s.until("db-v1-2 is deleted by its StatefulSet")
		kubelet.Turn(s.Cluster, "n3", false)
	}, "= Stale, version 1, 2 Ready; db-v1 ordinals 0 to 2, db-v2 no pods stale; active version 1"},
	{"a node with a pod of the new version is lost, and recovers later", fixture.Volumes, func(s *stage) {
		s.rest()
		s.image("two")
		s.until("db-v2-2 is Ready")
		kubelet.Turn(s.Cluster, "n3", false)
		s.floor = 2
		if set := s.rest(); set.Status.Phase != v1alpha1.PhaseStale || !strings.Contains(meta.FindStatusCondition(set.Status.Conditions, v1alpha1.ConditionProgressing).Message, "waiting until pod db-v2-2 is deleted") {
			s.Fatal(s.t, "condition Progressing does not name the pod")
		}
		s.image("three")
		s.rest()
		kubelet.Turn(s.Cluster, "n3", true)
	}, "= Stable, version 3, 3 Ready; db-v3 ordinals 0 to 2; active version 3"},
	{"a canary crashes soon after it was Ready", fixture.Volumes, func(s *stage) {
		s.rest()
		s.floor = 2
		s.image("two")
		s.until("db-v2-2 is Ready")
		s.Now = s.Now.Add(2 * time.Second)
		s.steps(3)
		s.ready("db-v2-2", corev1.ConditionFalse)
		s.object("Pod", "db-v2-2").(*corev1.Pod).Spec.Containers[0].Image = "bad"
	}, "= Stale, version 1, 3 Ready; db-v1 ordinals 0 to 2, db-v2 no pods stale; active version 1"},
	{"the status is lost in phase Canary", fixture.Plain, func(s *stage) {
		s.rest()
		s.floor = 3
		s.image("two")
		s.until("db-v2-0 is Ready")
		s.loseStatus()
	}, "= Stable, version 2, 3 Ready; db-v2 ordinals 0 to 2; active version 2"},
}

func TestHazardsToService(t *testing.T) {
	for _, h := range serviceHazards {
		t.Run(h.name, func(t *testing.T) {
			t.Parallel()
			h.check(t)
		})
	}
}
