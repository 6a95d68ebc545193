package statefulsingleton

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
)

// family is what matters of who made a pod. The zero value is a pod that nobody
// controls.
type family struct {
	owner    types.UID // of the Deployment or StatefulSet
	name     string    // kind and name, for people
	outdated bool      // the owner wants a newer revision
	rolls    bool      // a Deployment that replaces its pods by surge
	// wanted is how many pods are to be Ready for a rollout to go on.
	wanted int32
}

// supersede deletes the running pod of an older revision once a pod of the
// newest is held and at rest. A rolling update with surge waits for the new pod to be Ready,
// which waits for the old one to stop: one of them must go, and it is the one
// that the Deployment would delete. Nothing is deleted while a pod that is not
// superseded would block the new one anyway. Of several pods that were not made under
// this object none is: their Deployment would not stop them all at one time.
func supersede(w *world, p *plan) {
	if !w.grants() || w.releasesAll() {
		return
	}
	var chains []action.Chain
	for _, m := range p.blockers {
		if m.terminating() {
			continue
		}
		if len(p.blockers) > 1 && !w.madeUnder(m) {
			return
		}
		if !supersededBy(m, p.waiting, func(next *member) bool { return next.eligible() && w.rests(next) || next.needsClaimOf(m) }) {
			return
		}
		chains = append(chains, action.Chain{{Verb: action.Delete, Object: m.pod, Reason: reasonSuperseded,
			Detail: "a pod of the newest revision waits for it"}})
	}
	p.Do(chains...)
}

// restsAfter is how long a gate has been seen to run before another pod is
// deleted for it. A kubelet that has just looked after a pod does so again only
// when it has listed the containers of its node anew, which it does every second
// (pod_workers.go: GetNewerThan). A grant that comes sooner waits for that, while
// nobody runs.
const restsAfter = 1500 * time.Millisecond

// rests tells whether the kubelet would show the pod a grant at once.
func (w *world) rests(m *member) bool {
	return m.held() && w.since(m.heldSince) >= restsAfter
}

// supersededBy tells whether one of the waiting pods is what the Deployment of m
// wants in its place.
func supersededBy(m *member, waiting []*member, also func(*member) bool) bool {
	return m.family.outdated && m.family.rolls && slices.ContainsFunc(waiting, func(next *member) bool {
		return next.family.owner == m.family.owner && !next.family.outdated && also(next)
	})
}

// needsClaimOf tells whether the pod cannot come as far as its gate because
// another has its volume: it is on another node, or found none, as the scheduler
// leaves a pod whose claim has mode ReadWriteOncePod.
func (m *member) needsClaimOf(other *member) bool {
	hindered := corev1.ReadWriteOncePod
	if podstate.Scheduled(m.pod) {
		if m.held() || !m.eligible() || m.pod.Spec.NodeName == other.pod.Spec.NodeName {
			return false
		}
		hindered = corev1.ReadWriteOnce
	}
	for name, mode := range m.claims {
		if _, shared := other.claims[name]; shared && mode == hindered {
			return true
		}
	}
	return false
}

// narrowest is the mode of a claim, if it lets few pods mount it.
func narrowest(claim *corev1.PersistentVolumeClaim) corev1.PersistentVolumeAccessMode {
	switch {
	case slices.Contains(claim.Spec.AccessModes, corev1.ReadWriteOncePod):
		return corev1.ReadWriteOncePod
	case len(claim.Spec.AccessModes) > 0 && onOneNode(claim):
		return corev1.ReadWriteOnce
	}
	return ""
}

// inTransition tells whether a handover is on its way: a pod waits, and either
// nobody runs, or who runs is to go.
func inTransition(p *plan) bool {
	return len(p.waiting) > 0 && (len(p.blockers) == 0 ||
		slices.ContainsFunc(p.blockers, func(m *member) bool { return m.terminating() || p.isToGo(m) }))
}

// isToGo tells whether a pod that nobody has deleted stands in the way of those
// that wait: it ended without proof, it has no gate, a newer revision takes its
// place, or it cannot come as far as its program while another could.
func (p *plan) isToGo(m *member) bool {
	return podstate.Ended(m.pod) || !m.gated && !m.granted() || p.isIdle(m) ||
		supersededBy(m, p.waiting, func(*member) bool { return true })
}

// isIdle reports whether a pod has its turn and cannot come as far as its program,
// while another could.
func (p *plan) isIdle(m *member) bool {
	return m.granted() && !m.begun() && slices.ContainsFunc(p.waiting, (*member).held)
}

// obstacle says what keeps a waiting pod from its gate; "" if nothing does.
func (m *member) obstacle() string {
	switch {
	case !podstate.Scheduled(m.pod):
		return fmt.Sprintf("has no Node yet; see: kubectl -n %s describe pod %s", m.pod.Namespace, m.name())
	case !m.node.Ready || m.node.OutOfService:
		return m.nodeTrouble()
	case m.stuckOn() != "":
		return fmt.Sprintf("cannot start: %s; see: kubectl -n %s describe pod %s", m.stuckOn(), m.pod.Namespace, m.name())
	}
	return ""
}

// nodeTrouble says why the Node of the pod tells nothing of it.
func (m *member) nodeTrouble() string {
	if m.node.Missing {
		return fmt.Sprintf("its Node %s does not exist any more", m.pod.Spec.NodeName)
	}
	return fmt.Sprintf("its Node %s does not answer", m.pod.Spec.NodeName)
}

// comingUp says why the old pod of a rollout runs on: its successor is not at
// its gate yet. It is "" where that is not what the handover waits for.
func comingUp(w *world, p *plan) string {
	if len(p.blockers) != 1 || p.blockers[0].terminating() || podstate.Ended(p.blockers[0].pod) {
		return ""
	}
	old, next := p.blockers[0], p.waiting[0]
	switch {
	case !supersededBy(old, p.waiting[:1], func(*member) bool { return true }):
		return ""
	case next.obstacle() != "":
		return fmt.Sprintf("pod %s runs on; pod %s is to take its place, and %s", old.name(), next.name(), next.obstacle())
	case !w.rests(next):
		return fmt.Sprintf("pod %s runs on until pod %s, which is to take its place, waits at its gate", old.name(), next.name())
	}
	return ""
}

// begun tells whether a container of the program has ever started. Where none of
// the names in spec.containers is in the pod, that is any container.
func (m *member) begun() bool {
	return slices.ContainsFunc(m.pod.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool {
		return (len(m.program) == 0 || slices.Contains(m.program, s.Name)) && (s.ContainerID != "" || s.State.Running != nil || s.State.Terminated != nil)
	})
}

// timedOut tells whether the handover has taken longer than the spec allows.
func timedOut(w *world, p *plan) bool {
	if w.object == nil || w.invalid != "" || !inTransition(p) {
		return false
	}
	began := w.object.Status.TransitionTimestamp
	return began != nil && w.since(began.Time) >= w.patience()
}

// endTimeout deletes the pods that are waited for, if the spec wants that and they
// were made under this object. One whose successor cannot come to its gate runs on:
// nothing would be won, and the next pod of its revision would be deleted as well.
func endTimeout(w *world, p *plan) {
	if !timedOut(w, p) || w.object.Spec.OnTimeout != v1.TimeoutDeletesOld || !w.serves() || w.deleting() {
		return
	}
	var chains []action.Chain
	for _, m := range p.blockers {
		goes := podstate.Ended(m.pod) || p.isIdle(m) || supersededBy(m, p.waiting, (*member).held)
		if goes && !m.terminating() && w.madeUnder(m) {
			chains = append(chains, action.Chain{{Verb: action.Delete, Object: m.pod, Reason: reasonTimeout,
				Detail: "the handover takes longer than maxTransitionTime"}})
		}
	}
	p.Do(chains...)
}

// AnnotationTouched on a ReplicaSet or StatefulSet is when it was woken.
const annotationTouched = v1.Prefix + "touched"

// touchOwners wakes the controllers whose pods the guard refused while the
// webhook was away: a ReplicaSet would try again after up to 16 minutes only.
func touchOwners(w *world, p *plan) {
	if w.object == nil || w.deleting() {
		return
	}
	var chains []action.Chain
	for _, owner := range w.refusedOwners {
		touched := owner.DeepCopyObject().(object)
		annotations := touched.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[annotationTouched] = w.now.UTC().Format(metav1.RFC3339Micro)
		touched.SetAnnotations(annotations)
		chains = append(chains, action.Chain{{Verb: action.Patch, Object: touched, From: owner, Reason: reasonTouch}})
	}
	p.Do(chains...)
}

// object is anything that can be patched.
type object interface {
	metav1.Object
	runtime.Object
}
