package statefulsingleton

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/engine"
)

// plan is the result of decide: the actions of a pass.
type plan = engine.Plan

// Reasons of actions.
const (
	reasonKeep       = "Keep"       // add our finalizer to the object
	reasonWrapper    = "Wrapper"    // create or update the ConfigMap
	reasonProtect    = "Protect"    // add our finalizer to a pod
	reasonRelease    = "Release"    // remove our finalizer
	reasonFenced     = "Fenced"     // delete a pod whose machine is off, so that it does not start again
	reasonHolder     = "Holder"     // set status.holder, the first write of a grant
	reasonGrant      = "Grant"      // annotate the pod, the second write of a grant
	reasonAdopt      = "Adopt"      // make an already granted pod the holder
	reasonRemind     = "Remind"     // patch a granted pod again, for its kubelet
	reasonReady      = "Ready"      // set the readiness condition
	reasonSuperseded = "Superseded" // delete a pod for a newer revision
	reasonTimeout    = "Timeout"    // delete a pod because a handover takes too long
	reasonReplaced   = "Replaced"   // set status.replaced before a pod is deleted for one of an unknown owner
	reasonLetGo      = "LetGo"      // start a pod or remove its finalizer because its object is deleted
	reasonRejected   = "Rejected"   // delete a pod so that its kubelet reports its end
	reasonTouch      = "Touch"      // wake an owner whose pods were refused
	reasonBudget     = "Budget"     // create, update or delete the PodDisruptionBudget
	reasonDetach     = "Detach"     // detach a pod on a cordoned Node from its ReplicaSet
	reasonReturn     = "Return"     // return a detached pod to its ReplicaSet
	reasonUnwanted   = "Unwanted"   // delete a detached pod whose Deployment is scaled to 0
	reasonCordoned   = "Cordoned"   // delete a waiting pod on a cordoned Node
)

// rules are in order of priority. Rules of mode Beside act in addition to others and start
// no pod.
var rules = []engine.Rule[*facts, plan]{
	{Name: "release the pods of a deleted object", Act: letOrphansGo},
	{Name: "release all pods immediately", Act: letAllGo},
	{Name: "keep the object until its pods are released", Act: keepObject},
	{Name: "maintain the script", Act: keepWrapper, Mode: engine.Beside},
	{Name: "maintain the PodDisruptionBudget", Act: keepBudget, Mode: engine.Beside},
	{Name: "protect pods that may run", Act: protect, Mode: engine.Beside},
	{Name: "remove the finalizer of pods that have stopped", Act: release, Mode: engine.Beside},
	{Name: "repair readiness conditions", Act: repairReadiness, Mode: engine.Beside},
	{Name: "remind the kubelet of the grant", Act: remind, Mode: engine.Beside},
	{Name: "trigger owners whose pods were refused", Act: touchOwners, Mode: engine.Beside},
	{Name: "delete pods on machines that are off", Act: deleteFenced},
	{Name: "adopt a running pod", Act: adopt},
	{Name: "delete pods that their kubelet rejected", Act: endRefused},
	{Name: "delete a detached pod that is no longer needed", Act: endUnwanted},
	{Name: "return a detached pod to its ReplicaSet", Act: giveBack},
	{Name: "delete pods that block the newest revision", Act: clearWay},
	{Name: "complete the grant", Act: completeGrant},
	{Name: "grant the next pod", Act: grantNext},
	{Name: "delete a superseded pod", Act: supersede},
	{Name: "request a successor on another Node", Act: succeed},
	{Name: "end a handover that takes too long", Act: endTimeout},
	{Name: "finish the deletion", Act: finishDeletion},
}

// decide returns the actions for an object and its pods. It is pure: the same facts give
// the same plan.
func decide(f *facts) plan {
	p := plan{Undone: f.undone}
	engine.Decide(rules, f, &p, &p)
	for _, after := range append(f.reviews(), f.delay.again) {
		p.LookAgain(after)
	}
	return p
}

// deletions returns a delete action for each pod that passes the check.
func deletions(of []*member, reason, why string, goes func(*member) bool) []action.Chain {
	var chains []action.Chain
	for _, m := range of {
		if goes(m) {
			chains = append(chains, deletion(m, reason, why))
		}
	}
	return chains
}

func deletion(m *member, reason, why string) action.Chain {
	return action.Chain{{Verb: action.Delete, Object: m.pod, Reason: reason, Detail: why}}
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
