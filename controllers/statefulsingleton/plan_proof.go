package statefulsingleton

import (
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
)

// endRefused deletes pods that are Failed without a word about their containers:
// a kubelet that restarts refuses pods so that it ran before. Told to delete
// them, it ends what runs and says so; the finalizer waits for that.
func endRefused(w *world, p *plan) {
	if !w.serves() || w.deleting() {
		return
	}
	var chains []action.Chain
	for _, m := range p.blockers {
		if podstate.Ended(m.pod) && podstate.Silent(m.pod) && !podstate.Collected(m.pod) && m.protected() && !m.terminating() && m.node.ready {
			chains = append(chains, action.Chain{{Verb: action.Delete, Object: m.pod, Reason: reasonRejected,
				Detail: "its kubelet refused it and does not say whether it runs"}})
		}
	}
	p.do(chains...)
}
