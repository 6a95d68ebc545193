package replicatedstatefulset

import (
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/causes"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podexec"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
)

// state is the known state of a member's application.
type state string

const (
	pending   state = "pending"   // the kubelet reports that its container is not running
	unknown   state = "unknown"   // any state is possible
	idle      state = "idle"      // status reports that it has stopped
	secondary state = "secondary" // it runs
	primary   state = "primary"   // it runs as primary
	failed    state = "failed"    // status reports a failure
)

// OCF exit codes.
const (
	ocfArgs, ocfInstalled = 2, 5 // first and last code that exclude a start in this pod
	ocfNotConfigured      = 6
	ocfNotRunning         = 7
	ocfPrimary            = 8
	ocfDegraded           = 190
	ocfDegradedPrimary    = 191
)

func (m *member) name() string { return m.pod.Name }

func (m *member) terminating() bool { return podstate.Terminating(m.pod) }

// lost reports whether the Node of the member is unreachable.
func (m *member) lost() bool { return podstate.Scheduled(m.pod) && !m.node.Ready }

func (m *member) protected() bool {
	return controllerutil.ContainsFinalizer(m.pod, v1alpha1.FinalizerMember)
}

// goesForGood reports whether nothing can start in the pod any more.
func (m *member) goesForGood() bool { return m.terminating() || podstate.Ended(m.pod) }

// container returns the status of the commands' container. It returns nil if the kubelet has not
// reported it.
func (m *member) container() *corev1.ContainerStatus {
	for i := range m.pod.Status.ContainerStatuses {
		if s := &m.pod.Status.ContainerStatuses[i]; s.Name == m.commandsIn {
			return s
		}
	}
	return nil
}

// running returns the ID of the running commands' container. It returns "" if none runs.
func (m *member) running() string {
	if s := m.container(); s != nil && s.State.Running != nil {
		return s.ContainerID
	}
	return ""
}

// startedAt returns when the running container started.
func (m *member) startedAt() time.Time {
	if s := m.container(); s != nil && s.State.Running != nil {
		return s.State.Running.StartedAt.Time
	}
	return time.Time{}
}

// down reports whether the kubelet reports that the commands' container does not run.
func (m *member) down() bool {
	c := m.container()
	if c == nil { // in a pod of an older template it may have another name
		return len(m.pod.Status.ContainerStatuses) == 0 && m.pod.Status.Phase != corev1.PodRunning
	}
	return c.State.Running == nil
}

// endedAfter reports whether the commands' container does not run and ended after then, or the
// kubelet has not yet decided whether to restart it.
func (m *member) endedAfter(then time.Time) bool {
	c := m.container()
	if c == nil || c.State.Running != nil {
		return false
	}
	if c.State.Terminated != nil {
		return true
	}
	last := c.LastTerminationState.Terminated
	return last != nil && last.FinishedAt.After(then)
}

// crashLoops reports whether the commands' container was restarted repeatedly and never ran for
// long, so that the current template does not bring it back.
func (m *member) crashLoops() bool {
	c := m.container()
	if c == nil || c.RestartCount < causes.CrashesInVain {
		return false
	}
	last := c.LastTerminationState.Terminated
	return last != nil && last.FinishedAt.Sub(last.StartedAt.Time) < returnsWithin
}

// stopped reports whether a pod has stopped completely: it is gone, the kubelet reports it, or an
// administrator declared its machine off.
func stopped(m *member) bool {
	if m == nil {
		return true
	}
	return m.fenced || podstate.Stopped(m.pod, true)
}

// reachable reports whether commands can run in the member now.
func (m *member) reachable() bool {
	return m.owned && m.running() != "" && !m.lost() && !podstate.Ended(m.pod)
}

// free reports whether this process runs no command in the pod.
func (m *member) free() bool { return m.busy == nil }

// runs reports whether this process runs a command of that name in the pod.
func (m *member) runs(name string) bool { return m.busy != nil && m.busy.Name == name }

// result returns the latest result of a command in the running container. It returns false if there
// is none.
func (m *member) result(name string) (podexec.Result, bool) {
	r, ok := m.results[name]
	return r, ok && m.isHere(r)
}

// isHere reports whether a result is from the running container.
func (m *member) isHere(r podexec.Result) bool {
	return r.ContainerID != "" && r.ContainerID == m.running()
}

// changedAt returns when the last mutating command in the running container ended. Earlier
// responses are outdated.
func (m *member) changedAt() (last time.Time) {
	for name := range m.results {
		if r, ok := m.result(name); ok && !asks(name) && r.Ended.After(last) {
			last = r.Ended
		}
	}
	return last
}

// answer returns the last known result of a query in the running container, if it began after the
// last mutating command ended. It returns false if there is none, or while a mutating command runs.
func (m *member) answer(name string) (podexec.Result, bool) {
	r, ok := m.said[name]
	if !ok || r.Outcome == podexec.Unknown {
		return r, false
	}
	if !m.free() && !asks(m.busy.Name) {
		return r, false // the member is being changed
	}
	return r, m.isHere(r) && r.Began.After(m.changedAt())
}

// answers reports whether the member has a current result of the query.
func (m *member) answers(name string) bool {
	_, ok := m.answer(name)
	return ok
}

// due returns the delay until an unanswered query is retried. It is zero if the query was not sent
// to this container.
func (c *clock) due(m *member, name string) time.Duration {
	r, ok := m.result(name)
	if !ok {
		return 0
	}
	return max(r.Ended.Add(backoff(m.tries[name])).Sub(c.now), 0)
}

// unresponsive reports whether status no longer answers in a running container.
func (m *member) unresponsive() bool {
	return m.reachable() && m.missed >= unresponsiveAfter
}

func (m *member) isPrimary() bool { return m.state == primary && !m.terminating() }

func (m *member) isSecondary() bool { return m.state == secondary && !m.terminating() }

func (m *member) isIdle() bool { return m.state == idle && !m.terminating() }

// startable reports whether the member may be started or take a role.
func (m *member) startable() bool { return m.hindrance == "" }

// couldBeFirst reports whether the member can report its sequence and could be the first primary.
func (m *member) couldBeFirst() bool { return m.isIdle() || m.isSecondary() }

// outOfReach reports whether the member may be primary on an unreachable Node.
func (m *member) outOfReach() bool { return m.lost() && m.granted }

// degraded reports whether the member runs and reports itself as degraded.
func (m *member) degraded() bool {
	r, ok := m.answer(v1alpha1.CommandStatus)
	if !ok || m.down() || r.Outcome != podexec.Failed {
		return false
	}
	return r.Code == ocfDegraded || r.Code == ocfDegradedPrimary
}

// silent reports whether the member runs and is reachable, but status never returns a result, for
// example because the image lacks the command.
func (m *member) silent() bool {
	r, asked := m.result(v1alpha1.CommandStatus)
	return m.state == unknown && m.command == nil && asked && r.EndUnseen() && m.unresponsive()
}

// needsStop reports whether a start failed in the running container and no stop has succeeded
// since.
func (m *member) needsStop() bool { return m.failure != nil && needsStopIn(m.failure, m.identity()) }

// needsStopIn reports this for one failure.
func needsStopIn(x *v1alpha1.Failure, m identity) bool {
	return x.Unclean && x.ContainerID == m.container
}

// cannotRun reports whether the exit code of a command reported that the member cannot work in its
// pod. It applies as long as the spec is unchanged.
func cannotRun(x *v1alpha1.Failure, generation int64) bool {
	return x.Code >= ocfArgs && x.Code <= ocfInstalled && x.Generation == generation
}

// failedHere reports whether that command was the last to fail, in the running container.
func (m *member) failedHere(command string) bool {
	return m.failure != nil && m.failure.Command == command && m.failure.ContainerID == m.running()
}

// failedToGo reports whether the last failed command was a stop or a demote.
func (m *member) failedToGo() bool { return m.failure != nil && !starts(m.failure.Command) }

// resists reports whether a stop or demote was the last command to fail in the running container,
// and the member has not reached the wanted state since.
func (m *member) resists() bool {
	if m.running() == "" || !m.failedToGo() || m.failure.ContainerID != m.running() {
		return false
	}
	switch m.state {
	case idle:
		return false
	case secondary:
		return m.failure.Command == v1alpha1.CommandStop
	}
	return true
}

// resistsUs reports the same for a member that is not parked.
func (m *member) resistsUs() bool { return m.resists() && !m.parked }

// stateOf returns the known state of a member's application. While a recorded command may run in
// its pod, a response proves nothing.
func (w *world) stateOf(m *member, command *v1alpha1.RunningCommand) state {
	o, seen := observation{set: w.set}, m.observed()
	return o.stateOf(&seen, command)
}

// identity returns the names of the member's pod and of its running container.
func (m *member) identity() identity {
	return identity{name: m.name(), podUID: m.pod.UID, container: m.running()}
}

// observed returns what the record depends on. known must contain the facts of judgePods.
func (m *member) observed() observedMember {
	o := observedMember{
		identity:    m.identity(),
		stopped:     stopped(m),
		terminating: m.terminating(),
		lost:        m.lost(),
		down:        m.down(),
		upToDate:    m.upToDate,
		startedAt:   m.startedAt(),
		containers:  m.pod.Status.ContainerStatuses,
		results:     m.results,
	}
	if c := m.container(); c != nil {
		o.newest = c.ContainerID
	}
	if m.busy != nil {
		o.command = m.busy.Name
	}
	if r, ok := m.answer(v1alpha1.CommandStatus); ok {
		o.status = &r
	}
	if r, ok := m.answer(v1alpha1.CommandSequence); ok {
		o.sequence = &r
	}
	return o
}

// stateBy returns the state that a status result reports. Without a secondary command, a running
// member is a primary.
func stateBy(set *v1alpha1.ReplicatedStatefulSet, r podexec.Result) state {
	if r.Outcome == podexec.Succeeded {
		r.Code = 0
	}
	switch r.Code {
	case ocfNotRunning:
		return idle
	case ocfPrimary, ocfDegradedPrimary:
		return primary
	case 0, ocfDegraded:
		if hasCommand(set, v1alpha1.CommandSecondary) {
			return secondary
		}
		return primary
	}
	return failed
}

func commandOf(commands []v1alpha1.RunningCommand, pod types.UID) *v1alpha1.RunningCommand {
	for i := range commands {
		if commands[i].UID == pod {
			return &commands[i]
		}
	}
	return nil
}

// sequenceOf parses a sequence result, which must be one unsigned integer.
func sequenceOf(r podexec.Result) (uint64, bool) {
	if r.Outcome != podexec.Succeeded || r.Cut {
		return 0, false
	}
	n, err := strconv.ParseUint(strings.TrimSpace(r.Stdout), 10, 64)
	return n, err == nil
}

// namesOf returns the names of members for messages.
func namesOf(members []*member) string {
	names := make([]string, 0, len(members))
	for _, m := range members {
		names = append(names, m.name())
	}
	return strings.Join(names, ", ")
}
