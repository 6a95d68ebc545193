package statefulsingleton

import (
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/nodestate"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
)

// With onEviction ReplaceFirst a drain does not end the program. The budget refuses evictions
// of the holder while it is Ready. When its Node is cordoned, a waiting pod on another Node
// takes its place, as in a rollout: once that one rests at its gate, the holder is deleted
// (supersede). Where no pod waits, one is made: the holder is detached from its ReplicaSet,
// which then lacks a pod. The Deployment is its controller meanwhile, so that it goes with
// the Deployment, and kubectl drain does not take it for a pod without one. None of its labels
// change. After an uncordon it is given back, and the ReplicaSet deletes the pod that waits.
//
// None of this grants anything: the rules of a grant count the holder as before.

// replacesFirst reports whether a pod is to wait elsewhere before the holder is evicted.
func (w *world) replacesFirst() bool {
	if !w.serves() || w.deleting() {
		return false
	}
	return w.object.Spec.OnEviction == v1.EvictionReplacesFirst
}

// leaver is the active pod if it is to leave its cordoned Node; nil if it is not. One that
// is not Ready is left to the drain, which may evict it.
func (f *facts) leaver() *member {
	m := f.active
	switch {
	case !f.replacesFirst(),
		m == nil,
		len(f.blockers) > 1,
		!m.node.Cordoned,
		!m.holder,
		!m.granted(),
		!m.lives(),
		m.family.unwanted,
		f.whyNoSuccessor(m) != "":
		return nil
	}
	if m.detached() || podstate.Ready(m.pod) {
		return m
	}
	return nil
}

// whyNoSuccessor says why no pod can be made elsewhere before this one goes, and what helps;
// "" if one can.
func (f *facts) whyNoSuccessor(m *member) string {
	of := &m.family
	tolerated := nodestate.ToleratedCordon(m.pod.Spec.Tolerations)
	switch {
	case !f.madeUnder(m):
		return "it was not created under this StatefulSingleton; delete it, and the next one is"
	case of.deployment == "":
		return "it is not of a Deployment, and what made it makes the next one when it is gone"
	case !of.rolls:
		return fmt.Sprintf("Deployment %s has strategy Recreate, which is to have one pod at a time; RollingUpdate lets the next one wait at its gate", of.deployment)
	case !of.surges:
		return fmt.Sprintf("maxSurge of Deployment %s is 0; with 1 the next pod may wait at its gate", of.deployment)
	case of.pinned:
		return fmt.Sprintf("the template of Deployment %s names a node, and the next pod would start there; use nodeSelector or affinity", of.deployment)
	case tolerated != "":
		return fmt.Sprintf("the template of Deployment %s tolerates taint %s, and the next pod could start on a cordoned node", of.deployment, tolerated)
	}
	return ""
}

// relieves reports whether a waiting pod can take the place of one that leaves its Node.
func (m *member) relieves(old *member) bool {
	switch {
	case m.family.owner != old.family.owner,
		m.node.Cordoned:
		return false
	}
	return old.family.outdated || !m.family.outdated
}

// succeed sees to it that a pod waits where the holder that leaves its Node is not.
func succeed(f *facts, p *plan) {
	m := f.leaving
	if m == nil || !f.grants() || f.successorComes() {
		return
	}
	p.Do(deletions(f.waiting, reasonCordoned, "its Node is cordoned too, and the next one is made elsewhere", f.goesToo)...)
	if len(p.Steps) > 0 || m.detached() || m.family.replicaSet == "" {
		return
	}
	p.Do(detach(m))
}

// successorComes reports whether a pod that can take the place of the one that leaves is
// there. A rollout that cannot start its pods does not count.
func (f *facts) successorComes() bool {
	return slices.ContainsFunc(f.successors(f.leaving), func(next *member) bool {
		return next.family.replicaSet == f.leaving.family.replicaSet || next.stuckOn() == ""
	})
}

// goesToo reports whether a waiting pod of the same Deployment is on a cordoned Node as well,
// and its ReplicaSet would make it on another one.
func (f *facts) goesToo(m *member) bool {
	switch {
	case !m.node.Cordoned,
		m.family.owner != f.leaving.family.owner,
		f.whyNoSuccessor(m) != "":
		return false
	}
	return true
}

// detach takes a pod from its ReplicaSet, and says from which, in one patch that the API
// server refuses for any other version of the pod.
func detach(m *member) action.Chain {
	pod := m.pod.DeepCopy()
	setController(pod, &metav1.OwnerReference{
		APIVersion: appsv1.SchemeGroupVersion.String(),
		Kind:       "Deployment",
		Name:       m.family.deployment,
		UID:        m.family.owner,
		Controller: ptr.To(true),
	})
	from := m.family.replicaSet
	metav1.SetMetaDataAnnotation(&pod.ObjectMeta, v1.AnnotationDetached, string(pod.UID)+" "+from)
	return action.Chain{{
		Verb:      action.Patch,
		Object:    pod,
		From:      m.pod,
		Unchanged: true,
		Reason:    reasonDetach,
		Detail:    fmt.Sprintf("its Node %s is cordoned, and ReplicaSet %s makes another pod", pod.Spec.NodeName, from),
	}}
}

// setController makes an owner the one that controls a pod; nil is none.
func setController(pod *corev1.Pod, owner *metav1.OwnerReference) {
	pod.OwnerReferences = slices.DeleteFunc(pod.OwnerReferences, func(o metav1.OwnerReference) bool {
		return ptr.Deref(o.Controller, false)
	})
	if owner != nil {
		pod.OwnerReferences = append(pod.OwnerReferences, *owner)
	}
}

// detached reports whether the operator took the pod from its ReplicaSet.
func (m *member) detached() bool { return detachedFrom(m.pod) != "" }

// detachedFrom is the name of the ReplicaSet that a pod was taken from; "" if it was not. The
// text of another pod means nothing.
func detachedFrom(pod *corev1.Pod) string {
	uid, set, _ := strings.Cut(pod.Annotations[v1.AnnotationDetached], " ")
	owner := metav1.GetControllerOf(pod)
	switch {
	case uid != string(pod.UID),
		owner == nil,
		owner.Kind != "Deployment":
		return ""
	}
	return set
}

// giveBack lets the ReplicaSet of a detached pod have it again, once it need not leave its
// Node. The ReplicaSet has one too many then, and deletes one that is not Ready. Of an older
// revision it would have no place for it.
func giveBack(f *facts, p *plan) {
	if !f.serves() {
		return
	}
	var chains []action.Chain
	for _, m := range f.blockers {
		pod := m.pod.DeepCopy()
		if !f.mayReturn(m) || !m.returnTo(pod) {
			continue
		}
		chains = append(chains, action.Chain{{
			Verb:      action.Patch,
			Object:    pod,
			From:      m.pod,
			Unchanged: true,
			Reason:    reasonReturn,
			Detail:    "to ReplicaSet " + m.family.replicaSet,
		}})
	}
	p.Do(chains...)
}

// mayReturn reports whether the ReplicaSet of a pod has a place for it, and would keep it.
func (f *facts) mayReturn(m *member) bool {
	switch {
	case m == f.leaving,
		!m.lives(),
		m.family.outdated,
		m.family.unwanted:
		return false
	}
	return f.deleting() || podstate.Ready(m.pod)
}

// returnTo makes a copy of a detached pod one that its ReplicaSet takes back: by its labels,
// since it has no controller. It is false where no ReplicaSet would.
func (m *member) returnTo(pod *corev1.Pod) bool {
	if !m.detached() || !m.family.adopts {
		return false
	}
	setController(pod, nil)
	delete(pod.Annotations, v1.AnnotationDetached)
	return true
}

// endUnwanted deletes a detached pod whose Deployment was scaled to 0: its ReplicaSet would
// have. When the Deployment is deleted, the garbage collector sees to it.
func endUnwanted(f *facts, p *plan) {
	if !f.serves() {
		return
	}
	p.Do(deletions(f.blockers, reasonUnwanted, "its Deployment wants no pod any more", func(m *member) bool {
		if !m.detached() {
			return false
		}
		return m.lives() && f.madeUnder(m) && m.family.unwanted
	})...)
}

// notReplacedFirst finds that a drain evicts the active pod although another one is to be
// made first.
func notReplacedFirst(f *facts) (reason, message string) {
	m := f.active
	switch {
	case !f.replacesFirst(),
		m == nil,
		!m.lives(),
		!m.granted():
		return "", ""
	}
	why := f.whyNoSuccessor(m)
	switch {
	case f.budget == nil && why != "":
		return v1.ReasonNotReplacedFirst, fmt.Sprintf("spec.onEviction is ReplaceFirst, and a drain evicts pod %s as with Replace: %s", m.name(), why)
	case f.budget != nil && !f.ownsBudget():
		return v1.ReasonNotReplacedFirst, fmt.Sprintf("spec.onEviction is ReplaceFirst, and evictions of pod %s are not refused: PodDisruptionBudget %s is not the operator's; delete it, and the operator makes its own: kubectl -n %s delete pdb %s",
			m.name(), f.budget.Name, f.budget.Namespace, f.budget.Name)
	}
	return "", ""
}

// runsOn says that a pod does, and what it is to leave.
func (f *facts) runsOn(old *member) string {
	if old != f.leaving {
		return fmt.Sprintf("pod %s runs on", old.name())
	}
	return fmt.Sprintf("pod %s is to leave Node %s, which is cordoned, and runs on", old.name(), old.pod.Spec.NodeName)
}

// toStay is the command by which a pod need not leave its Node; "" if it does not leave it.
func (f *facts) toStay(old *member) string {
	if old != f.leaving {
		return ""
	}
	return "; to keep it there: kubectl uncordon " + old.pod.Spec.NodeName
}
