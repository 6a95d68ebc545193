package rules

import (
	"github.com/stateful-operator/stateful-operator/controllers/internal/engine"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/facts"
)

// rules are in order of priority. Rules of mode Beside act in addition to others, and do not
// start pods. The other rules act one at a time, so at most one of them changes which pod may
// run in a pass.
var rules = []engine.Rule[*facts.Facts, Plan]{
	{Name: "release the pods of a deleted object", Act: releaseOrphans},
	{Name: "release all pods immediately", Act: releaseAll},
	{Name: "keep the object until its pods are released", Act: keepObject},
	{Name: "maintain the script", Act: keepWrapper, Mode: engine.Beside},
	{Name: "maintain the PodDisruptionBudget", Act: keepBudget, Mode: engine.Beside},
	{Name: "maintain the Lease", Act: maintainLease, Mode: engine.Beside},
	{Name: "name the successor in the Lease", Act: nameSuccessor, Mode: engine.Beside},
	{Name: "protect pods that may run", Act: protect, Mode: engine.Beside},
	{Name: "remove the finalizer of pods that have stopped", Act: unprotectStopped, Mode: engine.Beside},
	{Name: "repair readiness conditions", Act: repairReadiness, Mode: engine.Beside},
	{Name: "remind the kubelet of the grant", Act: remind, Mode: engine.Beside},
	{Name: "trigger owners whose pods were refused", Act: touchOwners, Mode: engine.Beside},
	{Name: "delete pods on machines that are off", Act: deleteFenced},
	{Name: "replace a pod that has lost its Lease", Act: replaceFenced},
	{Name: "adopt a running pod", Act: adopt},
	{Name: "delete pods that their kubelet rejected", Act: deleteRejected},
	{Name: "delete a detached pod that is no longer needed", Act: deleteUnwanted},
	{Name: "return a detached pod to its ReplicaSet", Act: returnDetached},
	{Name: "delete pods that block the newest revision", Act: unblockNewest},
	{Name: "complete the grant", Act: completeGrant},
	{Name: "grant the next pod", Act: grantNext},
	{Name: "delete a superseded pod", Act: supersede},
	{Name: "request a successor on another Node", Act: requestSuccessor},
	{Name: "end a handover that takes too long", Act: endLateHandover},
	{Name: "finish the deletion", Act: finishDeletion},
}

// Decide returns the actions for an object and its pods. It is pure: the same facts give
// the same plan.
func Decide(f *facts.Facts) Plan {
	p := Plan{Undone: f.Undone}
	engine.Decide(rules, f, &p, &p)
	for _, after := range append(f.RequeueDelays(), f.Delay.Again) {
		p.LookAgain(after)
	}
	return p
}
