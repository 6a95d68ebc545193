package rules

import (
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/facts"
)

// deleteFenced deletes pods that may have been running on a machine that is off, as the
// control plane does unless they tolerate the taint. It acts before another pod is granted:
// a kubelet does not start a terminating pod.
func deleteFenced(f *facts.Facts, p *Plan) {
	if !f.Serves() || f.ReleasesAll() {
		return
	}
	var chains []action.Chain
	for _, m := range f.Blockers {
		if m.PoweredOff && !m.Terminating() && !facts.IsMirror(m.Pod) {
			chains = append(chains, Deletion(m, ReasonFenced, "its Node "+m.Pod.Spec.NodeName+" is out of service"))
		}
	}
	p.Do(chains...)
}
