package statefulsingleton

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
)

// supersede deletes the running pod of an older revision once a pod of the
// newest is held. A rolling update with surge waits for the new pod to be Ready,
// which waits for the old one to stop: one of them must go, and it is the one
// that the Deployment would delete. Nothing is deleted while a pod that is not
// superseded would block the new one anyway.
func supersede(w *world, p *plan) {
	if !w.grants() || w.releasesAll() {
		return
	}
	var chains []action.Chain
	for _, m := range p.blockers {
		if m.terminating() {
			continue
		}
		if !supersededBy(m, p.waiting, func(next *member) bool { return next.eligible() && next.held() }) {
			return
		}
		chains = append(chains, action.Chain{{Verb: action.Delete, Object: m.pod, Reason: reasonSuperseded,
			Detail: "a pod of the newest revision waits for it"}})
	}
	p.do(chains...)
}

// supersededBy tells whether one of the waiting pods is what the Deployment of m
// wants in its place.
func supersededBy(m *member, waiting []*member, also func(*member) bool) bool {
	return m.family.outdated && m.family.rolls && slices.ContainsFunc(waiting, func(next *member) bool {
		return next.family.owner == m.family.owner && !next.family.outdated && also(next)
	})
}

// inTransition tells whether a handover is on its way: a pod waits, and either
// nobody runs, or who runs is to stop.
func inTransition(p *plan) bool {
	if len(p.waiting) == 0 {
		return false
	}
	for _, m := range p.blockers {
		leaving := m.terminating() || m.pod.Status.Phase == "Failed" || m.pod.Status.Phase == "Succeeded" ||
			!m.gated && !m.granted() || supersededBy(m, p.waiting, func(*member) bool { return true })
		if leaving {
			return true
		}
	}
	// A holder that is granted in this moment is no handover any more.
	return len(p.blockers) == 0
}

// timedOut tells whether the handover has taken longer than the spec allows.
func timedOut(w *world, p *plan) bool {
	if w.object == nil || w.invalid != "" || !inTransition(p) {
		return false
	}
	began := w.object.Status.TransitionTimestamp
	return began != nil && w.now.Sub(began.Time) >= w.patience()
}

// endTimeout deletes the pods that are waited for, if the spec wants that.
func endTimeout(w *world, p *plan) {
	if !timedOut(w, p) || w.object.Spec.OnTimeout != v1.TimeoutDeletesOld || w.elder() != nil || w.deleting() {
		return
	}
	var chains []action.Chain
	for _, m := range p.blockers {
		if !m.terminating() {
			chains = append(chains, action.Chain{{Verb: action.Delete, Object: m.pod, Reason: reasonTimeout,
				Detail: "the handover takes longer than maxTransitionTime"}})
		}
	}
	p.do(chains...)
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
	p.do(chains...)
}

// object is anything that can be patched.
type object interface {
	metav1.Object
	runtime.Object
}
