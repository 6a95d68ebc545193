package statefulsingleton

import "github.com/stateful-operator/stateful-operator/controllers/internal/action"

// deleteFenced deletes pods that may have been running on a machine that is off, as the
// control plane does unless they tolerate the taint. It acts before another pod is granted:
// a kubelet does not start a terminating pod.
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
