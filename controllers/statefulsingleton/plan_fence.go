package statefulsingleton

import "github.com/stateful-operator/stateful-operator/controllers/internal/action"

// deleteFenced deletes pods that may have been running where the power is off, as
// the control plane does unless they tolerate the taint. It comes before another
// pod is granted beside them: a kubelet does not start a pod that is being deleted.
func deleteFenced(f *facts, p *plan) {
	if !f.serves() || f.releasesAll() {
		return
	}
	var chains []action.Chain
	for _, m := range f.blockers {
		if m.poweredOff && !m.terminating() && !isMirror(m.pod) {
			chains = append(chains, deletion(m, reasonFenced, "its Node "+m.pod.Spec.NodeName+" is out of service"))
		}
	}
	p.Do(chains...)
}
