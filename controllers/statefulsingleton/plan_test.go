package statefulsingleton

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/nodestate"
	"github.com/stateful-operator/stateful-operator/gate/script"
)

type row struct {
	name string
	w    *world
	want []string // the plan, one chain per line; nil for no action
}

const (
	grantB   = "patch status of statefulsingleton db: Holder, b, epoch 2 > patch pod b: Grant, epoch 2"
	grantA   = "patch status of statefulsingleton db: Holder, a, epoch 1 > patch pod a: Grant, epoch 1"
	releaseA = "patch pod a: Release"
	askA     = "delete pod a: Rejected, its kubelet refused it and does not say whether it runs"
)

func held() *singletonFixture { return singleton("db").held("a", 1) }

var (
	unresponsive = nodestate.Facts{}
	outOfIt      = nodestate.Facts{OutOfService: true}
	goneSince    = func(d time.Duration) nodestate.Facts {
		return nodestate.Facts{Missing: true, MissingSince: noon.Add(-d)}
	}
)

// check runs the rows.
func check(t *testing.T, rows []row) {
	t.Helper()
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			p := decide(derive(r.w))
			if got := p.Steps.Strings(); !slices.Equal(got, r.want) {
				t.Errorf("the plan is\n%q, by rule %q; want\n%q", got, p.Rule, r.want)
			}
		})
	}
}

func TestWhoMayStart(t *testing.T) {
	check(t, []row{
		{"the first pod starts", worldOf(singleton("db"), waiting("a")), []string{grantA}},
		{"a lone pod starts before its gate runs", worldOf(singleton("db"), waiting("a").coming()), []string{grantA}},
		{"unless its gate is the script, which could fail", worldOf(singleton("db"), waiting("a").coming().scripted()), nil},
		{"which is seen to run for a moment even then", worldOf(singleton("db"), waiting("a").scripted().heldFor(time.Second)), nil},
		{"it starts as soon as that lasts", worldOf(singleton("db"), waiting("a").scripted().heldFor(restsAfter)), []string{grantA}},
		{"so does the one of several", worldOf(singleton("db"), waiting("a").scripted().heldFor(time.Second), waiting("b").scripted().heldFor(restsAfter)),
			[]string{"patch status of statefulsingleton db: Holder, b, epoch 1 > patch pod b: Grant, epoch 1"}},
		{"no pod starts beside the holder", worldOf(held(), granted("a", 1), waiting("b")), nil},
		{"no pod starts while the holder is terminating", worldOf(held(), granted("a", 1).deleted(), waiting("b")), nil},
		{"the next starts when the holder is seen stopped", worldOf(held(), granted("a", 1).deleted().ended(), waiting("b")), []string{releaseA, grantB}},
		{"a holder that ended by itself is replaced", worldOf(held(), granted("a", 1).ended(), waiting("b")), []string{releaseA, grantB}},
		{"the next starts when the holder never ran, and its kubelet knew that it was deleted", worldOf(held(), granted("a", 1).unstarted(2), waiting("b")), []string{releaseA, grantB}},
		{"and not when it said so before it was deleted", worldOf(held(), granted("a", 1).unstarted(1), waiting("b")), nil},
		{"nor when Kubernetes does not say what it knew", worldOf(held(), granted("a", 1).unstarted(0), waiting("b")), nil},
		{"nor when Kubernetes counts no generations of pods", worldOf(held(), granted("a", 1).unstarted(0).with(func(p *corev1.Pod) { p.Generation = 0 }), waiting("b")), nil},
		{"nor when it has a sandbox", worldOf(held(), granted("a", 1).unstarted(2).with(func(p *corev1.Pod) {
			p.Status.Conditions[len(p.Status.Conditions)-1].Status = corev1.ConditionTrue
		}), waiting("b")), nil},
		{"the next starts when the holder is gone", worldOf(held(), waiting("b")), []string{grantB}},
		{"S14 a crashed container of a living pod proves nothing", worldOf(held(), granted("a", 1).exited(), waiting("b")), nil},
		{"S14 nor does a crash loop", worldOf(held(), granted("a", 1).stuck("CrashLoopBackOff"), waiting("b")), nil},
		{"a phase without terminated containers proves nothing", worldOf(held(), granted("a", 1).phase(corev1.PodFailed), waiting("b")), nil},
		{"pod garbage collection proves nothing", worldOf(held(), granted("a", 1).collected(), waiting("b")), nil},
		{"nor does it for a pod whose kubelet never spoke", worldOf(held(), granted("a", 1).silent().collected(), waiting("b")), nil},
		{"a granted pod that ended without a word may run; its kubelet is asked", worldOf(held(), granted("a", 1).silent().phase(corev1.PodFailed), waiting("b")), []string{askA}},
		{"and once more is enough", worldOf(held(), granted("a", 1).silent().phase(corev1.PodFailed).deleted(), waiting("b")), nil},
		{"containers seen terminated before another client set the phase prove nothing", worldOf(held(), granted("a", 1).exited().phase(corev1.PodFailed).deleted(), waiting("b")), nil},
		{"a named pod that its kubelet refused gets no grant", worldOf(held(), waiting("a").silent().phase(corev1.PodFailed), waiting("b")), []string{grantB}},
		{"a pod made from another's text waits like any, whatever it carries", worldOf(singleton("db"), waiting("a").protect().with(func(p *corev1.Pod) {
			p.Annotations = map[string]string{v1.AnnotationGrant: "uid-of-x 9"}
		})), []string{grantA}},
		{"S17 a pod with a grant counts although another holds it now", worldOf(singleton("db").held("x", 5), granted("a", 1), waiting("b")),
			[]string{"patch status of statefulsingleton db: Adopt, a, epoch 5"}},
		{"a pod that lost its annotation counts by its finalizer", worldOf(singleton("db").held("x", 5), waiting("a").protect(), waiting("b")), nil},
		{"epochs go on from the highest grant that is seen", worldOf(singleton("db"), granted("a", 7).ended(), waiting("b")),
			[]string{releaseA, "patch status of statefulsingleton db: Holder, b, epoch 8 > patch pod b: Grant, epoch 8"}},
		{"a grant of another pod's UID is none", worldOf(singleton("db"), waiting("a").with(func(p *corev1.Pod) {
			p.Annotations = map[string]string{v1.AnnotationGrant: "uid-of-b 9"}
		})), []string{grantA}},
	})
}

func TestUnmanagedPods(t *testing.T) {
	check(t, []row{
		{"S16 a pod without the gate blocks, and is protected", worldOf(singleton("db"), ungated("a"), waiting("b")), []string{"patch pod a: Protect"}},
		{"S16 also when it is protected already", worldOf(singleton("db"), ungated("a").protect(), waiting("b")), nil},
		{"S16 one that has no Node yet blocks too", worldOf(singleton("db"), ungated("a").unscheduled().protect(), waiting("b")), nil},
		{"one that is being deleted blocks, and gets no finalizer", worldOf(singleton("db"), ungated("a").deleted(), waiting("b")), nil},
		{"one that no Node will get does not block", worldOf(singleton("db"), ungated("a").unscheduled().deleted().protect(), waiting("b")),
			[]string{releaseA, "patch status of statefulsingleton db: Holder, b, epoch 1 > patch pod b: Grant, epoch 1"}},
		{"H3 an ended leftover does not block", worldOf(singleton("db"), ungated("a").ended(), waiting("b")),
			[]string{"patch status of statefulsingleton db: Holder, b, epoch 1 > patch pod b: Grant, epoch 1"}},
		{"a leftover that its kubelet refused does not block", worldOf(singleton("db"), ungated("a").silent().phase(corev1.PodFailed), waiting("b")),
			[]string{"patch status of statefulsingleton db: Holder, b, epoch 1 > patch pod b: Grant, epoch 1"}},
		{"one that was seen alive, and then ended without a word, does", worldOf(singleton("db"), ungated("a").protect().silent().phase(corev1.PodFailed), waiting("b")), []string{askA}},
		{"a static pod blocks, and is left to its kubelet", worldOf(singleton("db"), ungated("a").with(func(p *corev1.Pod) {
			p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"}
		}), waiting("b")), nil},
	})
}

func TestFencing(t *testing.T) {
	const deletesA = "delete pod a: Fenced, its Node n1 is out of service"
	off := goneSince(time.Minute)
	check(t, []row{
		{"S23 a silent Node proves nothing", worldOf(held(), granted("a", 1).deleted().onNode(unresponsive), waiting("b")), nil},
		{"S23 one out of service does, for a pod that is being deleted", worldOf(held(), granted("a", 1).deleted().onNode(outOfIt), waiting("b")), []string{releaseA, grantB}},
		{"S23 one that is not deleted would start again with its machine, and is deleted first", worldOf(held(), granted("a", 1).onNode(outOfIt), waiting("b")), []string{deletesA}},
		{"S23 so is one that is named and has no grant yet", worldOf(held(), waiting("a").onNode(outOfIt), waiting("b")), []string{deletesA}},
		{"S23 and one without the gate", worldOf(held(), ungated("a").protect().onNode(outOfIt), waiting("b")), []string{deletesA}},
		{"S23 the taint says nothing once the Node is Ready again", worldOf(held(), granted("a", 1).deleted().onNode(nodestate.Facts{Ready: true, OutOfService: true}), waiting("b")), nil},
		{"S23 one that pod garbage collection has ended does not start again", worldOf(held(), granted("a", 1).collected().onNode(outOfIt), waiting("b")), []string{releaseA, grantB}},
		{"S23 whatever spec.containers says by now", worldOf(held(), granted("a", 1).bare().deleted().onNode(outOfIt), waiting("b")), []string{releaseA, grantB}},
		{"S23 a Node that is gone proves nothing at first", worldOf(held(), granted("a", 1).deleted().onNode(goneSince(59*time.Second)), waiting("b")), nil},
		{"S23 and does after a minute", worldOf(held(), granted("a", 1).deleted().onNode(off), waiting("b")), []string{releaseA, grantB}},
		{"S23 also for a pod that pod garbage collection took", worldOf(held(), granted("a", 1).deleted().collected().onNode(off), waiting("b")), []string{releaseA, grantB}},
		{"no pod starts on a Node that does not answer", worldOf(singleton("db"), waiting("a").onNode(unresponsive)), nil},
		{"nor on one that is out of service", worldOf(singleton("db"), waiting("a").onNode(nodestate.Facts{Ready: true, OutOfService: true})), nil},
	})
	if p := decide(derive(worldOf(held(), granted("a", 1).onNode(goneSince(40*time.Second)), waiting("b")))); p.Wait != 20*time.Second {
		t.Errorf("a missing Node is looked at again after %s, want 20s", p.Wait)
	}
}

func TestTwoWrites(t *testing.T) {
	named := singleton("db").held("a", 3)
	check(t, []row{
		{"S24 the second write is repeated for the same holder", worldOf(named, waiting("a"), waiting("b").age(60)), []string{"patch pod a: Grant, epoch 3"}},
		{"S24 also when its Node has gone silent meanwhile", worldOf(named, waiting("a").onNode(unresponsive), waiting("b")), []string{"patch pod a: Grant, epoch 3"}},
		{"S24 a named pod that is deleted before its grant is passed over", worldOf(named, waiting("a").deleted(), waiting("b")),
			[]string{"patch status of statefulsingleton db: Holder, b, epoch 4 > patch pod b: Grant, epoch 4"}},
		{"S24 the readiness condition is repaired", worldOf(held(), granted("a", 1).with(func(p *corev1.Pod) { p.Status.Conditions = nil })),
			[]string{"set a condition of pod a: Ready, True"}},
		{"a waiting pod is not Ready", worldOf(held(), granted("a", 1), waiting("b").with(func(p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{{Type: v1.ReadinessGate, Status: corev1.ConditionTrue}}
		})), []string{"set a condition of pod b: Ready, False"}},
		{"a finalizer that a user took off comes back", worldOf(held(), granted("a", 1).unprotected()), []string{"patch pod a: Protect"}},
		{"S25 a new object adopts the pod that runs", worldOf(singleton("db"), granted("a", 4), waiting("b")),
			[]string{"patch status of statefulsingleton db: Adopt, a, epoch 4"}},
	})
	p := decide(derive(worldOf(singleton("db"), waiting("a"))))
	for _, a := range p.Steps[0][0] {
		if a.Verb == "patch" && !a.Unchanged {
			t.Errorf("%s is not bound to the version of the pod that was read", a)
		}
	}
}

func TestOrder(t *testing.T) {
	check(t, []row{
		{"the oldest is next", worldOf(held(), waiting("c").age(1), waiting("b").age(2)), []string{grantB}},
		{"one of the newest revision before an older pod", worldOf(held(), waiting("c").of("d").old().age(9), waiting("b").of("d").age(1)), []string{grantB}},
		{"an older revision when no other could start", worldOf(held(), waiting("c").of("d").stuck("ErrImagePull"), waiting("b").of("d").old()), []string{grantB}},
		{"one whose gate runs before an older pod", worldOf(held(), waiting("c").silent().age(9), waiting("b").age(1)), []string{grantB}},
		{"one that no kubelet has taken yet waits", worldOf(singleton("db"), waiting("a").silent()), nil},
		{"one without a Node waits", worldOf(singleton("db"), waiting("a").unscheduled()), nil},
		{"one whose image cannot be had waits", worldOf(singleton("db"), waiting("a").stuck("ImagePullBackOff")), nil},
		{"one that is starting need not wait for its gate", worldOf(singleton("db"), waiting("a").stuck("ContainerCreating")), []string{grantA}},
	})
}

func TestSeveralWait(t *testing.T) {
	check(t, []row{
		{"of several only one whose gate runs starts", worldOf(held(), waiting("c").stuck("ContainerCreating").age(9), waiting("b")), []string{grantB}},
		{"none if no gate runs", worldOf(held(), waiting("c").stuck("ContainerCreating").age(9), waiting("b").stuck("ContainerCreating")), nil},
		{"a new pod of the newest revision is waited for", worldOf(held(), waiting("c").of("d").stuck("ContainerCreating").age(0), waiting("b").of("d").old()), nil},
		{"but not for long", worldOf(held(), waiting("c").of("d").stuck("ContainerCreating").age(1), waiting("b").of("d").old()), []string{grantB}},
	})
	if p := decide(derive(worldOf(held(), waiting("c").of("d").stuck("ContainerCreating").age(0), waiting("b").of("d").old()))); p.Wait != newestPatience {
		t.Errorf("it looks again after %s, want %s", p.Wait, newestPatience)
	}
}

func TestAGrantIsSaidTwice(t *testing.T) {
	const remindA = "patch pod a: Remind, epoch 1"
	unreminded := func() *memberFixture {
		return granted("a", 1).with(func(p *corev1.Pod) { delete(p.Annotations, v1.AnnotationReminder) })
	}
	since := func(d time.Duration) func(*v1.StatefulSingleton) {
		return func(s *v1.StatefulSingleton) { s.Status.Holder.Since.Time = noon.Add(-d) }
	}
	check(t, []row{
		{"a kubelet that may have missed the grant is reminded", worldOf(held(), unreminded()), []string{remindA}},
		{"and of each grant", worldOf(held(), granted("a", 1).with(func(p *corev1.Pod) { p.Annotations[v1.AnnotationReminder] = "7" })), []string{remindA}},
		{"but not at once", worldOf(held().with(since(remindAfter-1)), unreminded()), nil},
		{"nor when its time has come to an end", worldOf(held(), unreminded().deleted()), nil},
		{"nor is one that needs no grant", worldOf(held(), unreminded().bare()), nil},
	})
	if p := decide(derive(worldOf(held().with(since(time.Second)), unreminded()))); p.Wait != remindAfter-time.Second {
		t.Errorf("it looks again after %s", p.Wait)
	}
}

func TestSurge(t *testing.T) {
	const deletesA = "delete pod a: Superseded, a pod of the newest revision waits for it"
	ofDeployment := func(m *memberFixture) *memberFixture { return m.of("d") }
	check(t, []row{
		{"S8 the old pod is deleted once the new one is held", worldOf(held(), ofDeployment(granted("a", 1)).old(), ofDeployment(waiting("b"))), []string{deletesA}},
		{"so is one that was there before the object, if it is the only one", worldOf(singleton("db").held("x", 1), ofDeployment(ungated("a")).protect().old(), ofDeployment(waiting("b"))), []string{deletesA}},
		{"of several that were there before, which run beside each other, none is", worldOf(singleton("db").held("x", 1), ofDeployment(ungated("a")).protect().old(), ofDeployment(ungated("c")).protect().old(), ofDeployment(waiting("b"))), nil},
		{"and not before", worldOf(held(), ofDeployment(granted("a", 1)).old(), ofDeployment(waiting("b")).silent()), nil},
		{"and not while its kubelet would be slow to show it a grant", worldOf(held(), ofDeployment(granted("a", 1)).old(), ofDeployment(waiting("b")).heldFor(time.Second)), nil},
		{"that is over soon", worldOf(held(), ofDeployment(granted("a", 1)).old(), ofDeployment(waiting("b")).heldFor(restsAfter)), []string{deletesA}},
		{"who has no pod to wait for starts at once", worldOf(held(), ofDeployment(waiting("b")).heldFor(0)), []string{grantB}},
		{"nor for one whose image cannot be had", worldOf(held(), ofDeployment(granted("a", 1)).old(), ofDeployment(waiting("b")).stuck("ErrImagePull")), nil},
		{"a standby of the same revision deletes no pod", worldOf(held(), ofDeployment(granted("a", 1)), ofDeployment(waiting("b"))), nil},
		{"on the same node it can have it while it only comes up", worldOf(held(),
			ofDeployment(granted("a", 1)).old().mounts(corev1.ReadWriteOnce), ofDeployment(waiting("b")).stuck("ContainerCreating").mounts(corev1.ReadWriteOnce)), nil},
		{"L11 the old pod goes if it has the volume that the new one needs on another node", worldOf(held(),
			ofDeployment(granted("a", 1)).old().mounts(corev1.ReadWriteOnce), ofDeployment(waiting("b")).stuck("ContainerCreating").on("n2").mounts(corev1.ReadWriteOnce)), []string{deletesA}},
		{"on the same node it can have it too", worldOf(held(),
			ofDeployment(granted("a", 1)).old().mounts(corev1.ReadWriteOnce), ofDeployment(waiting("b")).silent().mounts(corev1.ReadWriteOnce)), nil},
		{"a shared volume holds no pod back", worldOf(held(),
			ofDeployment(granted("a", 1)).old().mounts(""), ofDeployment(waiting("b")).silent().on("n2").mounts("")), nil},
		{"a claim of one pod keeps the next from any node", worldOf(held(),
			ofDeployment(granted("a", 1)).old().mounts(corev1.ReadWriteOncePod), ofDeployment(waiting("b")).unscheduled().mounts(corev1.ReadWriteOncePod)), []string{deletesA}},
		{"one without a node for another reason deletes no pod", worldOf(held(),
			ofDeployment(granted("a", 1)).old().mounts(corev1.ReadWriteOnce), ofDeployment(waiting("b")).unscheduled().mounts(corev1.ReadWriteOnce)), nil},
		{"a pod that the old ReplicaSet made again gives the volume back", worldOf(held(),
			ofDeployment(waiting("b")).stuck("ContainerCreating").on("n2").mounts(corev1.ReadWriteOnce), ofDeployment(waiting("c")).old().mounts(corev1.ReadWriteOnce)),
			[]string{"delete pod c: Superseded, it has the volume that a pod of the newest revision needs"}},
		{"nor does one of an older revision", worldOf(held(), ofDeployment(granted("a", 1)), ofDeployment(waiting("b")).old()), nil},
		{"nor does a pod of another owner", worldOf(held(), ofDeployment(granted("a", 1)).old(), waiting("b").of("other")), nil},
		{"nor one of a StatefulSet or of Recreate, which delete by themselves", worldOf(held(), ofDeployment(granted("a", 1)).old().still(), ofDeployment(waiting("b")).still()), nil},
		{"no pod is deleted twice", worldOf(held(), ofDeployment(granted("a", 1)).old().deleted(), ofDeployment(waiting("b"))), nil},
		{"no pod is deleted while another would block anyway", worldOf(held(), ofDeployment(granted("a", 1)).old(), ungated("c").protect(), ofDeployment(waiting("b"))), nil},
		{"a pod made before the object is superseded too", worldOf(singleton("db"), ofDeployment(ungated("a")).old().protect(), ofDeployment(waiting("b"))), []string{deletesA}},
	})
}

func TestAGateThatComesToRestIsLookedAtAgain(t *testing.T) {
	p := decide(derive(worldOf(held(), granted("a", 1).of("d").old(), waiting("b").of("d").heldFor(time.Second))))
	if want := restsAfter - time.Second; p.Wait != want {
		t.Errorf("it looks again after %s, want %s", p.Wait, want)
	}
	p = decide(derive(worldOf(held(), granted("a", 1).of("d"), waiting("b").of("d").heldFor(time.Minute))))
	if p.Wait != 0 {
		t.Errorf("at rest it looks again after %s", p.Wait)
	}
}

func TestTheMemoryOfGatesIsOfThisObjectsPods(t *testing.T) {
	var m remembered
	look := func(at time.Duration, members ...*memberFixture) time.Time {
		w := worldOf(singleton("db"), members...)
		w.now = noon.Add(at)
		m.recall(w)
		return members[0].heldSince
	}
	if got := look(0, waiting("a").silent()); !got.IsZero() {
		t.Errorf("a gate that does not run has run since %s", got)
	}
	for _, at := range []time.Duration{time.Second, 2 * time.Second} {
		if got := look(at, waiting("a")); !got.Equal(noon.Add(time.Second)) {
			t.Errorf("after %s it has run since %s", at, got)
		}
	}
	look(3*time.Second, waiting("b"))
	if got := look(4*time.Second, waiting("a")); !got.Equal(noon.Add(4 * time.Second)) {
		t.Errorf("one that was gone has run since %s", got)
	}
}

// still makes the owner one without a rolling update.
func (m *memberFixture) still() *memberFixture {
	m.family.rolls = false
	return m
}

// handingOver sets a handover that began that long ago.
func handingOver(ago time.Duration, policy v1.TimeoutPolicy) func(*v1.StatefulSingleton) {
	return func(s *v1.StatefulSingleton) {
		began := metav1.NewTime(noon.Add(-ago))
		s.Status.TransitionTimestamp, s.Spec.OnTimeout = &began, policy
	}
}

func TestWhoDecides(t *testing.T) {
	older := singleton("older").madeAt(1)
	younger := singleton("younger").madeAt(2)
	rivals := func(s *singletonFixture) func(*world) {
		return func(w *world) {
			w.now, w.rivals = noon.Add(time.Hour), []*v1.StatefulSingleton{&s.StatefulSingleton}
		}
	}
	late := handingOver(301*time.Second, v1.TimeoutDeletesOld)
	check(t, []row{
		{"S26 the younger deletes no pod for a handover that takes too long", worldOf(singleton("younger").madeAt(2).held("a", 1).with(late), granted("a", 1).coming(), waiting("b")).with(rivals(older)), nil},
		{"nor does one too many", worldOf(singleton("db").held("a", 1).with(late), granted("a", 1).coming(), waiting("b")).with(func(w *world) { w.crowded = true }), nil},
		{"S26 the younger of two starts no pod", worldOf(singleton("younger").madeAt(2), waiting("a")).with(rivals(older)), nil},
		{"S26 the older does", worldOf(singleton("older").madeAt(1), waiting("a")).with(rivals(younger)),
			[]string{"patch status of statefulsingleton older: Holder, a, epoch 1 > patch pod a: Grant, epoch 1"}},
		{"S26 the younger deletes no pod either", worldOf(singleton("younger").madeAt(2), granted("a", 1).of("d").old(), waiting("b").of("d")).with(rivals(older)), nil},
		{"one too many starts no pod", worldOf(singleton("db"), waiting("a")).with(func(w *world) { w.crowded = true }), nil},
		{"an invalid one starts no pod", worldOf(singleton("db").selecting(metav1.LabelSelector{}), waiting("a")), nil},
	})
	p := decide(derive(worldOf(singleton("db"), waiting("a")).with(func(w *world) { w.firstSeen = noon.Add(-time.Second) })))
	if len(p.Steps) > 0 || p.Wait != time.Second {
		t.Errorf("a new object does %q and looks again after %s; want nothing, and 1s", p.Steps.Strings(), p.Wait)
	}
}

func TestTimeout(t *testing.T) {
	since := func(ago time.Duration, policy v1.TimeoutPolicy) *singletonFixture {
		return singleton("db").held("a", 1).with(handingOver(ago, policy))
	}
	blocked := func() []*memberFixture { return []*memberFixture{granted("a", 1).coming(), waiting("b")} }
	under := func(uid string) *memberFixture {
		return granted("a", 1).coming().with(func(p *corev1.Pod) { p.Annotations[v1.AnnotationSingletonUID] = uid })
	}
	check(t, []row{
		{"S13 Wait waits on", worldOf(since(301*time.Second, v1.TimeoutWaits), blocked()...), nil},
		{"S13 DeleteOld deletes", worldOf(since(301*time.Second, v1.TimeoutDeletesOld), blocked()...),
			[]string{"delete pod a: Timeout, the handover takes longer than maxTransitionTime"}},
		{"S13 a slow start is no handover while no one else could start", worldOf(since(301*time.Second, v1.TimeoutDeletesOld).held("a", 1), granted("a", 1).coming(), waiting("b").coming()), nil},
		{"S13 and not before", worldOf(since(299*time.Second, v1.TimeoutDeletesOld), blocked()...), nil},
		{"a pod that was there before the object is not deleted", worldOf(since(301*time.Second, v1.TimeoutDeletesOld).held("x", 1), ungated("a").protect(), waiting("b")), nil},
		{"nor one that says that it was made under the object, and has no gate", worldOf(since(301*time.Second, v1.TimeoutDeletesOld).held("x", 1), waiting("a").bare().protect(), waiting("b")), nil},
		{"nor one that was made under another object of that name", worldOf(since(301*time.Second, v1.TimeoutDeletesOld), under("uid-of-the-one-before"), waiting("b")), nil},
		{"nor one that an operator made who did not write it down", worldOf(since(301*time.Second, v1.TimeoutDeletesOld), under(""), waiting("b")), nil},
		{"nor one whose successor cannot come to its gate", worldOf(since(301*time.Second, v1.TimeoutDeletesOld), granted("a", 1).of("d").old(), waiting("b").of("d").stuck("ErrImagePull"), waiting("c").of("d").old()), nil},
		{"S13 no pod is deleted twice", worldOf(since(301*time.Second, v1.TimeoutDeletesOld), granted("a", 1).coming().deleted(), waiting("b")), nil},
		{"a standby is no handover", worldOf(since(301*time.Second, v1.TimeoutDeletesOld).held("a", 1), granted("a", 1), waiting("b")), nil},
	})
}

func TestSurroundings(t *testing.T) {
	drifted := worldOf(singleton("db"))
	drifted.wrapper.Data = map[string]string{v1.FileScript: "rm -rf /", "mine": "stays"}
	missing := worldOf(singleton("db"))
	missing.wrapper = nil
	shared := worldOf(singleton("db"))
	shared.wrapper.OwnerReferences = nil
	check(t, []row{
		{"S2 the script is made", missing, []string{"create configmap statefulsingleton-wrapper: Wrapper"}},
		{"S2 drift is repaired", drifted, []string{"patch configmap statefulsingleton-wrapper: Wrapper"}},
		{"S2 each object owns it too", shared, []string{"patch configmap statefulsingleton-wrapper: Wrapper"}},
		{"rest is rest", worldOf(held(), granted("a", 1)), nil},
		{"S27 no pods, nothing to do", worldOf(singleton("db")), nil},
	})
	for _, step := range decide(derive(drifted)).Steps {
		if data := step[0][0].Object.(*corev1.ConfigMap).Data; data["mine"] != "stays" || data[v1.FileScript] != script.Text {
			t.Errorf("the repaired script has %v", data)
		}
	}
}

func TestAScriptWithoutAShellIsNamed(t *testing.T) {
	crashed := func(m *memberFixture) *memberFixture {
		m.pod.Status.ContainerStatuses[0].LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ExitCode: 1, Reason: "Error"}
		return m
	}
	for name, r := range map[string]struct {
		m    *memberFixture
		want string
	}{
		"one that ended before its turn": {crashed(waiting("a").scripted()), v1.ReasonScriptFailing},
		"a program that ended":           {crashed(granted("a", 1).scripted()), v1.ReasonPodFailing},
		"the gate of another mode":       {crashed(waiting("a")), v1.ReasonPodFailing},
	} {
		if got := degraded(derive(worldOf(held(), r.m))).Reason; got != r.want {
			t.Errorf("%s: %s, want %s", name, got, r.want)
		}
	}
}
