package statefulsingleton

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/nodestate"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/observe"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/rules"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/spec"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/status"
	"github.com/stateful-operator/stateful-operator/gate/script"
)

type row struct {
	name string
	w    *facts.World
	want []string // the plan, one chain per line; nil for no action
}

const (
	grantB   = "patch status of statefulsingleton db: Holder, b, epoch 2 > patch pod b: Grant, epoch 2"
	grantA   = "patch status of statefulsingleton db: Holder, a, epoch 1 > patch pod a: Grant, epoch 1"
	releaseA = "patch pod a: Release"
	askA     = "delete pod a: Rejected, its kubelet rejected it and does not report whether it runs"
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
			p := rules.Decide(facts.Derive(r.w))
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
		{"a lone pod with a script as gate waits until the script runs", worldOf(singleton("db"), waiting("a").coming().scripted()), nil},
		{"a lone pod waits while its script has just started", worldOf(singleton("db"), waiting("a").scripted().heldFor(time.Second)), nil},
		{"a lone pod starts when its script has run long enough", worldOf(singleton("db"), waiting("a").scripted().heldFor(spec.RestsAfter)), []string{grantA}},
		{"the pod whose script has run long enough starts first", worldOf(singleton("db"), waiting("a").scripted().heldFor(time.Second), waiting("b").scripted().heldFor(spec.RestsAfter)),
			[]string{"patch status of statefulsingleton db: Holder, b, epoch 1 > patch pod b: Grant, epoch 1"}},
		{"no pod starts while the holder runs", worldOf(held(), granted("a", 1), waiting("b")), nil},
		{"no pod starts while the holder is terminating", worldOf(held(), granted("a", 1).deleted(), waiting("b")), nil},
		{"the next pod starts when the holder has stopped", worldOf(held(), granted("a", 1).deleted().ended(), waiting("b")), []string{releaseA, grantB}},
		{"a holder whose program ended is replaced", worldOf(held(), granted("a", 1).ended(), waiting("b")), []string{releaseA, grantB}},
		{"the next pod starts if the kubelet observed the deletion of a holder that never ran", worldOf(held(), granted("a", 1).unstarted(2), waiting("b")), []string{releaseA, grantB}},
		{"the next pod waits if the status of a holder that never ran is older than its deletion", worldOf(held(), granted("a", 1).unstarted(1), waiting("b")), nil},
		{"the next pod waits if the kubelet does not report observedGeneration", worldOf(held(), granted("a", 1).unstarted(0), waiting("b")), nil},
		{"the next pod waits if pods have no generation", worldOf(held(), granted("a", 1).unstarted(0).with(func(p *corev1.Pod) { p.Generation = 0 }), waiting("b")), nil},
		{"the next pod waits if a holder that never ran has a sandbox", worldOf(held(), granted("a", 1).unstarted(2).with(func(p *corev1.Pod) {
			p.Status.Conditions[len(p.Status.Conditions)-1].Status = corev1.ConditionTrue
		}), waiting("b")), nil},
		{"the next pod starts when the holder is deleted", worldOf(held(), waiting("b")), []string{grantB}},
		{"S14 a crashed container of a living pod proves nothing", worldOf(held(), granted("a", 1).exited(), waiting("b")), nil},
		{"S14 a crash loop proves nothing", worldOf(held(), granted("a", 1).stuck("CrashLoopBackOff"), waiting("b")), nil},
		{"a phase without terminated containers proves nothing", worldOf(held(), granted("a", 1).phase(corev1.PodFailed), waiting("b")), nil},
		{"phase Failed by pod garbage collection proves nothing", worldOf(held(), granted("a", 1).collected(), waiting("b")), nil},
		{"phase Failed by pod garbage collection proves nothing for a pod without a kubelet status", worldOf(held(), granted("a", 1).silent().collected(), waiting("b")), nil},
		{"a granted pod with phase Failed and no container statuses may run, and is deleted", worldOf(held(), granted("a", 1).silent().phase(corev1.PodFailed), waiting("b")), []string{askA}},
		{"a granted pod with phase Failed and no container statuses is deleted only once", worldOf(held(), granted("a", 1).silent().phase(corev1.PodFailed).deleted(), waiting("b")), nil},
		{"containers that terminated before another client set the phase prove nothing", worldOf(held(), granted("a", 1).exited().phase(corev1.PodFailed).deleted(), waiting("b")), nil},
		{"a holder that its kubelet rejected gets no grant", worldOf(held(), waiting("a").silent().phase(corev1.PodFailed), waiting("b")), []string{grantB}},
		{"a pod with the copied grant of another pod waits like any other", worldOf(singleton("db"), waiting("a").protect().with(func(p *corev1.Pod) {
			p.Annotations = map[string]string{v1.AnnotationGrant: "uid-of-x 9"}
		})), []string{grantA}},
		{"S17 a pod with a grant counts although another pod is the holder", worldOf(singleton("db").held("x", 5), granted("a", 1), waiting("b")),
			[]string{"patch status of statefulsingleton db: Adopt, a, epoch 5"}},
		{"a pod that lost its annotation counts by its finalizer", worldOf(singleton("db").held("x", 5), waiting("a").protect(), waiting("b")), nil},
		{"epochs continue from the highest grant", worldOf(singleton("db"), granted("a", 7).ended(), waiting("b")),
			[]string{releaseA, "patch status of statefulsingleton db: Holder, b, epoch 8 > patch pod b: Grant, epoch 8"}},
		{"a grant with another pod's UID is ignored", worldOf(singleton("db"), waiting("a").with(func(p *corev1.Pod) {
			p.Annotations = map[string]string{v1.AnnotationGrant: "uid-of-b 9"}
		})), []string{grantA}},
	})
}

func TestUnmanagedPods(t *testing.T) {
	check(t, []row{
		{"S16 a pod without the gate blocks, and gets the finalizer", worldOf(singleton("db"), ungated("a"), waiting("b")), []string{"patch pod a: Protect"}},
		{"S16 a pod without the gate that has the finalizer blocks", worldOf(singleton("db"), ungated("a").protect(), waiting("b")), nil},
		{"S16 a pod without the gate that has no Node yet blocks", worldOf(singleton("db"), ungated("a").unscheduled().protect(), waiting("b")), nil},
		{"a terminating pod without the gate blocks, and gets no finalizer", worldOf(singleton("db"), ungated("a").deleted(), waiting("b")), nil},
		{"a terminating pod without the gate that has no Node does not block", worldOf(singleton("db"), ungated("a").unscheduled().deleted().protect(), waiting("b")),
			[]string{releaseA, "patch status of statefulsingleton db: Holder, b, epoch 1 > patch pod b: Grant, epoch 1"}},
		{"H3 an ended pod without the gate does not block", worldOf(singleton("db"), ungated("a").ended(), waiting("b")),
			[]string{"patch status of statefulsingleton db: Holder, b, epoch 1 > patch pod b: Grant, epoch 1"}},
		{"a pod without the gate that its kubelet rejected does not block", worldOf(singleton("db"), ungated("a").silent().phase(corev1.PodFailed), waiting("b")),
			[]string{"patch status of statefulsingleton db: Holder, b, epoch 1 > patch pod b: Grant, epoch 1"}},
		{"a pod without the gate that ran, and has phase Failed without container statuses, blocks", worldOf(singleton("db"), ungated("a").protect().silent().phase(corev1.PodFailed), waiting("b")), []string{askA}},
		{"a static pod blocks, and is left to its kubelet", worldOf(singleton("db"), ungated("a").with(func(p *corev1.Pod) {
			p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"}
		}), waiting("b")), nil},
	})
}

func TestFencing(t *testing.T) {
	const deletesA = "delete pod a: Fenced, its Node n1 is out of service"
	off := goneSince(time.Minute)
	check(t, []row{
		{"S23 an unreachable Node proves nothing", worldOf(held(), granted("a", 1).deleted().onNode(unresponsive), waiting("b")), nil},
		{"S23 a terminating pod on a Node that is out of service has stopped", worldOf(held(), granted("a", 1).deleted().onNode(outOfIt), waiting("b")), []string{releaseA, grantB}},
		{"S23 a pod on a Node that is out of service is deleted first, because it would start again with its machine", worldOf(held(), granted("a", 1).onNode(outOfIt), waiting("b")), []string{deletesA}},
		{"S23 a holder without a grant on a Node that is out of service is deleted first", worldOf(held(), waiting("a").onNode(outOfIt), waiting("b")), []string{deletesA}},
		{"S23 a pod without the gate on a Node that is out of service is deleted first", worldOf(held(), ungated("a").protect().onNode(outOfIt), waiting("b")), []string{deletesA}},
		{"S23 the taint is ignored once the Node is Ready again", worldOf(held(), granted("a", 1).deleted().onNode(nodestate.Facts{Ready: true, OutOfService: true}), waiting("b")), nil},
		{"S23 a pod on a Node that is out of service has stopped if pod garbage collection set its phase", worldOf(held(), granted("a", 1).collected().onNode(outOfIt), waiting("b")), []string{releaseA, grantB}},
		{"S23 a change of spec.containers does not affect the fencing of a pod", worldOf(held(), granted("a", 1).bare().deleted().onNode(outOfIt), waiting("b")), []string{releaseA, grantB}},
		{"S23 a Node that has been missing for 59 s proves nothing", worldOf(held(), granted("a", 1).deleted().onNode(goneSince(59*time.Second)), waiting("b")), nil},
		{"S23 a terminating pod on a Node that has been missing for a minute has stopped", worldOf(held(), granted("a", 1).deleted().onNode(off), waiting("b")), []string{releaseA, grantB}},
		{"S23 a pod that pod garbage collection deleted has stopped when its Node has been missing for a minute", worldOf(held(), granted("a", 1).deleted().collected().onNode(off), waiting("b")), []string{releaseA, grantB}},
		{"no pod starts on an unreachable Node", worldOf(singleton("db"), waiting("a").onNode(unresponsive)), nil},
		{"no pod starts on a Node that is out of service", worldOf(singleton("db"), waiting("a").onNode(nodestate.Facts{Ready: true, OutOfService: true})), nil},
	})
	if p := rules.Decide(facts.Derive(worldOf(held(), granted("a", 1).onNode(goneSince(40*time.Second)), waiting("b")))); p.Wait != 20*time.Second {
		t.Errorf("the requeue for a missing Node is after %s, want 20s", p.Wait)
	}
}

func TestTwoWrites(t *testing.T) {
	named := singleton("db").held("a", 3)
	check(t, []row{
		{"S24 the second write is repeated for the same holder", worldOf(named, waiting("a"), waiting("b").age(60)), []string{"patch pod a: Grant, epoch 3"}},
		{"S24 the second write is repeated although the Node has become unreachable", worldOf(named, waiting("a").onNode(unresponsive), waiting("b")), []string{"patch pod a: Grant, epoch 3"}},
		{"S24 a holder that is deleted before its grant is skipped", worldOf(named, waiting("a").deleted(), waiting("b")),
			[]string{"patch status of statefulsingleton db: Holder, b, epoch 4 > patch pod b: Grant, epoch 4"}},
		{"S24 the readiness condition is repaired", worldOf(held(), granted("a", 1).with(func(p *corev1.Pod) { p.Status.Conditions = nil })),
			[]string{"set a condition of pod a: Ready, True"}},
		{"a waiting pod is not Ready", worldOf(held(), granted("a", 1), waiting("b").with(func(p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{{Type: v1.ReadinessGate, Status: corev1.ConditionTrue}}
		})), []string{"set a condition of pod b: Ready, False"}},
		{"a finalizer that a user removed is added again", worldOf(held(), granted("a", 1).unprotected()), []string{"patch pod a: Protect"}},
		{"S25 a new object adopts the pod that runs", worldOf(singleton("db"), granted("a", 4), waiting("b")),
			[]string{"patch status of statefulsingleton db: Adopt, a, epoch 4"}},
	})
	p := rules.Decide(facts.Derive(worldOf(singleton("db"), waiting("a"))))
	for _, a := range p.Steps[0][0] {
		if a.Verb == "patch" && !a.Unchanged {
			t.Errorf("%s is not bound to the version of the pod that was read", a)
		}
	}
}

func TestOrder(t *testing.T) {
	check(t, []row{
		{"the oldest pod is next", worldOf(held(), waiting("c").age(1), waiting("b").age(2)), []string{grantB}},
		{"a pod of the newest revision is next before an older pod", worldOf(held(), waiting("c").of("d").old().age(9), waiting("b").of("d").age(1)), []string{grantB}},
		{"a pod of an older revision is next if no pod of the newest can start", worldOf(held(), waiting("c").of("d").stuck("ErrImagePull"), waiting("b").of("d").old()), []string{grantB}},
		{"a pod whose gate runs is next before an older pod", worldOf(held(), waiting("c").silent().age(9), waiting("b").age(1)), []string{grantB}},
		{"a pod without a kubelet status waits", worldOf(singleton("db"), waiting("a").silent()), nil},
		{"a pod without a Node waits", worldOf(singleton("db"), waiting("a").unscheduled()), nil},
		{"a pod whose image cannot be pulled waits", worldOf(singleton("db"), waiting("a").stuck("ImagePullBackOff")), nil},
		{"a pod that is starting gets its grant before its gate runs", worldOf(singleton("db"), waiting("a").stuck("ContainerCreating")), []string{grantA}},
	})
}

func TestSeveralWait(t *testing.T) {
	check(t, []row{
		{"only a pod whose gate runs starts if several wait", worldOf(held(), waiting("c").stuck("ContainerCreating").age(9), waiting("b")), []string{grantB}},
		{"no pod starts if several wait and no gate runs", worldOf(held(), waiting("c").stuck("ContainerCreating").age(9), waiting("b").stuck("ContainerCreating")), nil},
		{"a pod of an older revision waits for a new pod of the newest revision", worldOf(held(), waiting("c").of("d").stuck("ContainerCreating").age(0), waiting("b").of("d").old()), nil},
		{"a pod of an older revision starts if the newest does not reach its gate in time", worldOf(held(), waiting("c").of("d").stuck("ContainerCreating").age(1), waiting("b").of("d").old()), []string{grantB}},
	})
	if p := rules.Decide(facts.Derive(worldOf(held(), waiting("c").of("d").stuck("ContainerCreating").age(0), waiting("b").of("d").old()))); p.Wait != spec.NewestPatience {
		t.Errorf("requeued after %s, want %s", p.Wait, spec.NewestPatience)
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
		{"a kubelet is reminded of each grant", worldOf(held(), granted("a", 1).with(func(p *corev1.Pod) { p.Annotations[v1.AnnotationReminder] = "7" })), []string{remindA}},
		{"a kubelet is not reminded immediately after the grant", worldOf(held().with(since(spec.RemindAfter-1)), unreminded()), nil},
		{"a kubelet is not reminded of a terminating pod", worldOf(held(), unreminded().deleted()), nil},
		{"a kubelet is not reminded of a pod without the gate", worldOf(held(), unreminded().bare()), nil},
	})
	if p := rules.Decide(facts.Derive(worldOf(held().with(since(time.Second)), unreminded()))); p.Wait != spec.RemindAfter-time.Second {
		t.Errorf("requeued after %s", p.Wait)
	}
}

func TestSurge(t *testing.T) {
	const deletesA = "delete pod a: Superseded, a pod of the newest revision waits for it"
	ofDeployment := func(m *memberFixture) *memberFixture { return m.of("d") }
	check(t, []row{
		{"S8 the old pod is deleted when the new one waits at its gate", worldOf(held(), ofDeployment(granted("a", 1)).old(), ofDeployment(waiting("b"))), []string{deletesA}},
		{"a single pod without the gate is deleted when the new one waits at its gate", worldOf(singleton("db").held("x", 1), ofDeployment(ungated("a")).protect().old(), ofDeployment(waiting("b"))), []string{deletesA}},
		{"of several pods without the gate none is deleted", worldOf(singleton("db").held("x", 1), ofDeployment(ungated("a")).protect().old(), ofDeployment(ungated("c")).protect().old(), ofDeployment(waiting("b"))), nil},
		{"the old pod is not deleted before the new one has reached its gate", worldOf(held(), ofDeployment(granted("a", 1)).old(), ofDeployment(waiting("b")).silent()), nil},
		{"the old pod is not deleted when the new one has just reached its gate", worldOf(held(), ofDeployment(granted("a", 1)).old(), ofDeployment(waiting("b")).heldFor(time.Second)), nil},
		{"the old pod is deleted when the new one has been at its gate long enough", worldOf(held(), ofDeployment(granted("a", 1)).old(), ofDeployment(waiting("b")).heldFor(spec.RestsAfter)), []string{deletesA}},
		{"a pod without an old pod starts immediately", worldOf(held(), ofDeployment(waiting("b")).heldFor(0)), []string{grantB}},
		{"the old pod is not deleted for a pod whose image cannot be pulled", worldOf(held(), ofDeployment(granted("a", 1)).old(), ofDeployment(waiting("b")).stuck("ErrImagePull")), nil},
		{"a standby of the same revision deletes no pod", worldOf(held(), ofDeployment(granted("a", 1)), ofDeployment(waiting("b"))), nil},
		{"the old pod keeps its volume if the new one is starting on the same Node", worldOf(held(),
			ofDeployment(granted("a", 1)).old().mounts(corev1.ReadWriteOnce), ofDeployment(waiting("b")).stuck("ContainerCreating").mounts(corev1.ReadWriteOnce)), nil},
		{"L11 the old pod is deleted if it uses the volume that the new one needs on another Node", worldOf(held(),
			ofDeployment(granted("a", 1)).old().mounts(corev1.ReadWriteOnce), ofDeployment(waiting("b")).stuck("ContainerCreating").on("n2").mounts(corev1.ReadWriteOnce)), []string{deletesA}},
		{"the old pod keeps its volume if the new one is on the same Node", worldOf(held(),
			ofDeployment(granted("a", 1)).old().mounts(corev1.ReadWriteOnce), ofDeployment(waiting("b")).silent().mounts(corev1.ReadWriteOnce)), nil},
		{"a shared volume blocks no pod", worldOf(held(),
			ofDeployment(granted("a", 1)).old().mounts(""), ofDeployment(waiting("b")).silent().on("n2").mounts("")), nil},
		{"the old pod is deleted if its ReadWriteOncePod claim makes the new one unschedulable", worldOf(held(),
			ofDeployment(granted("a", 1)).old().mounts(corev1.ReadWriteOncePod), ofDeployment(waiting("b")).unscheduled().mounts(corev1.ReadWriteOncePod)), []string{deletesA}},
		{"the old pod is not deleted if the new one is unschedulable for another reason", worldOf(held(),
			ofDeployment(granted("a", 1)).old().mounts(corev1.ReadWriteOnce), ofDeployment(waiting("b")).unscheduled().mounts(corev1.ReadWriteOnce)), nil},
		{"a waiting pod of the old ReplicaSet is deleted if it uses the volume of the new one", worldOf(held(),
			ofDeployment(waiting("b")).stuck("ContainerCreating").on("n2").mounts(corev1.ReadWriteOnce), ofDeployment(waiting("c")).old().mounts(corev1.ReadWriteOnce)),
			[]string{"delete pod c: Superseded, it uses the volume that a pod of the newest revision needs"}},
		{"a pod of an older revision deletes no pod", worldOf(held(), ofDeployment(granted("a", 1)), ofDeployment(waiting("b")).old()), nil},
		{"a pod of another owner deletes no pod", worldOf(held(), ofDeployment(granted("a", 1)).old(), waiting("b").of("other")), nil},
		{"a pod of a StatefulSet or of strategy Recreate deletes no pod, because its owner does", worldOf(held(), ofDeployment(granted("a", 1)).old().still(), ofDeployment(waiting("b")).still()), nil},
		{"a terminating old pod is not deleted again", worldOf(held(), ofDeployment(granted("a", 1)).old().deleted(), ofDeployment(waiting("b"))), nil},
		{"the old pod is not deleted while another pod blocks", worldOf(held(), ofDeployment(granted("a", 1)).old(), ungated("c").protect(), ofDeployment(waiting("b"))), nil},
		{"a pod that was created before the object is superseded", worldOf(singleton("db"), ofDeployment(ungated("a")).old().protect(), ofDeployment(waiting("b"))), []string{deletesA}},
	})
}

func TestAGateThatComesToRestIsLookedAtAgain(t *testing.T) {
	p := rules.Decide(facts.Derive(worldOf(held(), granted("a", 1).of("d").old(), waiting("b").of("d").heldFor(time.Second))))
	if want := spec.RestsAfter - time.Second; p.Wait != want {
		t.Errorf("requeued after %s, want %s", p.Wait, want)
	}
	p = rules.Decide(facts.Derive(worldOf(held(), granted("a", 1).of("d"), waiting("b").of("d").heldFor(time.Minute))))
	if p.Wait != 0 {
		t.Errorf("at rest, requeued after %s", p.Wait)
	}
}

func TestTheMemoryOfGatesIsOfThisObjectsPods(t *testing.T) {
	var m observe.Remembered
	look := func(at time.Duration, members ...*memberFixture) time.Time {
		w := worldOf(singleton("db"), members...)
		w.Now = noon.Add(at)
		m.Recall(w)
		return members[0].HeldSince
	}
	if got := look(0, waiting("a").silent()); !got.IsZero() {
		t.Errorf("a gate that does not run has start time %s", got)
	}
	for _, at := range []time.Duration{time.Second, 2 * time.Second} {
		if got := look(at, waiting("a")); !got.Equal(noon.Add(time.Second)) {
			t.Errorf("after %s the start time of the gate is %s", at, got)
		}
	}
	look(3*time.Second, waiting("b"))
	if got := look(4*time.Second, waiting("a")); !got.Equal(noon.Add(4 * time.Second)) {
		t.Errorf("the start time of a recreated gate is %s", got)
	}
}

// still makes the owner one without a rolling update.
func (m *memberFixture) still() *memberFixture {
	m.Family.Rolls = false
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
	rivals := func(s *singletonFixture) func(*facts.World) {
		return func(w *facts.World) {
			w.Now, w.Rivals = noon.Add(time.Hour), []*v1.StatefulSingleton{&s.StatefulSingleton}
		}
	}
	late := handingOver(301*time.Second, v1.TimeoutDeletesOld)
	check(t, []row{
		{"S26 the younger of two overlapping objects deletes no pod for a handover that takes too long", worldWith(worldOf(singleton("younger").madeAt(2).held("a", 1).with(late), granted("a", 1).coming(), waiting("b")), rivals(older)), nil},
		{"an object above the limit deletes no pod for a handover that takes too long", worldWith(worldOf(singleton("db").held("a", 1).with(late), granted("a", 1).coming(), waiting("b")), func(w *facts.World) { w.Crowded = true }), nil},
		{"S26 the younger of two overlapping objects starts no pod", worldWith(worldOf(singleton("younger").madeAt(2), waiting("a")), rivals(older)), nil},
		{"S26 the older of two overlapping objects starts a pod", worldWith(worldOf(singleton("older").madeAt(1), waiting("a")), rivals(younger)),
			[]string{"patch status of statefulsingleton older: Holder, a, epoch 1 > patch pod a: Grant, epoch 1"}},
		{"S26 the younger of two overlapping objects deletes no pod for a rollout", worldWith(worldOf(singleton("younger").madeAt(2), granted("a", 1).of("d").old(), waiting("b").of("d")), rivals(older)), nil},
		{"an object above the limit starts no pod", worldWith(worldOf(singleton("db"), waiting("a")), func(w *facts.World) { w.Crowded = true }), nil},
		{"an invalid object starts no pod", worldOf(singleton("db").selecting(metav1.LabelSelector{}), waiting("a")), nil},
	})
	p := rules.Decide(facts.Derive(worldWith(worldOf(singleton("db"), waiting("a")), func(w *facts.World) { w.FirstSeen = noon.Add(-time.Second) })))
	if len(p.Steps) > 0 || p.Wait != time.Second {
		t.Errorf("a new object plans %q and a requeue after %s; want no action, and 1s", p.Steps.Strings(), p.Wait)
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
		{"S13 Wait deletes no pod", worldOf(since(301*time.Second, v1.TimeoutWaits), blocked()...), nil},
		{"S13 DeleteOld deletes the old pod after maxTransitionTime", worldOf(since(301*time.Second, v1.TimeoutDeletesOld), blocked()...),
			[]string{"delete pod a: Timeout, the handover takes longer than maxTransitionTime"}},
		{"S13 a slow start is not a handover while no other pod could start", worldOf(since(301*time.Second, v1.TimeoutDeletesOld).held("a", 1), granted("a", 1).coming(), waiting("b").coming()), nil},
		{"S13 DeleteOld deletes no pod before maxTransitionTime", worldOf(since(299*time.Second, v1.TimeoutDeletesOld), blocked()...), nil},
		{"DeleteOld does not delete a pod without the gate", worldOf(since(301*time.Second, v1.TimeoutDeletesOld).held("x", 1), ungated("a").protect(), waiting("b")), nil},
		{"DeleteOld does not delete a pod that has the annotation of the object but no gate", worldOf(since(301*time.Second, v1.TimeoutDeletesOld).held("x", 1), waiting("a").bare().protect(), waiting("b")), nil},
		{"DeleteOld does not delete a pod of an earlier object with the same name", worldOf(since(301*time.Second, v1.TimeoutDeletesOld), under("uid-of-the-one-before"), waiting("b")), nil},
		{"DeleteOld does not delete a pod without annotation singleton-uid", worldOf(since(301*time.Second, v1.TimeoutDeletesOld), under(""), waiting("b")), nil},
		{"DeleteOld does not delete a pod whose successor cannot reach its gate", worldOf(since(301*time.Second, v1.TimeoutDeletesOld), granted("a", 1).of("d").old(), waiting("b").of("d").stuck("ErrImagePull"), waiting("c").of("d").old()), nil},
		{"S13 DeleteOld does not delete a terminating pod again", worldOf(since(301*time.Second, v1.TimeoutDeletesOld), granted("a", 1).coming().deleted(), waiting("b")), nil},
		{"a standby is not a handover", worldOf(since(301*time.Second, v1.TimeoutDeletesOld).held("a", 1), granted("a", 1), waiting("b")), nil},
	})
}

func TestSurroundings(t *testing.T) {
	drifted := worldOf(singleton("db"))
	drifted.Wrapper.Data = map[string]string{v1.FileScript: "rm -rf /", "mine": "stays"}
	missing := worldOf(singleton("db"))
	missing.Wrapper = nil
	shared := worldOf(singleton("db"))
	shared.Wrapper.OwnerReferences = nil
	check(t, []row{
		{"S2 the ConfigMap of the script is created", missing, []string{"create configmap statefulsingleton-wrapper: Wrapper"}},
		{"S2 a changed script is repaired", drifted, []string{"patch configmap statefulsingleton-wrapper: Wrapper"}},
		{"S2 each object is added as an owner of the script", shared, []string{"patch configmap statefulsingleton-wrapper: Wrapper"}},
		{"an object at rest causes no write", worldOf(held(), granted("a", 1)), nil},
		{"S27 an object without pods causes no write", worldOf(singleton("db")), nil},
	})
	for _, step := range rules.Decide(facts.Derive(drifted)).Steps {
		if data := step[0][0].Object.(*corev1.ConfigMap).Data; data["mine"] != "stays" || data[v1.FileScript] != script.Text {
			t.Errorf("the repaired ConfigMap has data %v", data)
		}
	}
}

func TestAScriptWithoutAShellIsNamed(t *testing.T) {
	crashed := func(m *memberFixture) *memberFixture {
		m.Pod.Status.ContainerStatuses[0].LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ExitCode: 1, Reason: "Error"}
		return m
	}
	for name, r := range map[string]struct {
		m    *memberFixture
		want string
	}{
		"a script that ended before its turn": {crashed(waiting("a").scripted()), v1.ReasonScriptFailing},
		"a program that ended":                {crashed(granted("a", 1).scripted()), v1.ReasonPodFailing},
		"the gate of another mode that ended": {crashed(waiting("a")), v1.ReasonPodFailing},
	} {
		if got := status.Degraded(facts.Derive(worldOf(held(), r.m))).Reason; got != r.want {
			t.Errorf("%s: %s, want %s", name, got, r.want)
		}
	}
}
