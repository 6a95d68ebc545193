package extendedstatefulset

import (
	"cmp"
	"fmt"
	"math/rand"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/children"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/rules"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simtest"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation/kubelet"
)

// story is a sequence of events of a set. Its golden file in testdata was reviewed manually.
type story struct {
	name string
	set  func() *v1alpha1.ExtendedStatefulSet
	tell func(s *stage)
}

// lastJob adds a postUpdateJob with the given image to a set.
func lastJob(make func() *v1alpha1.ExtendedStatefulSet, does string) func() *v1alpha1.ExtendedStatefulSet {
	return func() *v1alpha1.ExtendedStatefulSet {
		set := make()
		set.Spec.UpdateStrategy.PostUpdateJob = fixture.Job(does)
		return set
	}
}

// approvedByHand sets approval Manual.
func approvedByHand(make func() *v1alpha1.ExtendedStatefulSet) func() *v1alpha1.ExtendedStatefulSet {
	return func() *v1alpha1.ExtendedStatefulSet {
		set := make()
		set.Spec.Approval = v1alpha1.ApprovalManual
		return set
	}
}

// approve is the approval of a user.
func (s *stage) approve(revision string) {
	s.change("approvedRevision is "+cmp.Or(revision, "empty"), func(set *v1alpha1.ExtendedStatefulSet) { set.Spec.ApprovedRevision = revision })
}

// pod returns the pod with the given name.
func (s *stage) pod(name string) *corev1.Pod {
	for _, pod := range s.pods() {
		if pod.Name == name {
			return pod
		}
	}
	s.Fatal(s.t, "missing pod "+name)
	return nil
}

var stories = []story{
	{"coexist", fixture.Plain, func(s *stage) {
		s.rest()
		s.floor = 3
		s.image("two")
		s.rest()
	}},
	{"per-ordinal", fixture.Volumes, func(s *stage) {
		s.rest()
		s.floor = 2
		s.image("two")
		s.rest()
	}},
	{"budget of the serving pods", fixture.Budgeted(fixture.Plain, intstr.FromInt32(1)), func(s *stage) {
		s.rest()
		s.floor = 3
		s.image("two")
		s.rest()
		s.scale(5)
		s.rest()
		s.change("no budget", func(set *v1alpha1.ExtendedStatefulSet) { set.Spec.PodDisruptionBudget = nil })
		s.rest()
	}},
	{"budgets of zones, per ordinal", func() *v1alpha1.ExtendedStatefulSet {
		set := fixture.Budgeted(func() *v1alpha1.ExtendedStatefulSet { return fixture.WithClaims(fixture.FakeSet(2)) }, intstr.FromString("50%"))()
		set.Spec.Zones = []string{"a", "b"}
		return set
	}, func(s *stage) {
		s.rest()
		s.floor = 3
		s.image("two")
		s.rest()
		s.change("only zone b", func(set *v1alpha1.ExtendedStatefulSet) { set.Spec.Zones = []string{"b"} })
		s.floor = 2
		s.rest()
	}},
	{"bad canary, retried, stale, corrected", func() *v1alpha1.ExtendedStatefulSet {
		set := fixture.Plain()
		set.Spec.UpdateStrategy.RetryCount = 1
		return set
	}, func(s *stage) {
		s.rest()
		s.floor = 3
		s.image("bad")
		s.rest()
		s.image("three")
		s.rest()
	}},
	{"per-ordinal, bad canary", fixture.Volumes, func(s *stage) {
		s.rest()
		s.floor = 2
		s.image("bad")
		s.rest()
		s.image("three")
		s.rest()
	}},
	{"superseded half-way", fixture.Volumes, func(s *stage) {
		s.rest()
		s.floor = 2
		s.image("two")
		s.until("db-v2-1 is Ready")
		s.image("three")
		s.rest()
	}},
	{"rolled back half-way", fixture.Volumes, func(s *stage) {
		s.rest()
		s.floor = 2
		s.image("two")
		s.until("db-v2-1 is Ready")
		s.image("one")
		s.rest()
		s.image("two")
		s.rest()
	}},
	{"stale, rolled back, retried", fixture.Plain, func(s *stage) {
		s.rest()
		s.image("bad")
		s.rest()
		s.image("one")
		s.rest()
		s.image("bad")
		s.rest()
	}},
	{"jobs", func() *v1alpha1.ExtendedStatefulSet {
		set := fixture.Plain()
		set.Spec.UpdateStrategy.PreUpdateJob, set.Spec.UpdateStrategy.PostUpdateJob = fixture.Job("fine"), fixture.Job("fine")
		return set
	}, func(s *stage) {
		s.rest()
		s.image("two")
		s.rest()
	}},
	{"pre job fails", func() *v1alpha1.ExtendedStatefulSet {
		set := fixture.Plain()
		set.Spec.UpdateStrategy.PreUpdateJob = fixture.Job("bad")
		return set
	}, func(s *stage) {
		s.rest()
		s.floor = 3
		s.image("two")
		s.rest()
		s.change("the job is fine, and the image is three", func(set *v1alpha1.ExtendedStatefulSet) {
			set.Spec.UpdateStrategy.PreUpdateJob = fixture.Job("fine")
			set.Spec.Template.Spec.Template.Spec.Containers[0].Image = "three"
		})
		s.rest()
	}},
	{"pre job hangs", func() *v1alpha1.ExtendedStatefulSet {
		set := fixture.Plain()
		set.Spec.UpdateStrategy.PreUpdateJob = fixture.Job("hangs")
		return set
	}, func(s *stage) {
		s.rest()
		s.image("two")
		s.rest()
	}},
	{"post job fails, per ordinal", lastJob(fixture.Volumes, "bad"), func(s *stage) {
		s.rest()
		s.floor = 2
		s.image("two")
		s.rest()
	}},
	{"zones", func() *v1alpha1.ExtendedStatefulSet {
		set := fixture.FakeSet(2)
		set.Spec.Zones = []string{"a", "b"}
		return set
	}, func(s *stage) {
		s.rest()
		s.floor = 4
		s.image("two")
		s.rest()
		s.floor = -1
		s.change("zone c is added, zone b is removed, the order changes", func(set *v1alpha1.ExtendedStatefulSet) { set.Spec.Zones = []string{"c", "a"} })
		s.rest()
		s.change("zone b is back", func(set *v1alpha1.ExtendedStatefulSet) { set.Spec.Zones = []string{"c", "a", "b"} })
		s.rest()
	}},
	{"scaled", fixture.Volumes, func(s *stage) {
		s.rest()
		s.floor = 3
		s.scale(4)
		s.rest()
		s.floor = -1
		s.scale(2)
		s.rest()
		s.scale(3)
		s.image("two")
		s.until("db-v2-2 is created")
		s.scale(5)
		s.rest()
		s.image("three")
		s.until("db-v3-3 is created")
		s.scale(1)
		s.rest()
	}},
	{"not ready", fixture.Plain, func(s *stage) {
		s.image("bad")
		s.rest()
		s.image("two")
		s.rest()
		s.change("updateNotReady", func(set *v1alpha1.ExtendedStatefulSet) { set.Spec.UpdateStrategy.UpdateNotReady = true })
		s.rest()
	}},
	{"edited by another client", fixture.Plain, func(s *stage) {
		s.rest()
		s.edit("db-v1", func(c *appsv1.StatefulSet) { c.Spec.Replicas = ptr.To(int32(5)) })
		s.rest()
		s.edit("db-v1", func(c *appsv1.StatefulSet) { c.Spec.Template.Spec.Containers[0].Image = "evil" })
		s.rest()
		s.edit("db-v1", func(c *appsv1.StatefulSet) { c.Labels, c.Annotations = nil, nil })
		s.rest()
		s.Say("# db-v1 is deleted")
		s.Delete(s.children()[0])
		s.rest()
	}},
	{"volumes grow", fixture.Volumes, func(s *stage) {
		s.rest()
		s.floor = 3
		s.change("claims are 2Gi", func(set *v1alpha1.ExtendedStatefulSet) {
			set.Spec.Template.Spec.VolumeClaimTemplates[0].Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse("2Gi")
		})
		s.rest()
	}},
	{"approved manually", approvedByHand(fixture.Volumes), func(s *stage) {
		s.rest()
		s.floor = 2
		s.image("two")
		s.rest()
		s.approve("v1-of-another")
		s.rest()
		s.approve(s.set().Status.UpdateRevision)
		s.rest()
		s.image("three")
		s.rest()
		s.image("two")
		s.rest()
	}},
	{"approved in zones", func() *v1alpha1.ExtendedStatefulSet {
		set := approvedByHand(fixture.Plain)()
		set.Spec.Zones, set.Spec.Template.Spec.Replicas = []string{"a", "b"}, ptr.To(int32(2))
		return set
	}, func(s *stage) {
		s.rest()
		s.floor = 4
		s.image("two")
		s.rest()
		s.approve(s.set().Status.UpdateRevision)
		s.until("attempt 1 in zone b")
		s.approve("")
		s.rest()
	}},
	{"canary fails while it waits", approvedByHand(fixture.Plain), func(s *stage) {
		s.rest()
		s.image("two")
		s.rest()
		for _, ready := range []bool{false, true} {
			s.Say("# node of db-v2-0 is Ready: %t", ready)
			kubelet.Turn(s.Cluster, s.pod("db-v2-0").Spec.NodeName, ready)
			s.Look()
			s.pass()
		}
		s.rest()
		s.change("more canaries", func(set *v1alpha1.ExtendedStatefulSet) {
			set.Spec.UpdateStrategy.Canaries = ptr.To(int32(3))
		})
		s.Say("# node of db-v2-0 is not Ready")
		kubelet.Turn(s.Cluster, s.pod("db-v2-0").Spec.NodeName, false)
		s.rest()
	}},
	{"a job for the canaries, then approval", func() *v1alpha1.ExtendedStatefulSet {
		set := approvedByHand(lastJob(fixture.Plain, "fine"))()
		set.Spec.UpdateStrategy.PostUpdateJob.When = v1alpha1.WhenBoth
		return set
	}, func(s *stage) {
		s.rest()
		s.floor = 3
		s.image("two")
		s.rest()
		s.approve(s.set().Status.UpdateRevision)
		s.rest()
		s.change("the job fails, and the image is three", func(set *v1alpha1.ExtendedStatefulSet) {
			set.Spec.UpdateStrategy.PostUpdateJob.Spec.Template.Spec.Containers[0].Image = "bad"
			set.Spec.Template.Spec.Template.Spec.Containers[0].Image = "three"
		})
		s.rest()
	}},
	{"deleted", fixture.Volumes, func(s *stage) {
		s.rest()
		s.Say("# the set is deleted")
		s.Delete(s.set())
		s.rest()
	}},
}

func TestStories(t *testing.T) {
	var names []string
	for _, story := range stories {
		names = append(names, story.name)
		t.Run(story.name, func(t *testing.T) {
			s := newStage(t, story.set())
			story.tell(s)
			simtest.CheckStory(t, story.name, s.Story)
		})
	}
	simtest.CheckNoOtherStories(t, names)
}

// end returns the final state of a story.
func end(s *stage) string { return s.Story[len(s.Story)-1] }

// unbroken returns the final state and the number of writes of a story without failures.
func unbroken(t *testing.T, story story) (last string, writes int) {
	s := newStage(t, story.set())
	story.tell(s)
	return end(s), s.Writes()
}

// TestRandomOrders verifies that a story has the same final state if all participants act in random
// order with outdated caches.
func TestRandomOrders(t *testing.T) {
	first, count := simtest.Orders(5)
	for _, story := range stories {
		t.Run(story.name, func(t *testing.T) {
			t.Parallel()
			want, _ := unbroken(t, story)
			for seed := first; seed < first+count; seed++ {
				s := newStage(t, story.set())
				s.Shuffle = rand.New(rand.NewSource(int64(seed)))
				s.Say("# order %d", seed)
				story.tell(s)
				if end(s) != want {
					s.Fatal(t, fmt.Sprintf("order %d: final state\n%s, want\n%s", seed, end(s), want))
				}
			}
		})
	}
}

// TestEachWriteGoesWrong verifies E35: if the operator is killed after any write and restarted, or if
// any write fails, a story has the same final state.
func TestEachWriteGoesWrong(t *testing.T) {
	for _, story := range stories {
		t.Run(story.name, func(t *testing.T) {
			t.Parallel()
			want, writes := unbroken(t, story)
			for n := 1; n <= writes; n++ {
				for i, failure := range []simulation.Failure{simulation.DiesAfter, simulation.Fails} {
					if !simtest.EveryWrite() && (n+i+len(story.name))%6 != 0 {
						continue
					}
					s := newStage(t, story.set())
					s.Interfere = failure.At(s.Cluster, n)
					story.tell(s)
					if end(s) != want {
						s.Fatal(t, fmt.Sprintf("write %d %s: final state\n%s, want\n%s", n, failure.Name, end(s), want))
					}
				}
			}
		})
	}
}

func TestAVersionThatIsTriedAgainIsNotStale(t *testing.T) {
	s := fixture.Of(fixture.Plain()).Has(1, children.Span{Start: 0, Replicas: 3}).Upgrading(v1alpha1.PhaseStale, v1alpha1.HandoverCoexist).Has(2, children.Span{}).But(fixture.Stale2)
	f := fixture.AsRecorded(s.W)
	f.Record.Phase = v1alpha1.PhaseCanary
	c := s.W.Children.Find(children.NoZone, 2)
	next := c.Set.DeepCopy()
	(&rules.ChildPatch{F: f, C: c, Next: next}).MarkStale()
	for _, key := range []string{v1alpha1.AnnotationStale, v1alpha1.AnnotationStaleReason, v1alpha1.AnnotationStaleSince} {
		if c.Set.Annotations[key] == "" || next.Annotations[key] != "" {
			t.Errorf("a retried version has %s=%q, before the retry %q", key, next.Annotations[key], c.Set.Annotations[key])
		}
	}
}
