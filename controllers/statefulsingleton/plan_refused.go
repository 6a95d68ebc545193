package statefulsingleton

import (
	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/causes"
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

// endedByNode returns the cause of the newest pod that its kubelet refused or evicted, while
// no pod is Ready or one waits for a handover: its owner recreates it, and the next one may
// end the same way.
func endedByNode(f *facts) (reason, message string) {
	serves := f.active != nil && podstate.Ready(f.active.pod)
	if serves && !f.handover {
		return "", ""
	}
	m := lastEnded(f)
	if m == nil {
		return "", ""
	}
	return v1.ReasonPodFailing, causes.Of(m.pod).Tell("pod "+m.name(), m.pod.Namespace, m.name())
}
