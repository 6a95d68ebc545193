package statefulsingleton

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
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
		if podstate.Ended(m.pod) && podstate.Silent(m.pod) && !podstate.Collected(m.pod) && m.protected() && !m.terminating() && m.node.Ready {
			chains = append(chains, action.Chain{{Verb: action.Delete, Object: m.pod, Reason: reasonRejected,
				Detail: "its kubelet refused it and does not say whether it runs"}})
		}
	}
	p.Do(chains...)
}

// cameThrough reports whether the kubelet says that the gate of a pod without a grant
// has let something through. Our gate does not: so it is not ours, or was changed. It
// sees only what a gate never does before the grant, which is to end well, or to tell
// the startup probe that it is over.
func (m *member) cameThrough() bool {
	if m.granted() {
		return false
	}
	for i := range m.pod.Status.InitContainerStatuses {
		if s := &m.pod.Status.InitContainerStatuses[i]; s.Name == v1.ContainerWait && endedWell(s) {
			return slices.ContainsFunc(m.pod.Spec.InitContainers, isWait)
		}
	}
	for i := range m.pod.Status.ContainerStatuses {
		s := &m.pod.Status.ContainerStatuses[i]
		at := slices.IndexFunc(m.pod.Spec.Containers, func(c corev1.Container) bool { return c.Name == s.Name && isHeld(&c) })
		if at < 0 {
			continue
		}
		probe := m.pod.Spec.Containers[at].StartupProbe
		if endedWell(s) || probe != nil && isOurProbe(probe) && s.Started != nil && *s.Started {
			return true
		}
	}
	return false
}

func endedWell(s *corev1.ContainerStatus) bool {
	ended := func(t *corev1.ContainerStateTerminated) bool {
		return t != nil && t.ExitCode == 0 && t.Reason == "Completed"
	}
	return ended(s.State.Terminated) || ended(s.LastTerminationState.Terminated)
}
