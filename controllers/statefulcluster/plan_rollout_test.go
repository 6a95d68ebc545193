package statefulcluster

import (
	"context"
	"errors"
	"fmt"
	"math/rand"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/engine"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simtest"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation/kubelet"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/fixture"
)

// orders is the default number of random orders of each story.
const orders = 12

// story is a sequence of acts on a set.
type story struct {
	name string
	set  func() *fixture.SetFixture
	acts []act
}

type act struct {
	what string
	do   func(*stage)
}

func three() *fixture.SetFixture { return fixture.Set("db") }

func scaleTo(n int32) act {
	return act{fmt.Sprintf("the user sets replicas to %d", n), func(s *stage) { s.edit(func(spec *v1alpha1.StatefulClusterSpec) { spec.Replicas = &n }) }}
}

func roll(image string) act {
	return act{"the user sets image " + image, func(s *stage) {
		s.edit(func(spec *v1alpha1.StatefulClusterSpec) { spec.Template.Spec.Containers[0].Image = image })
	}}
}

func command(word string) act {
	return act{"the user sets command " + word, func(s *stage) {
		s.edit(func(spec *v1alpha1.StatefulClusterSpec) { spec.Template.Spec.Containers[0].Command = []string{word} })
	}}
}

func lose(node string) act {
	return act{node + " is not Ready for 35 seconds", func(s *stage) { kubelet.Turn(s.Cluster, node, false); s.Now = s.Now.Add(35 * time.Second) }}
}

func cordon(node string) act {
	return act{node + " is cordoned", func(s *stage) { kubelet.Cordon(s.Cluster, node, true) }}
}

func uncordon(node string) act {
	return act{node + " is uncordoned", func(s *stage) { kubelet.Cordon(s.Cluster, node, false) }}
}

func returns(node string) act {
	return act{node + " returns", func(s *stage) { kubelet.Turn(s.Cluster, node, true) }}
}

// onOne applies do to the first member by name.
func onOne(what string, do func(*stage, *corev1.Pod)) act {
	return act{what, func(s *stage) {
		if members := s.members(); len(members) > 0 {
			do(s, members[0])
		}
	}}
}

func deleteOne() act {
	return onOne("a user deletes the first pod", func(s *stage, p *corev1.Pod) { s.Delete(p) })
}

func evictOne() act {
	return onOne("a drain evicts the first pod", func(s *stage, p *corev1.Pod) { kubelet.Disrupt(s.Cluster, p, "EvictionByEvictionAPI") })
}

// takeByTaint evicts the pods of a lost node, as the control plane does after a while.
func takeByTaint(node string) act {
	return act{"the control plane evicts the pods of " + node, func(s *stage) {
		for _, p := range kubelet.Pods(s.Cluster) {
			if p.Spec.NodeName == node {
				kubelet.Disrupt(s.Cluster, p, "DeletionByTaintManager")
			}
		}
	}}
}

var stories = []story{
	{"create", three, nil},
	{"scale", three, []act{scaleTo(5), scaleTo(3)}},
	{"rollout-in-place", three, []act{roll("two")}},
	{"rollout-by-recreating", three, []act{command("serve")}},
	{"rollout-by-surge", func() *fixture.SetFixture { return three().Surge(1) }, []act{roll("two")}},
	{"node-lost-and-back", three, []act{lose("n1"), returns("n1")}},
	{"bad-image-then-good", three, []act{roll(kubelet.BadImage), roll("two")}},
	{"eviction-kept", func() *fixture.SetFixture { return three().KeepsEvicted() }, []act{evictOne()}},
	{"eviction-replaced", three, []act{evictOne()}},
	{"drain-replace-first", func() *fixture.SetFixture { return three().ReplacesFirst() }, []act{cordon("n1"), uncordon("n1"), cordon("n2"), roll("two"), uncordon("n2")}},
	{"drain-without-room", func() *fixture.SetFixture { return three().ReplacesFirst() }, []act{
		{"all nodes are cordoned for ten minutes", func(s *stage) {
			for _, n := range []string{"n1", "n2", "n3", "n4"} {
				kubelet.Cordon(s.Cluster, n, true)
			}
			s.settle(2 * time.Second)
			s.Now = s.Now.Add(10 * time.Minute)
		}}, {"all nodes are uncordoned", func(s *stage) {
			for _, n := range []string{"n1", "n2", "n3", "n4"} {
				kubelet.Cordon(s.Cluster, n, false)
			}
		}}}},
	{"ordered-ready", func() *fixture.SetFixture { return three().OrderedReady() }, []act{scaleTo(4), deleteOne(), scaleTo(2)}},
	{"two-of-four-nodes-lost", func() *fixture.SetFixture { return three().Replicas(8).MaxConcurrent("25%") }, []act{
		{"n1 and n2 are not Ready for 35 seconds", func(s *stage) {
			kubelet.Turn(s.Cluster, "n1", false)
			lose("n2").do(s)
		}}, returns("n1"), returns("n2")}},
	{"long-dead-node-and-a-rollout", three, []act{lose("n1"), takeByTaint("n1"), command("serve"), deleteOne(), returns("n1")}},
	{"image-there-and-back", three, []act{roll("two"), roll("one"), roll("three"), roll("one")}},
	{"drains-and-losses", func() *fixture.SetFixture { return three().Replicas(5).ReplacesFirst() }, []act{
		cordon("n1"), lose("n1"), cordon("n2"), deleteOne(), command("serve"), uncordon("n2"), evictOne(), scaleTo(3), returns("n1"), cordon("n3"), roll("two"), uncordon("n1"), scaleTo(4)}},
	{"drains-and-a-surge", func() *fixture.SetFixture { return three().Replicas(4).Surge(2).ReplacesFirst() }, []act{
		roll("two"), cordon("n1"), roll("three"), cordon("n2"), uncordon("n1"), deleteOne(), lose("n2"), takeByTaint("n2"), command("serve"), returns("n2")}},
	{"everything-at-once", func() *fixture.SetFixture { return three().Replicas(4).KeepsEvicted() }, []act{
		roll("two"), evictOne(), scaleTo(6), deleteOne(), command("serve"), lose("n2"), scaleTo(3), takeByTaint("n2"), roll("three"), returns("n2"), evictOne()}},
}

// goldenStories is the number of stories with golden files.
const goldenStories = 11

func TestStories(t *testing.T) {
	var names []string
	for _, story := range stories[:goldenStories] {
		names = append(names, story.name)
		t.Run(story.name, func(t *testing.T) {
			s := newStage(t, story.set())
			s.play(story, func() { s.settle(2 * time.Second) })
			s.settle(15 * time.Minute)
			s.ends()
			s.Check(s.t)
			simtest.CheckStory(t, story.name, strings.Split(s.readable(), "\n"))
		})
	}
	simtest.CheckNoOtherStories(t, names)
}

// play performs the acts of a story and calls between after each.
func (s *stage) play(story story, between func()) {
	s.Say("# the user creates a set of %d", *s.set().Spec.Replicas)
	between()
	s.tell()
	for _, a := range story.acts {
		s.Say("# %s", a.what)
		a.do(s)
		between()
		s.tell()
	}
}

// readable replaces the names of revisions, which are hashes, by their numbers.
func (s *stage) readable() string {
	var revisions appsv1.ControllerRevisionList
	if err := s.List(context.Background(), &revisions); err != nil {
		s.t.Fatal(err)
	}
	text := strings.Join(s.Story, "\n") + "\n"
	for _, r := range revisions.Items {
		text = strings.ReplaceAll(text, r.Name, fmt.Sprintf("revision-%d", r.Revision))
	}
	return text
}

// SC-30 SC-31 The same stories in random order: a cache that lags, operators that restart, shuffled
// chains, users who do not wait.
func TestStoriesInRandomOrder(t *testing.T) {
	for _, story := range stories {
		t.Run(story.name, func(t *testing.T) {
			t.Parallel()
			first, count := simtest.Orders(orders)
			for seed := first; seed < first+count; seed++ {
				chance := rand.New(rand.NewSource(int64(seed)))
				s := newStage(t, story.set())
				s.Say("# seed %d", seed)
				s.Shuffle = chance
				s.play(story, func() { s.scramble(chance, chance.Intn(60)) })
				s.settle(15 * time.Minute)
				s.ends()
				s.Check(s.t)
			}
		})
	}
}

// SC-35 Others act between the operator's reads and its writes.
func TestStoriesWithRaces(t *testing.T) {
	for _, story := range stories {
		t.Run(story.name, func(t *testing.T) {
			t.Parallel()
			first, count := simtest.Orders(orders)
			for seed := first; seed < first+count; seed++ {
				chance := rand.New(rand.NewSource(int64(seed)))
				s := newStage(t, story.set())
				s.Say("# seed %d, with races", seed)
				s.invariants.lenient = true
				s.race = func() {
					if moves := kubelet.Moves(s.Cluster); len(moves) > 0 && chance.Intn(2) == 0 {
						moves[chance.Intn(len(moves))]()
					}
					if members := s.members(); len(members) > 0 && chance.Intn(20) == 0 {
						victim := members[chance.Intn(len(members))]
						s.Say("! a user deletes %s", victim.Name)
						s.Delete(victim)
					}
				}
				s.play(story, func() { s.scramble(chance, chance.Intn(60)) })
				s.race = nil
				s.settle(15 * time.Minute)
				s.ends()
				s.Check(s.t)
			}
		})
	}
}

// failures are the ways in which one write can fail.
var failures = []simulation.Failure{
	{Name: "is refused", Before: apierrors.NewForbidden(schema.GroupResource{Resource: "things"}, "", errors.New("quota"))},
	simulation.Fails, simulation.NoAnswer, simulation.DiesBefore, simulation.DiesAfter,
}

// SC-18 SC-30 SC-42 Every single write of every story fails once; the result is the same.
func TestStoriesWithEachWriteFailing(t *testing.T) {
	for i, story := range stories {
		t.Run(story.name, func(t *testing.T) {
			t.Parallel()
			every := 1
			if i >= goldenStories && !simtest.EveryWrite() {
				every = 6 // the long ones
			}
			for n, writes := 1, 1; n <= writes; n += every {
				for way := range failures {
					if !simtest.EveryWrite() && (n+i)%len(failures) != way {
						continue
					}
					writes = playWithFailure(t, story, n, way)
				}
			}
		})
	}
}

// playWithFailure makes the nth write fail in that way, and returns the number of writes.
func playWithFailure(t *testing.T, story story, n, way int) int {
	t.Helper()
	s := newStage(t, story.set())
	s.Interfere = failures[way].At(s.Cluster, n)
	s.play(story, func() { s.settle(2 * time.Second) })
	s.settle(15 * time.Minute)
	s.ends()
	s.Check(s.t)
	return s.Writes()
}

// Carrying out a plan twice, as after a crash between the writes and their responses, has the same
// result as once.
func TestPlansCarriedOutTwice(t *testing.T) {
	for _, story := range stories {
		t.Run(story.name, func(t *testing.T) {
			s := newStage(t, story.set())
			again := false
			s.Interfere = func(int, action.Action) (before, after error) { again = true; return nil, nil }
			s.play(story, func() {
				s.settle(2 * time.Second)
				if w := s.observe(s.set(), engine.View{Reader: s.Cluster, Live: true}); again {
					p := fixture.PlanOf(w)
					s.invariants.seen = w
					s.Apply(p.Steps)
					pods := len(kubelet.Pods(s.Cluster))
					s.Apply(p.Steps)
					if now := len(kubelet.Pods(s.Cluster)); now > pods {
						s.Breaks("%d pods after the second execution of the plan, %d after the first", now, pods)
					}
				}
			})
			s.settle(15 * time.Minute)
			s.ends()
			s.Check(s.t)
		})
	}
}
