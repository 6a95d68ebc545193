package statefulsingleton

import (
	"time"

	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
)

// fenced tells whether the pod cannot run any more, by an administrator's word:
// its machine is off, and it will not start when that is switched on again,
// because somebody has deleted the pod, or it has ended.
func (w *world) fenced(m *member) bool {
	return w.powerless(m) && (m.terminating() || podstate.Ended(m.pod))
}

// powerless tells whether the machine of the pod is off. The taint is to be
// taken off after the machine is on again, so that it says nothing about a Node
// that is Ready.
func (w *world) powerless(m *member) bool {
	return m.node.OutOfService && !m.node.Ready || m.node.Missing && w.since(m.node.MissingSince) >= fenceAfter
}

// fenceAfter is for how long a Node must be gone before its machine counts as
// off: one that is deleted by mistake comes back when its kubelet restarts.
const fenceAfter = time.Minute

// deleteFenced deletes pods that may have been running where the power is off, as
// the control plane does unless they tolerate the taint. It comes before anybody
// is granted beside them: a kubelet does not start a pod that is being deleted.
func deleteFenced(w *world, p *plan) {
	if !w.serves() || w.releasesAll() {
		return
	}
	var chains []action.Chain
	for _, m := range p.blockers {
		if w.powerless(m) && !m.terminating() && !isMirror(m.pod) {
			chains = append(chains, action.Chain{{Verb: action.Delete, Object: m.pod, Reason: reasonFenced,
				Detail: "its Node " + m.pod.Spec.NodeName + " is out of service"}})
		}
	}
	p.Do(chains...)
}
