package statefulsingleton

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
)

// newestPatience is for how long a pod of an older revision lets one of the
// newest come as far as its gate. It would be superseded in a moment.
const newestPatience = 10 * time.Second

// next is the pod to start; nil if none can. Where several wait, only one whose
// gate runs is started: another might never come that far, and would keep those
// that have from starting. after is when to look again.
func (w *world) next(waiting []*member) (next *member, after time.Duration) {
	if len(waiting) == 1 {
		if m := waiting[0]; m.eligible() && w.lasts(m) {
			return m, 0
		}
		return nil, 0
	}
	for _, m := range waiting { // in the order of byTurn
		switch {
		case !m.eligible():
		case m.held() && w.lasts(m):
			return m, 0
		case !m.family.outdated && slices.ContainsFunc(waiting, func(o *member) bool { return o.family.outdated && o.held() }):
			if left := w.until(m.pod.CreationTimestamp.Time, newestPatience); left > 0 {
				return nil, left
			}
		}
	}
	return nil, 0
}

// clearWay deletes waiting pods of an older revision that have the volume which
// one of the newest needs on another node. They have never run their program.
func clearWay(w *world, p *plan) {
	if !w.grants() || w.releasesAll() {
		return
	}
	var chains []action.Chain
	for _, m := range p.waiting {
		if m.family.outdated && slices.ContainsFunc(slices.Concat(p.waiting, p.blockers), func(n *member) bool {
			return n.family.owner == m.family.owner && !n.family.outdated && n.family.rolls && !n.terminating() && n.needsClaimOf(m)
		}) {
			chains = append(chains, action.Chain{{Verb: action.Delete, Object: m.pod, Reason: reasonSuperseded,
				Detail: "it has the volume that a pod of the newest revision needs"}})
		}
	}
	p.Do(chains...)
}

// lasts tells whether the gate does not end by itself. The script does, in an
// image without a shell, after a moment in which it is seen to run. Before the
// pod's turn that is known to be the script's fault; after it, it could be the
// program's.
func (w *world) lasts(m *member) bool {
	return !slices.ContainsFunc(m.pod.Spec.Containers, runsScript) || w.rests(m)
}

func runsScript(c corev1.Container) bool { return len(c.Command) > 0 && c.Command[0] == v1.ScriptInPod }

// held tells whether the gate of the pod runs, so that its program would start
// at once.
func (m *member) held() bool {
	for i := range m.pod.Status.InitContainerStatuses {
		if s := &m.pod.Status.InitContainerStatuses[i]; s.Name == v1.ContainerWait {
			return s.State.Running != nil
		}
	}
	running := 0
	for i := range m.pod.Status.ContainerStatuses {
		if s := &m.pod.Status.ContainerStatuses[i]; s.State.Running != nil && slices.Contains(m.program, s.Name) {
			running++
		}
	}
	return running > 0 && running == len(m.program)
}

// eligible tells whether a waiting pod could start its program now: it is on a
// Node that answers, whose kubelet has taken it, and no container of it fails to
// start.
func (m *member) eligible() bool {
	return podstate.Scheduled(m.pod) && m.node.Ready && !m.node.OutOfService && !podstate.Silent(m.pod) && m.stuckOn() == ""
}

// stuckOn says why a waiting pod cannot come as far as its gate; "" if nothing
// is in the way. Its program has not run yet, so that it is not to blame.
func (m *member) stuckOn() string {
	for _, s := range slices.Concat(m.pod.Status.InitContainerStatuses, m.pod.Status.ContainerStatuses) {
		isInit := slices.ContainsFunc(m.pod.Spec.InitContainers, func(c corev1.Container) bool { return c.Name == s.Name })
		if s.State.Waiting == nil || !isInit && !slices.Contains(m.program, s.Name) {
			continue
		}
		switch reason := s.State.Waiting.Reason; reason {
		case "", "PodInitializing", "ContainerCreating":
		default:
			return reason + " of container " + s.Name
		}
	}
	return ""
}

// byTurn orders waiting pods: those of the newest revision first, of these the
// ones that could start, those whose gate runs, and the oldest.
func (w *world) byTurn(a, b *member) int {
	first := func(a, b bool) int {
		if a == b {
			return 0
		}
		if a {
			return -1
		}
		return 1
	}
	return cmp.Or(
		first(a.eligible(), b.eligible()),
		first(!a.family.outdated, !b.family.outdated),
		first(a.held(), b.held()),
		a.pod.CreationTimestamp.Compare(b.pod.CreationTimestamp.Time),
		cmp.Compare(a.name(), b.name()),
	)
}
