package statefulsingleton

import (
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/engine"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
)

// plan is what decide wants done, and what it knows about why.
type plan struct {
	engine.Plan

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
	reasonFenced     = "Fenced"     // a pod whose machine is off, deleted so that it does not start again
	reasonHolder     = "Holder"     // status.holder, the first write of a grant
	reasonGrant      = "Grant"      // the second
	reasonAdopt      = "Adopt"      // a pod granted earlier becomes the holder
	reasonRemind     = "Remind"     // the kubelet of a grant
	reasonReady      = "Ready"      // the readiness condition
	reasonSuperseded = "Superseded" // a pod deleted for a newer revision
	reasonTimeout    = "Timeout"    // a pod deleted because a handover takes too long
	reasonLetGo      = "LetGo"      // a pod started because its object goes
	reasonRejected   = "Rejected"   // a pod deleted so that its kubelet says what became of it
	reasonTouch      = "Touch"      // an owner woken whose pods were refused
)

// rules in order of importance. A rule that acts beside the others makes nobody start.
var rules = []engine.Rule[*world, plan]{
	{Name: "let the pods of a deleted object go", Act: letOrphansGo},
	{Name: "let all pods go at once", Act: letAllGo},
	{Name: "keep the object until its pods are released", Act: keepObject},
	{Name: "keep the script", Act: keepWrapper, Mode: engine.Beside},
	{Name: "protect pods that may run", Act: protect, Mode: engine.Beside},
	{Name: "release pods that have stopped", Act: release, Mode: engine.Beside},
	{Name: "repair readiness conditions", Act: repairReadiness, Mode: engine.Beside},
	{Name: "remind the kubelet of the grant", Act: remind, Mode: engine.Beside},
	{Name: "wake owners whose pods were refused", Act: touchOwners, Mode: engine.Beside},
	{Name: "delete pods whose machine is off", Act: deleteFenced},
	{Name: "adopt a running pod", Act: adopt},
	{Name: "end pods that their kubelet refused", Act: endRefused},
	{Name: "clear the way for the newest revision", Act: clearWay},
	{Name: "complete the grant", Act: completeGrant},
	{Name: "grant the next pod", Act: grantNext},
	{Name: "delete a superseded pod", Act: supersede},
	{Name: "end a handover that takes too long", Act: endTimeout},
	{Name: "finish the deletion", Act: finishDeletion},
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
	engine.Decide(rules, w, &p, &p.Plan)
	p.lookAgainFor(w)
	return p
}

// rests tells whether nothing is to be done, and no pod waits for it.
func (p *plan) rests() bool { return len(p.Steps) == 0 && len(p.waiting) == 0 }

// lookAgainFor wakes the key for what no event tells: a Node's absence, a new
// object that settles, a gate that comes to rest, a handover's end of patience.
func (p *plan) lookAgainFor(w *world) {
	for _, m := range p.blockers {
		if m.node.Missing {
			p.LookAgain(w.until(m.node.MissingSince, fenceAfter))
		}
	}
	if w.object == nil {
		return
	}
	p.LookAgain(w.settled())
	p.LookAgain(w.mirrorMayReturn())
	if w.unguarded != "" {
		p.LookAgain(2 * guardInterval)
	}
	if t := w.object.Status.TransitionTimestamp; t != nil && inTransition(p) {
		p.LookAgain(w.until(t.Time, w.patience()))
	}
	for _, m := range p.waiting {
		if m.held() {
			p.LookAgain(w.until(m.heldSince, restsAfter))
		}
	}
	p.LookAgain(w.ownersDue.Sub(w.now))
}

// Questions about time. Time in which this process could not look, because it
// was frozen, did not lead or had no API server, does not count: nobody is blamed
// for it.

// since is how much time has passed.
func (w *world) since(from time.Time) time.Duration { return w.watch.Elapsed(from, w.now) }

// until is how much is left of a time that began then.
func (w *world) until(from time.Time, d time.Duration) time.Duration {
	return w.watch.Deadline(from, d).Sub(w.now)
}

// Questions about the object.

func (w *world) deleting() bool { return w.object != nil && w.object.DeletionTimestamp != nil }

// releasesAll tells whether a person, or the end of the namespace, has ended the
// promise for all pods at once.
func (w *world) releasesAll() bool {
	return w.deleting() && (w.namespaceGoes || w.object.Annotations[v1.AnnotationReleaseNow] == v1.True)
}

// serves tells whether this object decides about pods; grants, whether it may
// start any now.
func (w *world) serves() bool {
	return w.object != nil && w.invalid == "" && !w.crowded && w.elder() == nil
}

func (w *world) grants() bool {
	return w.serves() && w.settled() == 0 && w.mirrorMayReturn() == 0
}

// mirrorReturns is how long nobody starts after a static pod is not shown any
// more. Whoever deletes it by the API deletes its mirror alone: the program runs
// on, and its kubelet shows it again when it looks after that pod next: after 60
// to 90 seconds (pod_workers.go: the resync interval, with jitter); 80 were seen.
const mirrorReturns = 2 * time.Minute

// mirrorMayReturn is how much of that is left.
func (w *world) mirrorMayReturn() time.Duration {
	if w.mirrorGone.IsZero() {
		return 0
	}
	return max(w.until(w.mirrorGone, mirrorReturns), 0)
}

// settleAfter is how old an object is before it starts a pod: only then do the
// webhook and the guard of every API server know it, so that no pod is on its
// way that has no gate and was not seen. They were measured to need 15 ms.
const settleAfter = 2 * time.Second

// settled is how long the object needs to settle; 0 if it has. What counts is
// when this process saw it first: the clock of the API server may be another.
// One that has started a pod is not new.
func (w *world) settled() time.Duration {
	if w.object.Status.Holder != nil {
		return 0
	}
	return max(w.until(w.firstSeen, settleAfter), 0)
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

// madeUnder reports whether the pod was created under this very object: it has the
// gate, and the webhook wrote the object's UID into it. A pod that was there before,
// or came past the webhook, is not the object's to delete; labels and times can be
// had otherwise.
func (w *world) madeUnder(m *member) bool {
	return m.gated && m.pod.Annotations[v1.AnnotationSingletonUID] == string(w.object.UID)
}

// copied tells whether the pod was made from the text of another, whose grant it
// carries; the finalizer came with it and says nothing.
func (m *member) copied() bool { return m.pod.Annotations[v1.AnnotationGrant] != "" && !m.granted() }

func (m *member) protected() bool { return controllerutil.ContainsFinalizer(m.pod, v1.FinalizerPod) }

// mayRun tells whether the pod may be running its program now, or start it
// without asking anybody. The finalizer counts as a grant: it came with one.
func (w *world) mayRun(m *member) bool {
	switch {
	case podstate.Stopped(m.pod, m.protected()) || w.fenced(m):
		return false
	case m.granted() || m.protected() && (!m.gated || !m.copied()):
		return true
	case m.gated:
		// Named, and its grant is still to come, or on its way. One that is being
		// deleted cannot be granted any more: the API server refuses it. One that has
		// ended is another version than the grant is bound to, and gets none.
		return w.isHolder(m) && !m.terminating() && !podstate.Ended(m.pod)
	}
	return !w.newcomer(m)
}

// newcomer tells whether the pod was made after its object was deleted: the
// promise does not cover it. One that was made in the same second may have come
// before.
func (w *world) newcomer(m *member) bool {
	return w.deleting() && w.object.DeletionTimestamp.Before(&m.pod.CreationTimestamp)
}

// waits tells whether the pod could be granted, once it is its turn.
func (w *world) waits(m *member) bool {
	return m.gated && !m.terminating() && !podstate.Ended(m.pod) && !w.mayRun(m) && !w.fenced(m)
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
