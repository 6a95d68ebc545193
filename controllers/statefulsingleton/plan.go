package statefulsingleton

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
)

// plan is what decide wants done, and what it knows about why.
type plan struct {
	// rule is the name of the first rule that acts; "" when there is nothing to do.
	rule  string
	steps action.Steps
	// wait is when to look again although no event will come; 0 is never.
	wait time.Duration
	// blockers are the pods that may be running a program.
	blockers []*member
	// waiting are the pods that wait for their turn, the next one first.
	waiting []*member
}

// Reasons of actions.
const (
	reasonKeep       = "Keep"       // our finalizer on the object
	reasonWrapper    = "Wrapper"    // the ConfigMap
	reasonProtect    = "Protect"    // our finalizer on a pod
	reasonRelease    = "Release"    // and off it
	reasonFenced     = "Fenced"     // a pod whose machine is off may not start again
	reasonHolder     = "Holder"     // status.holder, the first write of a grant
	reasonGrant      = "Grant"      // the second
	reasonAdopt      = "Adopt"      // a pod granted earlier becomes the holder
	reasonReady      = "Ready"      // the readiness condition
	reasonSuperseded = "Superseded" // a pod deleted for a newer revision
	reasonTimeout    = "Timeout"    // a pod deleted because a handover takes too long
	reasonLetGo      = "LetGo"      // a pod started because its object goes
	reasonTouch      = "Touch"      // an owner woken whose pods were refused
)

// rule looks for one thing to do. It writes steps into the plan, or nothing.
type rule struct {
	name string
	act  func(*world, *plan)
	// joins is true for a rule that acts beside any other: nothing that it
	// looks at is changed by them, and it makes nobody start.
	joins bool
}

// rules in order of importance: the first with something to do wins, but for
// those that join.
var rules = []rule{
	{"let the pods of a deleted object go", letOrphansGo, false},
	{"let all pods go at once", letAllGo, false},
	{"keep the object until its pods are released", keepObject, false},
	{"keep the script", keepWrapper, true},
	{"protect pods that may run", protect, true},
	{"release pods that have stopped", release, true},
	{"repair readiness conditions", repairReadiness, true},
	{"wake owners whose pods were refused", touchOwners, true},
	{"revoke the grants of fenced pods", revoke, false},
	{"adopt a running pod", adopt, false},
	{"complete the grant", completeGrant, false},
	{"grant the next pod", grantNext, false},
	{"delete a superseded pod", supersede, false},
	{"end a handover that takes too long", endTimeout, false},
	{"finish the deletion", finishDeletion, false},
}

// decide says what to do about a world. It is pure: the same world gives the
// same plan.
func decide(w *world) plan {
	p := plan{}
	for _, m := range w.pods {
		switch {
		case w.mayRun(m):
			p.blockers = append(p.blockers, m)
		case w.waits(m):
			p.waiting = append(p.waiting, m)
		}
	}
	slices.SortStableFunc(p.waiting, w.byTurn)
	decided := false
	for _, rule := range rules {
		if decided && !rule.joins {
			continue
		}
		before := len(p.steps)
		if rule.act(w, &p); len(p.steps) == before {
			continue
		}
		p.rule = cmp.Or(p.rule, rule.name)
		decided = decided || !rule.joins
	}
	p.lookAgainFor(w)
	return p
}

// do adds chains as one step.
func (p *plan) do(chains ...action.Chain) {
	if len(chains) > 0 {
		p.steps = append(p.steps, chains)
	}
}

// rests tells whether nothing is to be done, and no pod waits for it.
func (p *plan) rests() bool { return len(p.steps) == 0 && len(p.waiting) == 0 }

// lookAgain makes the plan wake the key after that time.
func (p *plan) lookAgain(after time.Duration) {
	if after > 0 && (p.wait == 0 || after < p.wait) {
		p.wait = after
	}
}

// lookAgainFor wakes the key for what no event tells: a Node's absence, a new
// object that settles, a handover's end of patience.
func (p *plan) lookAgainFor(w *world) {
	for _, m := range p.blockers {
		if m.node.missing {
			p.lookAgain(fenceAfter - w.now.Sub(m.node.missingSince))
		}
	}
	if w.object == nil {
		return
	}
	p.lookAgain(w.settled())
	if w.unguarded != "" {
		p.lookAgain(2 * guardInterval)
	}
	if t := w.object.Status.TransitionTimestamp; t != nil && inTransition(p) {
		p.lookAgain(max(t.Add(w.patience()).Sub(w.now), 0))
	}
	p.lookAgain(w.ownersDue.Sub(w.now))
}

// Questions about the object.

func (w *world) deleting() bool { return w.object != nil && w.object.DeletionTimestamp != nil }

// releasesAll tells whether a person, or the end of the namespace, has ended the
// promise for all pods at once.
func (w *world) releasesAll() bool {
	return w.deleting() && (w.namespaceGoes || w.object.Annotations[v1.AnnotationReleaseNow] == v1.True)
}

// grants tells whether this object may start pods at all.
func (w *world) grants() bool {
	return w.object != nil && w.invalid == "" && !w.crowded && w.elder() == nil && w.settled() == 0
}

// settleAfter is how old an object is before it starts a pod: only then do the
// webhook and the guard of every API server know it, so that no pod is on its
// way that has no gate and was not seen. They were measured to need 15 ms.
const settleAfter = 2 * time.Second

// settled is how long the object needs to settle; 0 if it has. The clock of the
// API server may be ahead of ours; then what counts is when we saw it first.
func (w *world) settled() time.Duration {
	age := max(w.now.Sub(w.object.CreationTimestamp.Time), w.now.Sub(w.firstSeen))
	return max(settleAfter-age, 0)
}

// elder is an older object whose selector overlaps; it decides about the pods
// of both.
func (w *world) elder() *v1.StatefulSingleton {
	for _, other := range w.rivals {
		if older(other, w.object) {
			return other
		}
	}
	return nil
}

func (w *world) patience() time.Duration {
	return time.Duration(*w.object.Spec.MaxTransitionTime) * time.Second
}

// epoch is the highest that any grant of this object is known to have.
func (w *world) epoch() int64 {
	var highest int64
	if w.object != nil && w.object.Status.Holder != nil {
		highest = w.object.Status.Holder.Epoch
	}
	for _, m := range w.pods {
		highest = max(highest, m.epoch())
	}
	return highest
}

func (w *world) isHolder(m *member) bool {
	return w.object != nil && w.object.Status.Holder != nil && w.object.Status.Holder.UID == m.pod.UID
}

// Questions about a pod.

func (m *member) name() string { return m.pod.Name }

func (m *member) terminating() bool { return podstate.Terminating(m.pod) }

// granted tells whether the gate of this pod lets its program start.
func (m *member) granted() bool {
	uid, _, ok := strings.Cut(m.pod.Annotations[v1.AnnotationGrant], " ")
	return ok && uid == string(m.pod.UID)
}

// epoch is that of the pod's grant; 0 without one.
func (m *member) epoch() int64 {
	_, text, _ := strings.Cut(m.pod.Annotations[v1.AnnotationGrant], " ")
	epoch, err := strconv.ParseInt(text, 10, 64)
	if err != nil || !m.granted() {
		return 0
	}
	return epoch
}

func (m *member) protected() bool { return controllerutil.ContainsFinalizer(m.pod, v1.FinalizerPod) }

// mayRun tells whether the pod may be running its program now, or start it
// without asking anybody. The finalizer counts as a grant: it came with one.
func (w *world) mayRun(m *member) bool {
	switch {
	case stopped(m.pod) || w.fenced(m):
		return false
	case m.granted() || m.protected():
		return true
	case m.gated:
		// Named, and its grant is still to come, or on its way. One that is being
		// deleted cannot be granted any more: the API server refuses it.
		return w.isHolder(m) && !m.terminating()
	}
	return !w.newcomer(m)
}

// newcomer tells whether the pod was made after its object was deleted: the
// promise does not cover it.
func (w *world) newcomer(m *member) bool {
	return w.deleting() && !m.pod.CreationTimestamp.Before(w.object.DeletionTimestamp)
}

// waits tells whether the pod could be granted, once it is its turn.
func (w *world) waits(m *member) bool {
	return m.gated && !m.terminating() && !podstate.Ended(m.pod) && !w.mayRun(m) && !w.fenced(m)
}

// stopped tells whether nothing of the pod runs, and nothing will. The phase is
// not enough, since pod garbage collection sets it without asking the kubelet;
// nor are the containers, since one that crashed in a living pod has terminated
// for a moment, and starts again.
func stopped(pod *corev1.Pod) bool {
	if !podstate.Ended(pod) {
		return podstate.Terminating(pod) && !podstate.Scheduled(pod) // no Node will get it
	}
	statuses := slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses, pod.Status.EphemeralContainerStatuses)
	if len(statuses) == 0 {
		// The kubelet refused it before it ran, unless it ran once: then it had
		// our finalizer.
		return !collected(pod) && !controllerutil.ContainsFinalizer(pod, v1.FinalizerPod)
	}
	if len(statuses) < len(pod.Spec.InitContainers)+len(pod.Spec.Containers)+len(pod.Spec.EphemeralContainers) {
		return false
	}
	return !slices.ContainsFunc(statuses, func(s corev1.ContainerStatus) bool { return !over(&s, pod) })
}

// over tells whether a container of an ended pod has ended, or never started.
func over(s *corev1.ContainerStatus, pod *corev1.Pod) bool {
	if s.State.Terminated != nil {
		return true
	}
	return s.State.Waiting != nil && s.ContainerID == "" && s.RestartCount == 0 && s.LastTerminationState.Terminated == nil && !collected(pod)
}

// collected tells whether pod garbage collection ended the pod, which it does
// when the kubelet does not answer.
func collected(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue && c.Reason == "DeletionByPodGC"
	})
}

// held tells whether the gate of the pod runs, so that its program would start
// at once.
func (m *member) held() bool {
	for i := range m.pod.Status.InitContainerStatuses {
		if s := &m.pod.Status.InitContainerStatuses[i]; s.Name == v1.ContainerWait {
			return s.State.Running != nil
		}
	}
	running := 0
	for i := range m.pod.Status.ContainerStatuses {
		if s := &m.pod.Status.ContainerStatuses[i]; s.State.Running != nil && slices.Contains(m.program, s.Name) {
			running++
		}
	}
	return running > 0 && running == len(m.program)
}

// eligible tells whether a waiting pod could start its program now: it is on a
// Node that answers, and no container of it fails to start.
func (m *member) eligible() bool {
	return podstate.Scheduled(m.pod) && m.node.ready && !m.node.outOfService && m.stuckOn() == ""
}

// stuckOn says why a waiting pod cannot come as far as its gate; "" if nothing
// is in the way. Its program has not run yet, so that it is not to blame.
func (m *member) stuckOn() string {
	for _, s := range slices.Concat(m.pod.Status.InitContainerStatuses, m.pod.Status.ContainerStatuses) {
		isInit := slices.ContainsFunc(m.pod.Spec.InitContainers, func(c corev1.Container) bool { return c.Name == s.Name })
		if s.State.Waiting == nil || !isInit && !slices.Contains(m.program, s.Name) {
			continue
		}
		switch reason := s.State.Waiting.Reason; reason {
		case "", "PodInitializing", "ContainerCreating":
		default:
			return reason + " of container " + s.Name
		}
	}
	return ""
}

// byTurn orders waiting pods: those of the newest revision first, of these the
// ones that could start, those whose gate runs, and the oldest.
func (w *world) byTurn(a, b *member) int {
	first := func(a, b bool) int {
		if a == b {
			return 0
		}
		if a {
			return -1
		}
		return 1
	}
	return cmp.Or(
		first(a.eligible(), b.eligible()),
		first(!a.family.outdated, !b.family.outdated),
		first(a.held(), b.held()),
		a.pod.CreationTimestamp.Compare(b.pod.CreationTimestamp.Time),
		cmp.Compare(a.name(), b.name()),
	)
}

// ready tells whether the readiness condition of the pod says what it should.
func (m *member) ready() bool {
	return slices.ContainsFunc(m.pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == v1.ReadinessGate && c.Status == corev1.ConditionTrue
	})
}

// withReadiness is the pod with that readiness condition.
func withReadiness(pod *corev1.Pod, status corev1.ConditionStatus, now time.Time) *corev1.Pod {
	pod = pod.DeepCopy()
	c := corev1.PodCondition{Type: v1.ReadinessGate, Status: status, LastTransitionTime: metav1.NewTime(now), Reason: "WaitsForItsTurn"}
	if status == corev1.ConditionTrue {
		c.Reason = "Granted"
	}
	if i := slices.IndexFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == v1.ReadinessGate }); i >= 0 {
		pod.Status.Conditions[i] = c
		return pod
	}
	pod.Status.Conditions = append(pod.Status.Conditions, c)
	return pod
}
