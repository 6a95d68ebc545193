package facts

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/causes"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podexec"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/children"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/record"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/spec"
)

// Terminating reports whether the pod is being deleted.
func (m *Member) Terminating() bool { return podstate.Terminating(m.Pod) }

// NodeUnreachable reports whether the Node of the member is unreachable.
func (m *Member) NodeUnreachable() bool { return podstate.Scheduled(m.Pod) && !m.Node.Ready }

// Protected reports whether the pod has our finalizer.
func (m *Member) Protected() bool {
	return controllerutil.ContainsFinalizer(m.Pod, v1alpha1.FinalizerMember)
}

// CannotRestart reports whether nothing can start in the pod any more.
func (m *Member) CannotRestart() bool { return m.Terminating() || podstate.Ended(m.Pod) }

// Container returns the status of the commands' container. It returns nil if the kubelet has not
// reported it.
func (m *Member) Container() *corev1.ContainerStatus {
	for i := range m.Pod.Status.ContainerStatuses {
		if s := &m.Pod.Status.ContainerStatuses[i]; s.Name == m.CommandsIn {
			return s
		}
	}
	return nil
}

// Running returns the ID of the running commands' container. It returns "" if none runs.
func (m *Member) Running() string {
	if s := m.Container(); s != nil && s.State.Running != nil {
		return s.ContainerID
	}
	return ""
}

// startedAt returns when the running container started.
func (m *Member) startedAt() time.Time {
	if s := m.Container(); s != nil && s.State.Running != nil {
		return s.State.Running.StartedAt.Time
	}
	return time.Time{}
}

// Down reports whether the kubelet reports that the commands' container does not run.
func (m *Member) Down() bool {
	c := m.Container()
	if c == nil { // in a pod of an older template it may have another name
		return len(m.Pod.Status.ContainerStatuses) == 0 && m.Pod.Status.Phase != corev1.PodRunning
	}
	return c.State.Running == nil
}

// EndedAfter reports whether the commands' container does not run and ended after then, or the
// kubelet has not yet decided whether to restart it.
func (m *Member) EndedAfter(then time.Time) bool {
	c := m.Container()
	if c == nil || c.State.Running != nil {
		return false
	}
	if c.State.Terminated != nil {
		return true
	}
	last := c.LastTerminationState.Terminated
	return last != nil && last.FinishedAt.After(then)
}

// CrashLoops reports whether the commands' container was restarted repeatedly and never ran for
// long, so that the current template does not bring it back.
func (m *Member) CrashLoops() bool {
	c := m.Container()
	if c == nil || c.RestartCount < causes.CrashesInVain {
		return false
	}
	last := c.LastTerminationState.Terminated
	return last != nil && last.FinishedAt.Sub(last.StartedAt.Time) < spec.ReturnsWithin
}

// Stopped reports whether a pod has stopped completely: it is gone, the kubelet reports it, or an
// administrator declared its machine off.
func Stopped(m *Member) bool {
	if m == nil {
		return true
	}
	return m.Fenced || podstate.Stopped(m.Pod, true)
}

// Reachable reports whether commands can run in the member now.
func (m *Member) Reachable() bool {
	return m.Owned && m.Running() != "" && !m.NodeUnreachable() && !podstate.Ended(m.Pod)
}

// Free reports whether this process runs no command in the pod.
func (m *Member) Free() bool { return m.Busy == nil }

// Runs reports whether this process runs a command of that name in the pod.
func (m *Member) Runs(name string) bool { return m.Busy != nil && m.Busy.Name == name }

// Result returns the latest result of a command in the running container. It returns false if there
// is none.
func (m *Member) Result(name string) (podexec.Result, bool) {
	r, ok := m.Results[name]
	return r, ok && m.isHere(r)
}

// isHere reports whether a result is from the running container.
func (m *Member) isHere(r podexec.Result) bool {
	return r.ContainerID != "" && r.ContainerID == m.Running()
}

// ChangedAt returns when the last mutating command in the running container ended. Earlier
// responses are outdated.
func (m *Member) ChangedAt() (last time.Time) {
	for name := range m.Results {
		if spec.Asks(name) {
			continue
		}
		if r, ok := m.Result(name); ok && r.Ended.After(last) {
			last = r.Ended
		}
	}
	return last
}

// Answer returns the last known result of a query in the running container, if it began after the
// last mutating command ended. It returns false if there is none, or while a mutating command runs.
func (m *Member) Answer(name string) (podexec.Result, bool) {
	r, ok := m.Said[name]
	if !ok || r.Outcome == podexec.Unknown {
		return r, false
	}
	if !m.Free() && !spec.Asks(m.Busy.Name) {
		return r, false // the member is being changed
	}
	return r, m.isHere(r) && r.Began.After(m.ChangedAt())
}

// Answers reports whether the member has a current result of the query.
func (m *Member) Answers(name string) bool {
	_, ok := m.Answer(name)
	return ok
}

// Due returns the delay until an unanswered query is retried. It is zero if the query was not sent
// to this container.
func (c *Clock) Due(m *Member, name string) time.Duration {
	r, ok := m.Result(name)
	if !ok {
		return 0
	}
	return max(r.Ended.Add(spec.Backoff(m.Tries[name])).Sub(c.Now), 0)
}

// Unresponsive reports whether the last UnresponsiveAfter status commands in the running container
// had no answer. NotAnswering counts the time instead. IsUnresponsive is true for both.
func (m *Member) Unresponsive() bool {
	return m.Reachable() && m.Missed >= spec.UnresponsiveAfter
}

// StateOf returns the state of a member's application. command is the command on record in its pod,
// or nil. While it may run, a response proves nothing, and the state is unknown.
func (w *World) StateOf(m *Member, command *v1alpha1.RunningCommand) record.State {
	o, seen := record.Observed{Set: w.Set}, m.observed()
	return o.StateOf(&seen, command)
}

// Identity returns the names of the member's pod and of its running container.
func (m *Member) Identity() record.Identity {
	return record.Identity{Name: m.Name(), PodUID: m.Pod.UID, Container: m.Running()}
}

// observed returns the facts of the member that the record depends on. It uses facts of
// setPodFacts, which must have run.
func (m *Member) observed() record.ObservedMember {
	o := record.ObservedMember{
		Identity:        m.Identity(),
		Stopped:         Stopped(m),
		Terminating:     m.Terminating(),
		NodeUnreachable: m.NodeUnreachable(),
		Down:            m.Down(),
		UpToDate:        m.UpToDate,
		Leased:          m.IsLeased(),
		StartedAt:       m.startedAt(),
		Containers:      m.Pod.Status.ContainerStatuses,
		Results:         m.Results,
	}
	if c := m.Container(); c != nil {
		o.Newest = c.ContainerID
	}
	if m.Busy != nil {
		o.Command = m.Busy.Name
	}
	if r, ok := m.Answer(v1alpha1.CommandStatus); ok {
		o.Status = &r
	}
	if r, ok := m.Answer(v1alpha1.CommandSequence); ok {
		o.Sequence = &r
	}
	return o
}

// HeldUntil returns the time at which the kubelet sends SIGTERM to the commands' container of a
// terminating pod, if a preStop hook delays it. It returns zero if there is no delay. A hook that
// runs a command does not count, because it may end the program.
func HeldUntil(m *Member) time.Time {
	sleep := sleepOf(m)
	if sleep == 0 || !m.Terminating() {
		return time.Time{}
	}
	grace := time.Duration(ptr.Deref(m.Pod.DeletionGracePeriodSeconds, 0)) * time.Second
	return podstate.DeletedAt(m.Pod).Add(min(sleep, grace))
}

// sleepOf returns how long the preStop hook of the commands' container sleeps.
func sleepOf(m *Member) time.Duration {
	if c := children.ContainerNamed(m.Pod, m.CommandsIn); c != nil && children.Sleeps(c) {
		return time.Duration(c.Lifecycle.PreStop.Sleep.Seconds) * time.Second
	}
	return 0
}

// IsHeld reports whether a pod is terminating and its program has not received SIGTERM yet.
func (c *Clock) IsHeld(m *Member) bool { return c.Now.Before(HeldUntil(m)) }
