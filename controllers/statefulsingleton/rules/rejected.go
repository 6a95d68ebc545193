package rules

import (
	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/causes"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/observe"
)

// deleteRejected deletes pods that are Failed without any container status: a restarted kubelet
// may refuse a pod that it was running. When the pod is deleted, the kubelet stops what
// still runs and reports that. The finalizer keeps the pod until then.
func deleteRejected(f *facts.Facts, p *Plan) {
	if !f.Serves() || f.ReleasesAll() {
		return
	}
	p.Do(deletions(f.Blockers, ReasonRejected, "its kubelet rejected it and does not report whether it runs", func(m *facts.Member) bool {
		return m.RefusedAfterItRan() && !m.Terminating() && m.Node.Ready
	})...)
}

// EndedByNode returns a reason and message of condition Degraded if the newest ended pod was
// rejected or evicted by its kubelet, and no pod is Ready or a handover is in progress. Its
// owner recreates the pod, and the new one may end in the same way.
func EndedByNode(f *facts.Facts) (reason, message string) {
	ready := f.Active != nil && podstate.Ready(f.Active.Pod)
	if ready && !f.Handover {
		return "", ""
	}
	m := observe.LastEnded(f)
	if m == nil {
		return "", ""
	}
	return v1.ReasonPodFailing, causes.Of(m.Pod).Tell("pod "+m.Name(), m.Pod.Namespace, m.Name())
}
