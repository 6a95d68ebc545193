package statefulsingleton

import (
	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/causes"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
)

// endRefused deletes pods that are Failed without any container status: a restarted kubelet
// may refuse a pod that it was running. When the pod is deleted, the kubelet stops what
// still runs and reports that. The finalizer keeps the pod until then.
func endRefused(f *facts, p *plan) {
	if !f.serves() || f.releasesAll() {
		return
	}
	p.Do(deletions(f.blockers, reasonRejected, "its kubelet rejected it and does not report whether it runs", func(m *member) bool {
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

// endedByNode returns a reason and message if the newest ended pod was refused or evicted
// by its kubelet, and no pod is Ready or a handover is in progress. Its owner recreates the
// pod, and the new one may end the same way.
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
