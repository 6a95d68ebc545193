package rules

import (
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/facts"
)

// With onEviction ReplaceFirst, the budget refuses the eviction of the holder. If its Node is cordoned
// (Facts.Leaving), another pod has to wait on another Node before the holder is deleted. A Deployment
// does not create a second pod as long as it has one. So the operator detaches the holder from its
// ReplicaSet, which then creates another pod. Rule supersede deletes the holder when that pod is at its
// gate. If the Node is uncordoned, the holder is returned to its ReplicaSet, which deletes the other pod.

// requestSuccessor makes sure that a successor of the leaving holder waits on another Node.
func requestSuccessor(f *facts.Facts, p *Plan) {
	m := f.Leaving
	if m == nil || !f.Grants() || successorComes(f) {
		return
	}
	p.Do(deletions(f.Waiting, ReasonCordoned, "its Node is cordoned as well, and the next pod is created on another Node", func(m *facts.Member) bool { return onCordonedToo(f, m) })...)
	if len(p.Steps) > 0 || m.Detached() || m.Family.ReplicaSet == "" {
		return
	}
	p.Do(detach(m))
}

// successorComes reports whether a successor of the leaving pod exists that may reach its gate.
// A pod of a newer revision that fails to start does not count.
func successorComes(f *facts.Facts) bool {
	return slices.ContainsFunc(f.Successors(f.Leaving), func(next *facts.Member) bool {
		return next.Family.ReplicaSet == f.Leaving.Family.ReplicaSet || next.StuckOn() == ""
	})
}

// onCordonedToo reports whether a waiting pod of the same Deployment is on a cordoned Node too,
// and its ReplicaSet would recreate it on another one.
func onCordonedToo(f *facts.Facts, m *facts.Member) bool {
	switch {
	case !m.Node.Cordoned,
		m.Family.Owner != f.Leaving.Family.Owner,
		f.WhyNoSuccessor(m) != "":
		return false
	}
	return true
}

// detach returns the patch that detaches a pod from its ReplicaSet and records the
// ReplicaSet. The API server rejects it for any other version of the pod.
func detach(m *facts.Member) action.Chain {
	pod := m.Pod.DeepCopy()
	facts.SetController(pod, &metav1.OwnerReference{
		APIVersion: appsv1.SchemeGroupVersion.String(),
		Kind:       "Deployment",
		Name:       m.Family.Deployment,
		UID:        m.Family.Owner,
		Controller: ptr.To(true),
	})
	from := m.Family.ReplicaSet
	metav1.SetMetaDataAnnotation(&pod.ObjectMeta, v1.AnnotationDetached, string(pod.UID)+" "+from)
	return action.Chain{{
		Verb:      action.Patch,
		Object:    pod,
		From:      m.Pod,
		Unchanged: true,
		Reason:    ReasonDetach,
		Detail:    fmt.Sprintf("its Node %s is cordoned, and ReplicaSet %s creates another pod", pod.Spec.NodeName, from),
	}}
}

// returnDetached returns a detached pod to its ReplicaSet when it no longer has to leave its
// Node. The ReplicaSet then has one pod too many, and deletes one that is not Ready. A pod
// of an older revision is not returned, because its ReplicaSet has no place for it.
func returnDetached(f *facts.Facts, p *Plan) {
	if !f.Serves() {
		return
	}
	var chains []action.Chain
	for _, m := range f.Blockers {
		pod := m.Pod.DeepCopy()
		if !mayReturn(f, m) || !m.ReturnTo(pod) {
			continue
		}
		chains = append(chains, action.Chain{{
			Verb:      action.Patch,
			Object:    pod,
			From:      m.Pod,
			Unchanged: true,
			Reason:    ReasonReturn,
			Detail:    "to ReplicaSet " + m.Family.ReplicaSet,
		}})
	}
	p.Do(chains...)
}

// mayReturn reports whether the ReplicaSet of a pod has a place for it, and would keep it.
func mayReturn(f *facts.Facts, m *facts.Member) bool {
	switch {
	case m == f.Leaving,
		!m.Lives(),
		m.Family.Outdated,
		m.Family.Unwanted:
		return false
	}
	return f.Deleting() || podstate.Ready(m.Pod)
}

// deleteUnwanted deletes a detached pod whose Deployment was scaled to 0, as its ReplicaSet
// would have done. When the Deployment is deleted, the garbage collector deletes the pod.
func deleteUnwanted(f *facts.Facts, p *Plan) {
	if !f.Serves() {
		return
	}
	p.Do(deletions(f.Blockers, ReasonUnwanted, "its Deployment no longer needs a pod", func(m *facts.Member) bool {
		if !m.Detached() {
			return false
		}
		return m.Lives() && f.MadeUnder(m) && m.Family.Unwanted
	})...)
}
