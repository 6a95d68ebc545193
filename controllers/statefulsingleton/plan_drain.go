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

// With onEviction ReplaceFirst, a successor waits at its gate before a drain stops the
// holder. The PodDisruptionBudget blocks evictions of the holder while it is Ready. When
// its Node is cordoned, a waiting pod on another Node takes over as in a rollout: once it
// has been at its gate for long enough, the holder is deleted (supersede). If no pod waits,
// the holder is detached from its ReplicaSet, which then creates another pod. Meanwhile the
// Deployment is the holder's controller. So the holder is deleted together with the
// Deployment, and kubectl drain does not treat it as a pod without a controller. Its labels
// do not change. After an uncordon the holder is returned to the ReplicaSet, which deletes
// the waiting pod.
//
// These rules grant nothing. The rules of a grant count the holder as before.

// replacesFirst reports whether a successor has to wait on another Node before the holder
// may be evicted.
func (w *world) replacesFirst() bool {
	if !w.serves() || w.deleting() {
		return false
	}
	return w.object.Spec.OnEviction == v1.EvictionReplacesFirst
}

// leaver returns the active pod if it has to leave its cordoned Node; nil if it does not. A
// pod that is not Ready is left to the drain, which may evict it.
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

// whyNoSuccessor returns why no successor can be created on another Node while this pod
// runs, and the remedy; "" if one can.
func (f *facts) whyNoSuccessor(m *member) string {
	of := &m.family
	tolerated := nodestate.ToleratedCordon(m.pod.Spec.Tolerations)
	switch {
	case !f.madeUnder(m):
		return "it was not created under this StatefulSingleton; delete it once, and its replacement is"
	case of.deployment == "":
		return "it is not owned by a Deployment, and its owner recreates it only after it is gone"
	case !of.rolls:
		return fmt.Sprintf("Deployment %s has strategy Recreate, which deletes the old pod before it creates the next one; with RollingUpdate, the next pod can wait at its gate", of.deployment)
	case !of.surges:
		return fmt.Sprintf("maxSurge of Deployment %s is 0; with 1, the next pod can wait at its gate", of.deployment)
	case of.pinned:
		return fmt.Sprintf("the template of Deployment %s sets nodeName, and the next pod would start on the same Node; use nodeSelector or affinity", of.deployment)
	case tolerated != "":
		return fmt.Sprintf("the template of Deployment %s tolerates taint %s, and the next pod could start on a cordoned Node", of.deployment, tolerated)
	}
	return ""
}

// relieves reports whether a waiting pod can take over from a pod that leaves its Node.
func (m *member) relieves(old *member) bool {
	switch {
	case m.family.owner != old.family.owner,
		m.node.Cordoned:
		return false
	}
	return old.family.outdated || !m.family.outdated
}

// succeed makes sure that a successor of the leaving holder waits on another Node.
func succeed(f *facts, p *plan) {
	m := f.leaving
	if m == nil || !f.grants() || f.successorComes() {
		return
	}
	p.Do(deletions(f.waiting, reasonCordoned, "its Node is cordoned as well, and the next pod is created on another Node", f.goesToo)...)
	if len(p.Steps) > 0 || m.detached() || m.family.replicaSet == "" {
		return
	}
	p.Do(detach(m))
}

// successorComes reports whether a successor of the leaving pod exists. Pods of a rollout
// that fail to start do not count.
func (f *facts) successorComes() bool {
	return slices.ContainsFunc(f.successors(f.leaving), func(next *member) bool {
		return next.family.replicaSet == f.leaving.family.replicaSet || next.stuckOn() == ""
	})
}

// goesToo reports whether a waiting pod of the same Deployment is on a cordoned Node too,
// and its ReplicaSet would recreate it on another one.
func (f *facts) goesToo(m *member) bool {
	switch {
	case !m.node.Cordoned,
		m.family.owner != f.leaving.family.owner,
		f.whyNoSuccessor(m) != "":
		return false
	}
	return true
}

// detach returns the patch that detaches a pod from its ReplicaSet and records the
// ReplicaSet. The API server rejects it for any other version of the pod.
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
		Detail:    fmt.Sprintf("its Node %s is cordoned, and ReplicaSet %s creates another pod", pod.Spec.NodeName, from),
	}}
}

// setController replaces the controller of a pod; nil removes it.
func setController(pod *corev1.Pod, owner *metav1.OwnerReference) {
	pod.OwnerReferences = slices.DeleteFunc(pod.OwnerReferences, func(o metav1.OwnerReference) bool {
		return ptr.Deref(o.Controller, false)
	})
	if owner != nil {
		pod.OwnerReferences = append(pod.OwnerReferences, *owner)
	}
}

// detached reports whether the operator detached the pod from its ReplicaSet.
func (m *member) detached() bool { return detachedFrom(m.pod) != "" }

// detachedFrom returns the name of the ReplicaSet that a pod was detached from; "" if it
// was not. An annotation that was copied from another pod is ignored.
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

// giveBack returns a detached pod to its ReplicaSet when it no longer has to leave its
// Node. The ReplicaSet then has one pod too many, and deletes one that is not Ready. A pod
// of an older revision is not returned, because its ReplicaSet has no place for it.
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

// returnTo prepares a copy of a detached pod for adoption by its ReplicaSet, which adopts
// matching pods without a controller. It returns false if no ReplicaSet would adopt the
// pod.
func (m *member) returnTo(pod *corev1.Pod) bool {
	if !m.detached() || !m.family.adopts {
		return false
	}
	setController(pod, nil)
	delete(pod.Annotations, v1.AnnotationDetached)
	return true
}

// endUnwanted deletes a detached pod whose Deployment was scaled to 0, as its ReplicaSet
// would have done. When the Deployment is deleted, the garbage collector deletes the pod.
func endUnwanted(f *facts, p *plan) {
	if !f.serves() {
		return
	}
	p.Do(deletions(f.blockers, reasonUnwanted, "its Deployment no longer needs a pod", func(m *member) bool {
		if !m.detached() {
			return false
		}
		return m.lives() && f.madeUnder(m) && m.family.unwanted
	})...)
}

// notReplacedFirst returns a reason and message if a drain evicts the active pod before it
// has a successor, contrary to spec.onEviction.
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
		return v1.ReasonNotReplacedFirst, fmt.Sprintf("spec.onEviction is ReplaceFirst, but a drain evicts pod %s as with Replace: %s", m.name(), why)
	case f.budget != nil && !f.ownsBudget():
		return v1.ReasonNotReplacedFirst, fmt.Sprintf("spec.onEviction is ReplaceFirst, but evictions of pod %s are not refused: PodDisruptionBudget %s was not created by the operator; delete it, and the operator creates its own: kubectl -n %s delete pdb %s",
			m.name(), f.budget.Name, f.budget.Namespace, f.budget.Name)
	}
	return "", ""
}

// runsOn returns the text that a pod keeps running, and which Node it has to leave.
func (f *facts) runsOn(old *member) string {
	if old != f.leaving {
		return fmt.Sprintf("pod %s keeps running", old.name())
	}
	return fmt.Sprintf("pod %s has to leave cordoned Node %s and keeps running", old.name(), old.pod.Spec.NodeName)
}

// toStay returns the command that keeps the pod on its Node; "" if it does not have to
// leave.
func (f *facts) toStay(old *member) string {
	if old != f.leaving {
		return ""
	}
	return "; to keep it there: kubectl uncordon " + old.pod.Spec.NodeName
}
