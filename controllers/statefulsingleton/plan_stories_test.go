package statefulsingleton

import (
	"fmt"
	"math/rand"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simtest"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation/kubelet"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/rules"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/simulate"
)

// orders is the default number of random orders of each story.
const orders = 8

// story is a sequence of acts.
type story struct {
	name string
	acts []act
}

type act struct {
	what string
	do   func(*stage)
}

// until returns an act that continues with moves until a condition is true.
func (a act) until(is func(*stage) bool) act {
	return act{a.what, func(s *stage) {
		a.do(s)
		for range 1000 {
			if is(s) {
				return
			}
			if !s.react() && !s.moveOne() {
				s.tick(time.Second)
			}
			s.tick(100 * time.Millisecond)
			s.Check(s.t)
		}
	}}
}

// and returns an act that does both at once.
func (a act) and(b act) act {
	return act{a.what + ", and " + b.what, func(s *stage) {
		a.do(s)
		b.do(s)
	}}
}

// meanwhile returns an act after which all but the operators act.
func (a act) meanwhile() act {
	return act{a.what + ", while no operator runs", func(s *stage) {
		a.do(s)
		for s.moveOne() {
			s.Check(s.t)
			s.tick(100 * time.Millisecond)
		}
	}}
}

// granted reports whether a pod has a grant, or had enough time to get one: pods that were
// created without the gate prevent it.
func granted(s *stage) bool {
	return s.Now.Sub(s.madeAt) > 10*time.Second || slices.ContainsFunc(s.Pods(), func(p *corev1.Pod) bool { return (&facts.Member{Pod: p}).Granted() })
}

// superseded reports whether a pod is terminating while another one waits.
func superseded(s *stage) bool {
	pods := s.Pods()
	return len(pods) > 1 && slices.ContainsFunc(pods, podstate.Terminating)
}

const (
	rolling  = appsv1.RollingUpdateDeploymentStrategyType
	recreate = appsv1.RecreateDeploymentStrategyType
)

// makeObject creates the object. In random orders its mode is random.
func makeObject(change ...func(*v1.StatefulSingleton)) act {
	return act{"the user creates the StatefulSingleton", func(s *stage) {
		object := fixture.Singleton("db")
		if s.chance != nil && s.chance.Intn(2) == 0 {
			object.Mode(v1.GateInit)
		}
		for _, c := range change {
			c(&object.StatefulSingleton)
		}
		s.make(object)
	}}
}

func makeDeployment(replicas int32, strategy appsv1.DeploymentStrategyType, tolerates ...corev1.Toleration) act {
	return act{fmt.Sprintf("the user creates a Deployment with replicas %d, %s", replicas, strategy), func(s *stage) { s.deployment(replicas, strategy, tolerates...) }}
}

// stays is the toleration that keeps the control plane from deleting a pod.
var stays = corev1.Toleration{Key: corev1.TaintNodeOutOfService}

func makeStatefulSet(replicas int32, strategy appsv1.StatefulSetUpdateStrategyType) act {
	return act{fmt.Sprintf("the user creates a StatefulSet with replicas %d, %s", replicas, strategy), func(s *stage) { s.statefulSet(replicas, strategy) }}
}

func rollTo(image string) act {
	return act{"the user sets image " + image, func(s *stage) {
		for _, d := range every[appsv1.Deployment](s) {
			edit(s, d, func(d *appsv1.Deployment) { d.Spec.Template = template(image) })
		}
		for _, set := range every[appsv1.StatefulSet](s) {
			edit(s, set, func(set *appsv1.StatefulSet) { set.Spec.Template = template(image) })
		}
	}}
}

func scaleTo(replicas int32) act {
	return act{fmt.Sprintf("the user sets replicas %d", replicas), func(s *stage) {
		for _, d := range every[appsv1.Deployment](s) {
			edit(s, d, func(d *appsv1.Deployment) {
				d.Spec.Replicas = &replicas
				allowStandbys(d)
			})
		}
	}}
}

// onOne applies a function to the pod that runs its program or will restart it, or else to
// the first pod.
func onOne(what string, do func(*stage, *corev1.Pod)) act {
	return act{what, func(s *stage) {
		for _, uid := range s.UIDs() {
			b := s.Bodies[uid]
			if now := s.Current(b); now != nil && !podstate.Terminating(now) && (b.Main == simulate.AtWork || b.Main == simulate.Crashed) {
				do(s, now)
				return
			}
		}
		if pods := s.Pods(); len(pods) > 0 {
			do(s, pods[0])
		}
	}}
}

var (
	crashOne = act{"the program crashes", func(s *stage) {
		if running := s.running(); len(running) > 0 && !running[0].Signalled {
			s.Crash(running[0])
		}
	}}
	deleteOne = onOne("a user deletes the running pod", func(s *stage, p *corev1.Pod) { s.Delete(p) })
	forceOne  = onOne("a user force deletes the running pod", func(s *stage, p *corev1.Pod) { s.DeleteNow(p) })
	drainOne  = onOne("a drain evicts the running pod", func(s *stage, p *corev1.Pod) {
		s.Disrupt(p, "EvictionByEvictionAPI")
		s.Delete(p)
	})
	evictOne = onOne("the kubelet evicts the running pod", func(s *stage, p *corev1.Pod) {
		if b := s.Bodies[p.UID]; b != nil {
			b.Evicted = true
		}
	})
	collectCrashed = onOne("the program crashes, its kubelet reports it, and pod garbage collection deletes the pod", func(s *stage, p *corev1.Pod) {
		if b := s.Bodies[p.UID]; b != nil && b.Main == simulate.AtWork {
			s.Crash(b)
			edit(s, p, func(p *corev1.Pod) { p.Status = b.Status(s.Now, p) })
		}
		s.Collect(s.PodOf(p.UID))
	})
	refuseOne = onOne("the kubelet is restarted, and rejects the running pod", func(s *stage, p *corev1.Pod) {
		// A pod without a gate leaves no trace before it has our finalizer.
		if b := s.Bodies[p.UID]; b != nil && simulate.CameHeld(p) {
			b.Refused = true
		}
	})
	// relabelOne makes a change that is possible without a guard. The pod's owner then
	// releases the pod.
	relabelOne = onOne("a user changes the labels of the running pod", func(s *stage, p *corev1.Pod) {
		edit(s, p, func(p *corev1.Pod) { p.Labels["app"], p.OwnerReferences = "other", nil })
	})
	collectOne = onOne("pod garbage collection deletes the running pod", func(s *stage, p *corev1.Pod) { s.Collect(p) })
)

// onItsNode applies a function to a faulty machine, or to the machine of the running pod if
// all are healthy.
func onItsNode(what string, do func(*stage, *simulate.Machine)) act {
	return act{what, func(s *stage) {
		for _, m := range s.Machines {
			if !m.On || !m.Reachable || !m.MissingSince.IsZero() || s.OutOfService(m.Name) {
				do(s, m)
				return
			}
		}
		name := "n1"
		if running := s.running(); len(running) > 0 {
			name = running[0].Pod.Spec.NodeName
		}
		do(s, s.Machine(name))
	}}
}

var (
	cutOff = onItsNode("its node is disconnected", func(s *stage, m *simulate.Machine) { m.Reachable = false })
	heal   = onItsNode("the node is reconnected", func(s *stage, m *simulate.Machine) { m.Reachable = true })
	// takeByTaint deletes pods as the control plane does if a Node is not Ready for five
	// minutes.
	takeByTaint = onItsNode("the control plane deletes the pods of the node", func(s *stage, m *simulate.Machine) {
		for _, p := range s.Pods() {
			if p.Spec.NodeName == m.Name {
				s.Disrupt(p, "DeletionByTaintManager")
				s.Delete(p)
			}
		}
	})
	forceAll = onItsNode("a user force deletes the pods of the node", func(s *stage, m *simulate.Machine) {
		for _, p := range s.Pods() {
			if p.Spec.NodeName == m.Name {
				s.DeleteNow(p)
			}
		}
	})
	powerOff  = onItsNode("its machine loses power", func(s *stage, m *simulate.Machine) { s.SwitchOff(m) })
	taintNode = onItsNode("an administrator adds the out-of-service taint", func(s *stage, m *simulate.Machine) {
		edit(s, s.Node(m.Name), func(n *corev1.Node) {
			n.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeOutOfService, Effect: corev1.TaintEffectNoExecute}}
		})
	})
	bootNode = onItsNode("the machine is switched on, and an administrator removes the taint", func(s *stage, m *simulate.Machine) {
		if !m.On {
			s.Boot(m)
		}
		if s.Node(m.Name) == nil {
			s.Put(newNode(m.Name))
		}
		m.MissingSince = time.Time{}
		edit(s, s.Node(m.Name), func(n *corev1.Node) { n.Spec.Taints = nil })
	})
	deleteNode = onItsNode("the Node is deleted", func(s *stage, m *simulate.Machine) {
		s.Remove(s.Node(m.Name))
		m.MissingSince = s.Now
	})
	restoreNode = onItsNode("the Node is registered again, because its machine never stopped", func(s *stage, m *simulate.Machine) {
		s.Put(newNode(m.Name))
		m.MissingSince = time.Time{}
	})
	deleteObject = act{"the user deletes the StatefulSingleton", func(s *stage) {
		if object := s.Object(); object != nil {
			s.Delete(object)
		}
	}}
	forceObject = act{"a user removes its finalizer", func(s *stage) {
		if object := s.Object(); object != nil && object.DeletionTimestamp != nil {
			s.Remove(object)
		}
	}}
	releaseNow = act{"the user sets annotation release-now", func(s *stage) {
		if object := s.Object(); object != nil {
			edit(s, object, func(o *v1.StatefulSingleton) { o.Annotations = map[string]string{v1.AnnotationReleaseNow: v1.True} })
		}
	}}
	orderRelease = act{"the manifest sets release with id a", func(s *stage) {
		if object := s.Object(); object != nil {
			edit(s, object, func(o *v1.StatefulSingleton) {
				if o.Spec.Release == nil {
					o.Spec.Release = &v1.ReleaseOrder{ID: "a"}
					o.Generation++
				}
			})
		}
	}}
	makeWithRelease = makeObject(func(s *v1.StatefulSingleton) { s.Spec.Release = &v1.ReleaseOrder{ID: "a"} })
	remakeObject    = act{"the user recreates the StatefulSingleton", func(s *stage) {
		if s.Object() == nil {
			s.make(fixture.Singleton("db"))
		}
	}}
)

// ReplacesFirst creates an object with onEviction ReplaceFirst.
var replacesFirst = act{"the user creates the StatefulSingleton with onEviction ReplaceFirst", func(s *stage) {
	makeObject(func(s *v1.StatefulSingleton) { s.Spec.OnEviction = v1.EvictionReplacesFirst }).do(s)
}}

var (
	drain = onItsNode("an administrator drains its node", func(s *stage, m *simulate.Machine) {
		m.Drained = true
		kubelet.Cordon(s.Cluster, m.Name, true)
	})
	cordonAll = act{"an administrator cordons all nodes", func(s *stage) {
		for _, m := range s.Machines {
			kubelet.Cordon(s.Cluster, m.Name, true)
		}
	}}
	uncordon = act{"an administrator uncordons all nodes", func(s *stage) {
		for _, m := range s.Machines {
			m.Drained = false
			kubelet.Cordon(s.Cluster, m.Name, false)
		}
	}}
)

// dieBetween kills the operator that makes the next grant, after the first of its two
// writes.
var dieBetween = act{"the operator will crash between the writes of its next grant", func(s *stage) {
	others, died := s.failing, false
	s.failing = func(n int, a action.Action) (before, after error) {
		switch {
		case !died && a.Reason == rules.ReasonGrant:
			died = true
			return simulation.ErrKilled, nil
		case others != nil:
			return others(n, a)
		}
		return nil, nil
	}
}}

// loseStatuses makes the writes of statuses fail until the object is deleted. Grants, which are
// written there as well, succeed.
var loseStatuses = act{"the API server fails to write its status until it is deleted", func(s *stage) {
	others := s.failing
	s.failing = func(n int, a action.Action) (before, after error) {
		object := s.Object()
		switch {
		case a.Reason == "Observed" && object != nil && object.DeletionTimestamp == nil:
			return simulation.Fails.Before, nil
		case others != nil:
			return others(n, a)
		}
		return nil, nil
	}
}}

func passes(d time.Duration) act {
	return act{fmt.Sprintf("%s pass", d), func(s *stage) { s.tick(d) }}
}

var stories = []story{
	{"first-start", []act{makeObject(), makeDeployment(1, rolling)}},
	{"rolling-update", []act{makeObject(), makeDeployment(1, rolling), rollTo("two")}},
	{"recreate", []act{makeObject(), makeDeployment(1, recreate), rollTo("two")}},
	{"statefulset", []act{makeObject(), makeStatefulSet(1, appsv1.RollingUpdateStatefulSetStrategyType), rollTo("two")}},
	{"crash-and-crash-loop", []act{makeObject(), makeDeployment(2, rolling), crashOne, crashOne, crashOne}},
	{"force-delete", []act{makeObject(), makeDeployment(2, rolling), forceOne}},
	{"evicted-and-collected", []act{makeObject(), makeDeployment(2, rolling), drainOne, evictOne, collectOne}},
	{"refused-by-its-kubelet", []act{makeObject(), makeDeployment(2, rolling), refuseOne}},
	{"relabelled", []act{makeObject(), makeDeployment(1, rolling), relabelOne, deleteOne}},
	{"operator-dies-between-two-writes", []act{makeObject(), dieBetween, makeDeployment(2, rolling), dieBetween, deleteOne}},
	{"node-out-of-service", []act{makeObject(), makeDeployment(2, rolling), powerOff, takeByTaint, taintNode, bootNode}},
	{"node-out-of-service-tolerated", []act{makeObject(), makeDeployment(2, rolling, stays), powerOff, taintNode}},
	{"machine-that-starts-again", []act{makeObject(), makeDeployment(2, rolling, stays), powerOff, taintNode, passes(time.Second), passes(time.Second), bootNode}},
	{"node-out-of-service-by-mistake", []act{makeObject(), makeDeployment(2, rolling, stays), taintNode, passes(time.Second), bootNode}},
	{"statefulset-on-a-dead-machine", []act{makeObject(), makeStatefulSet(1, appsv1.RollingUpdateStatefulSetStrategyType), powerOff, takeByTaint, taintNode}},
	{"node-deleted", []act{makeObject(), makeDeployment(2, rolling), powerOff, deleteNode, passes(41 * time.Second), passes(20 * time.Second)}},
	{"node-deleted-by-mistake", []act{makeObject(), makeDeployment(2, rolling), deleteNode, passes(41 * time.Second), restoreNode}},
	{"node-lost-and-back", []act{makeObject(), makeDeployment(2, rolling), cutOff, takeByTaint, heal}},
	{"standbys", []act{makeObject(), makeDeployment(1, rolling), scaleTo(3), deleteOne, rollTo("two"), scaleTo(1)}},
	{"pod-before-the-object", []act{makeDeployment(1, rolling), makeObject(), rollTo("two")}},
	{"deleted-while-pods-wait", []act{makeObject(), makeDeployment(3, rolling), deleteObject, passes(time.Second), deleteOne, deleteOne, deleteOne, scaleTo(1)}},
	{"W14-deleted-in-a-rollout", []act{makeObject(), makeDeployment(1, rolling), rollTo("two").until(superseded).and(deleteObject)}},
	{"W14-deleted-as-the-pod-ends", []act{makeObject(), makeDeployment(1, rolling), deleteOne.and(deleteObject)}},
	{"release-now", []act{makeObject(), makeDeployment(3, rolling), deleteObject, releaseNow}},
	{"release-by-the-spec", []act{makeObject(), makeDeployment(3, rolling), orderRelease, orderRelease, deleteObject}},
	{"made-with-a-release", []act{makeWithRelease, makeDeployment(3, rolling), orderRelease, deleteObject, passes(time.Second), deleteOne, deleteOne, deleteOne}},
	{"made-with-a-release-and-deleted", []act{makeWithRelease.and(makeDeployment(2, rolling)).and(loseStatuses).meanwhile().until(granted).and(deleteObject), deleteOne, deleteOne}},
	{"object-gone-at-once", []act{makeObject(), makeDeployment(3, rolling), deleteObject, forceObject, deleteOne, deleteOne}},
	{"deleted-and-made-again", []act{makeObject(), makeDeployment(1, rolling), deleteObject, remakeObject, rollTo("two")}},
	{"timeout", []act{makeDeployment(2, rolling), makeObject(func(s *v1.StatefulSingleton) { s.Spec.OnTimeout = v1.TimeoutDeletesOld }),
		deleteOne, passes(301 * time.Second), deleteOne}},
	{"whole-pods-wait", []act{makeObject(func(s *v1.StatefulSingleton) { s.Spec.GateMode = v1.GateInit }), makeDeployment(2, rolling), crashOne, rollTo("two")}},
	{"bad-image-and-a-timeout", []act{makeObject(func(s *v1.StatefulSingleton) { s.Spec.OnTimeout = v1.TimeoutDeletesOld }), makeDeployment(2, rolling),
		rollTo(kubelet.BadImage), passes(301 * time.Second), rollTo("one")}},
	{"bad-image-and-back", []act{makeObject(), makeDeployment(1, rolling), rollTo(kubelet.BadImage), rollTo("one")}},
	{"drain-without-a-gap", []act{replacesFirst, makeDeployment(1, rolling), drain, uncordon}},
	{"drain-that-is-taken-back", []act{replacesFirst, makeDeployment(1, rolling), cordonAll, uncordon}},
	{"drain-with-a-standby", []act{replacesFirst, makeDeployment(2, rolling), drain, uncordon}},
	{"drain-in-a-bad-rollout", []act{replacesFirst, makeDeployment(1, rolling), rollTo(kubelet.BadImage), drain, uncordon, rollTo("one")}},
	{"drain-and-a-rollout", []act{replacesFirst, makeDeployment(1, rolling), cordonAll, rollTo("two"), rollTo("one"), uncordon}},
	{"drain-and-no-pods-wanted", []act{replacesFirst, makeDeployment(1, rolling), cordonAll, scaleTo(0), passes(10 * time.Second), uncordon, scaleTo(1)}},
	{"drain-and-the-object-goes", []act{replacesFirst, makeDeployment(1, rolling), cordonAll, deleteObject, uncordon}},
	{"drain-of-recreate", []act{replacesFirst, makeDeployment(1, recreate), drain, uncordon}},
	{"ended-by-others", []act{makeObject(), makeDeployment(3, rolling), collectCrashed, collectOne, deleteOne, collectCrashed, evictOne, crashOne, collectOne,
		collectCrashed, refuseOne, collectOne, crashOne, refuseOne, forceOne}},
	{"drains-at-once", []act{replacesFirst, makeDeployment(1, rolling), drain, rollTo("two"), uncordon, drain, crashOne, deleteOne, cordonAll, scaleTo(0), uncordon, scaleTo(2), drain,
		forceOne, cutOff, takeByTaint, heal, cordonAll, dieBetween, rollTo("three"), uncordon, drain, powerOff, taintNode, bootNode, evictOne, uncordon, drain, deleteObject, remakeObject,
		cordonAll, deleteObject, releaseNow, uncordon}},
	{"everything-at-once", []act{makeDeployment(3, rolling), makeObject(), rollTo("two"), deleteOne, crashOne, scaleTo(4), forceOne, cutOff, relabelOne, dieBetween, rollTo("three"), evictOne,
		takeByTaint, heal, collectOne, scaleTo(2), powerOff, taintNode, rollTo("one"), bootNode, drainOne, deleteNode, forceOne, restoreNode, deleteObject, deleteOne,
		remakeObject, rollTo("two"), deleteOne, scaleTo(1), forceOne}},
	{"statefulset-at-once", []act{makeObject(), makeStatefulSet(2, appsv1.OnDeleteStatefulSetStrategyType), rollTo("two"), deleteOne, cutOff, forceAll, heal, crashOne,
		forceOne, powerOff, taintNode, bootNode, collectOne, drainOne, deleteNode, takeByTaint, restoreNode, evictOne, refuseOne, deleteOne}},
}

// goldenStories is the number of stories with a golden file.
const goldenStories = 41

func TestStories(t *testing.T) {
	var names []string
	for i, story := range stories {
		if i < goldenStories {
			names = append(names, story.name)
		}
		t.Run(story.name, func(t *testing.T) {
			s := newStage(t, 1)
			s.play(story, func() { s.settle(4 * time.Second) })
			s.comeToRest()
			if i < goldenStories {
				simtest.CheckStory(t, story.name, s.Story)
			}
		})
	}
	simtest.CheckNoOtherStories(t, names)
}

// play performs one act after the other, and calls between after each.
func (s *stage) play(story story, between func()) {
	for _, a := range story.acts {
		s.Say("# %s", a.what)
		a.do(s)
		s.Check(s.t)
		between()
		s.tell()
	}
}

// TestStoriesInRandomOrder plays the same stories in random order: with lagging caches,
// with two operators that may pause between any two reads or before a write for any time,
// with restarts, with failing writes, and with users who do not wait. No lease keeps the
// two operators apart.
func TestStoriesInRandomOrder(t *testing.T) {
	for _, story := range stories {
		t.Run(story.name, func(t *testing.T) {
			t.Parallel()
			first, count := simtest.Orders(orders)
			for seed := first; seed < first+count; seed++ {
				s := newStage(t, 2)
				s.chance = rand.New(rand.NewSource(int64(seed)))
				s.Say("# seed %d", seed)
				s.Shuffle = s.chance
				if seed%2 == 1 {
					s.failNth(1+s.chance.Intn(25), s.chance.Intn(len(failures)))
				}
				s.play(story, func() { s.scramble(s.chance.Intn(150)) })
				s.comeToRest()
			}
		})
	}
}

// TestStoriesWithEachWriteComingAgain checks that the final state is the same if every
// earlier write is repeated between any two acts. A paused process or the network could do
// that.
func TestStoriesWithEachWriteComingAgain(t *testing.T) {
	for _, story := range stories[:goldenStories] {
		t.Run(story.name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, 1)
			o := s.operators[0]
			s.play(story, func() {
				s.settle(4 * time.Second)
				for _, p := range slices.Clone(o.Plans) {
					s.repeat(o, p)
					s.settle(4 * time.Second)
				}
			})
			s.comeToRest()
		})
	}
}

// repeat repeats the writes of an old plan one by one.
func (s *stage) repeat(o *simulate.Operator, old action.Steps) {
	for _, step := range old {
		for _, chain := range step {
			for _, a := range chain {
				s.Say("# again: %s", a)
				s.Acting = o
				if _, alive := s.Apply(action.Steps{{{a}}}); !alive {
					o.Restart()
				}
				s.Check(s.t)
			}
		}
	}
}

// TestStoriesWithEachWriteFailing checks that the final state is the same if a write fails.
// It plays each story several times, each time with one failing write.
func TestStoriesWithEachWriteFailing(t *testing.T) {
	for i, story := range stories[:goldenStories] {
		t.Run(story.name, func(t *testing.T) {
			t.Parallel()
			for n, writes := 1, 1; n <= writes; n++ {
				for way := range failures {
					if !simtest.EveryWrite() && (n+i)%(2*len(failures)) != way {
						continue
					}
					s := newStage(t, 1)
					s.failNth(n, way)
					s.play(story, func() { s.settle(4 * time.Second) })
					s.comeToRest()
					writes = s.Writes()
				}
			}
		})
	}
}
