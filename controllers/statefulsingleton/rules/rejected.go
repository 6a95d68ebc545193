package rules

import "github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/facts"

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
