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

// plan is what decide wants done.
type plan = engine.Plan

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
	reasonReplaced   = "Replaced"   // status.replaced, before such a pod is deleted for one of an unknown owner
	reasonLetGo      = "LetGo"      // a pod started because its object goes
	reasonRejected   = "Rejected"   // a pod deleted so that its kubelet says what became of it
	reasonTouch      = "Touch"      // an owner woken whose pods were refused
	reasonBudget     = "Budget"     // the PodDisruptionBudget
	reasonDetach     = "Detach"     // a pod on a cordoned Node taken from its ReplicaSet
	reasonReturn     = "Return"     // and given back
	reasonUnwanted   = "Unwanted"   // a detached pod deleted whose Deployment wants none
	reasonCordoned   = "Cordoned"   // a waiting pod deleted whose Node is cordoned
)

// rules in order of importance. A rule that acts beside the others starts no pod.
var rules = []engine.Rule[*facts, plan]{
	{Name: "let the pods of a deleted object go", Act: letOrphansGo},
	{Name: "let all pods go at once", Act: letAllGo},
	{Name: "keep the object until its pods are released", Act: keepObject},
	{Name: "keep the script", Act: keepWrapper, Mode: engine.Beside},
	{Name: "keep the budget", Act: keepBudget, Mode: engine.Beside},
	{Name: "protect pods that may run", Act: protect, Mode: engine.Beside},
	{Name: "release pods that have stopped", Act: release, Mode: engine.Beside},
	{Name: "repair readiness conditions", Act: repairReadiness, Mode: engine.Beside},
	{Name: "remind the kubelet of the grant", Act: remind, Mode: engine.Beside},
	{Name: "wake owners whose pods were refused", Act: touchOwners, Mode: engine.Beside},
	{Name: "delete pods whose machine is off", Act: deleteFenced},
	{Name: "adopt a running pod", Act: adopt},
	{Name: "end pods that their kubelet refused", Act: endRefused},
	{Name: "end a detached pod that is not wanted", Act: endUnwanted},
	{Name: "give a detached pod back", Act: giveBack},
	{Name: "clear the way for the newest revision", Act: clearWay},
	{Name: "complete the grant", Act: completeGrant},
	{Name: "grant the next pod", Act: grantNext},
	{Name: "delete a superseded pod", Act: supersede},
	{Name: "have a successor made elsewhere", Act: succeed},
	{Name: "end a handover that takes too long", Act: endTimeout},
	{Name: "finish the deletion", Act: finishDeletion},
}

// decide says what to do about an object and its pods. It is pure: the same facts give
// the same plan.
func decide(f *facts) plan {
	p := plan{Undone: f.undone}
	engine.Decide(rules, f, &p, &p)
	for _, after := range append(f.reviews(), f.delay.again) {
		p.LookAgain(after)
	}
	return p
}

// deletions delete those of the pods that a check names, and say why.
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
