package rules

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/engine"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/facts"
)

// Plan is the result of Decide: the actions of a pass.
type Plan = engine.Plan

// Reasons of actions.
const (
	reasonKeep       = "Keep"       // add our finalizer to the object
	reasonWrapper    = "Wrapper"    // create or update the ConfigMap
	ReasonProtect    = "Protect"    // add our finalizer to a pod
	ReasonRelease    = "Release"    // remove our finalizer
	ReasonFenced     = "Fenced"     // delete a pod whose machine is off, so that it does not start again
	reasonHolder     = "Holder"     // set status.holder, the first write of a grant
	ReasonGrant      = "Grant"      // annotate the pod, the second write of a grant
	reasonAdopt      = "Adopt"      // make an already granted pod the holder
	reasonRemind     = "Remind"     // patch a granted pod again, for its kubelet
	reasonReady      = "Ready"      // set the readiness condition
	ReasonSuperseded = "Superseded" // delete a pod for a newer revision
	ReasonTimeout    = "Timeout"    // delete a pod because a handover takes too long
	reasonReplaced   = "Replaced"   // set status.replaced before a pod is deleted for one of an unknown owner
	ReasonLetGo      = "LetGo"      // start a pod or remove its finalizer because its object is deleted
	ReasonRejected   = "Rejected"   // delete a pod so that its kubelet reports its end
	reasonTouch      = "Touch"      // wake an owner whose pods were refused
	ReasonBudget     = "Budget"     // create, update or delete the PodDisruptionBudget
	ReasonDetach     = "Detach"     // detach a pod on a cordoned Node from its ReplicaSet
	ReasonReturn     = "Return"     // return a detached pod to its ReplicaSet
	ReasonUnwanted   = "Unwanted"   // delete a detached pod whose Deployment is scaled to 0
	ReasonLease      = "Lease"      // create or delete the Lease, and the rights of pods on it
	ReasonAssign     = "Assign"     // write the holder of the Lease
	reasonNext       = "Next"       // name the successor in the Lease
	ReasonCrashLoop  = "CrashLoop"  // record that another pod takes over from a crash loop
	reasonExpired    = "Expired"    // delete a pod that does not renew the Lease, so that its owner creates another
	ReasonCordoned   = "Cordoned"   // delete a waiting pod on a cordoned Node
)

// deletions returns a delete action for each of the pods that passes the filter.
func deletions(members []*facts.Member, reason, why string, filter func(*facts.Member) bool) []action.Chain {
	var chains []action.Chain
	for _, m := range members {
		if filter(m) {
			chains = append(chains, Deletion(m, reason, why))
		}
	}
	return chains
}

// Deletion returns the action that deletes a pod.
func Deletion(m *facts.Member, reason, why string) action.Chain {
	return action.Chain{{Verb: action.Delete, Object: m.Pod, Reason: reason, Detail: why}}
}

// withReadiness returns a copy of the pod with that status of our readiness condition.
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
