package statefulsingleton

import (
	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
)

// endRefused deletes pods that are Failed without a word about their containers:
// a kubelet that restarts refuses pods so that it ran before. Told to delete
// them, it ends what runs and says so; the finalizer waits for that.
func endRefused(f *facts, p *plan) {
	if !f.serves() || f.releasesAll() {
		return
	}
	p.Do(deletions(f.blockers, reasonRejected, "its kubelet refused it and does not say whether it runs", func(m *member) bool {
		return m.refusedAfterItRan() && !m.terminating() && m.node.Ready
	})...)
}

// refusedAfterItRan reports whether a kubelet refused a pod that it may have run before.
func (m *member) refusedAfterItRan() bool {
	if !podstate.Ended(m.pod) || podstate.Collected(m.pod) {
		return false
	}
	return podstate.Silent(m.pod) && m.protected()
}
