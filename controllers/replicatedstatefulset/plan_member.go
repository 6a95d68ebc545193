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

// state is what is known of a member's application.
type state string

const (
	pending   state = "pending"   // its container does not run, says the kubelet
	unknown   state = "unknown"   // it may be anything
	idle      state = "idle"      // it has stopped, says status
	secondary state = "secondary" // it runs
	primary   state = "primary"   // it runs as primary
	failed    state = "failed"    // status says that it is in no good state
)

// Exit codes, as OCF has them.
const (
	ocfArgs, ocfInstalled = 2, 5 // from, to: not in this pod, whatever is tried
	ocfNotConfigured      = 6
	ocfNotRunning         = 7
	ocfPrimary            = 8
	ocfDegraded           = 190
	ocfDegradedPrimary    = 191
)

// What the pod says.

func (m *member) name() string { return m.pod.Name }

func (m *member) terminating() bool { return podstate.Terminating(m.pod) }

// lost reports whether the Node of the member does not answer.
func (m *member) lost() bool { return podstate.Scheduled(m.pod) && !m.node.Ready }

func (m *member) protected() bool {
	return controllerutil.ContainsFinalizer(m.pod, v1alpha1.FinalizerMember)
}

// goesForGood reports whether nothing will start in the pod any more.
func (m *member) goesForGood() bool { return m.terminating() || podstate.Ended(m.pod) }

// container is that of the commands; nil if the kubelet has said nothing of it.
func (m *member) container() *corev1.ContainerStatus {
	for i := range m.pod.Status.ContainerStatuses {
		if s := &m.pod.Status.ContainerStatuses[i]; s.Name == m.commandsIn {
			return s
		}
	}
	return nil
}

// running is the id of the container of the commands; "" while none runs.
func (m *member) running() string {
	if s := m.container(); s != nil && s.State.Running != nil {
		return s.ContainerID
	}
	return ""
}

// startedAt is when the running container was started.
func (m *member) startedAt() time.Time {
	if s := m.container(); s != nil && s.State.Running != nil {
		return s.State.Running.StartedAt.Time
	}
	return time.Time{}
}

// down reports whether the kubelet says that no container of the commands runs.
func (m *member) down() bool {
	c := m.container()
	if c == nil { // it may have another name, in a pod of an older template
		return len(m.pod.Status.ContainerStatuses) == 0 && m.pod.Status.Phase != corev1.PodRunning
	}
	return c.State.Running == nil
}

// endedAfter reports whether the container of the commands does not run, and ended after
// that, or the kubelet has not decided yet whether to start it again.
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

// crashLoops reports whether the container of the commands was restarted again and again, and
// never ran for long: the present template does not bring it back.
func (m *member) crashLoops() bool {
	c := m.container()
	if c == nil || c.RestartCount < causes.CrashesInVain {
		return false
	}
	last := c.LastTerminationState.Terminated
	return last != nil && last.FinishedAt.Sub(last.StartedAt.Time) < returnsWithin
}

// stopped reports whether all of a pod has stopped: it is gone, the kubelet says so, or an
// administrator says that its machine is off.
func stopped(m *member) bool {
	if m == nil {
		return true
	}
	return m.fenced || podstate.Stopped(m.pod, true)
}

// What its commands said.

// reachable reports whether commands can be run in the member now.
func (m *member) reachable() bool {
	return m.owned && m.running() != "" && !m.lost() && !podstate.Ended(m.pod)
}

// free reports whether no command runs in the pod, as far as this process knows.
func (m *member) free() bool { return m.busy == nil }

// runs reports whether this process runs a command of that name in the pod.
func (m *member) runs(name string) bool { return m.busy != nil && m.busy.Name == name }

// result is the newest result of a command in the container that runs; false if it has
// none there.
func (m *member) result(name string) (podexec.Result, bool) {
	r, ok := m.results[name]
	return r, ok && m.isHere(r)
}

// isHere reports whether a result is of the container that runs.
func (m *member) isHere(r podexec.Result) bool {
	return r.ContainerID != "" && r.ContainerID == m.running()
}

// changedAt is when the last command that changes something ended in the container that
// runs: what was answered before is of an older state.
func (m *member) changedAt() (last time.Time) {
	for name := range m.results {
		if r, ok := m.result(name); ok && !asks(name) && r.Ended.After(last) {
			last = r.Ended
		}
	}
	return last
}

// answer is what the member answered last to a command that asks, after the last change;
// false without an answer. One whose outcome is unknown is none.
func (m *member) answer(name string) (podexec.Result, bool) {
	r, ok := m.said[name]
	if !ok || r.Outcome == podexec.Unknown {
		return r, false
	}
	if !m.free() && !asks(m.busy.Name) {
		return r, false // it is being changed
	}
	return r, m.isHere(r) && r.Began.After(m.changedAt())
}

// answers reports whether the member has answered that command.
func (m *member) answers(name string) bool {
	_, ok := m.answer(name)
	return ok
}

// due is when a question is to be asked again that has no answer; now if it has not been
// asked of this container.
func (c *clock) due(m *member, name string) time.Duration {
	r, ok := m.result(name)
	if !ok {
		return 0
	}
	return max(r.Ended.Add(again(m.tries[name])).Sub(c.now), 0)
}

// unresponsive reports whether status does not answer any more in a container that runs.
func (m *member) unresponsive() bool {
	return m.reachable() && m.missed >= unresponsiveAfter
}

// What it is, in the state that derive found.

func (m *member) isPrimary() bool { return m.state == primary && !m.terminating() }

func (m *member) isSecondary() bool { return m.state == secondary && !m.terminating() }

func (m *member) isIdle() bool { return m.state == idle && !m.terminating() }

// startable reports whether the member may be told to start, or to take a role.
func (m *member) startable() bool { return m.hindrance == "" }

// couldBeFirst reports whether the member can say how new its copy is, and could be the
// first primary.
func (m *member) couldBeFirst() bool { return m.isIdle() || m.isSecondary() }

// outOfReach reports whether the member may be primary on a Node that does not answer.
func (m *member) outOfReach() bool { return m.lost() && m.granted }

// degraded reports whether the member runs, and says itself that it is degraded.
func (m *member) degraded() bool {
	r, ok := m.answer(v1alpha1.CommandStatus)
	if !ok || m.down() || r.Outcome != podexec.Failed {
		return false
	}
	return r.Code == ocfDegraded || r.Code == ocfDegradedPrimary
}

// silent reports whether the member runs, is reached, and does not say what it is however
// often it is asked, as one whose image lacks the command.
func (m *member) silent() bool {
	r, asked := m.result(v1alpha1.CommandStatus)
	return m.state == unknown && m.command == nil && asked && r.EndUnseen() && m.unresponsive()
}

// needsStop reports whether a start failed in the container that runs, and no stop has
// succeeded since.
func (m *member) needsStop() bool { return m.failure != nil && needsStopIn(m.failure, m) }

// needsStopIn reports the same of one failure.
func needsStopIn(x *v1alpha1.Failure, m *member) bool {
	return x.Unclean && x.ContainerID == m.running()
}

// cannotRun reports whether an exit code said that a member cannot work in its pod, as
// long as the spec is as it was.
func cannotRun(x *v1alpha1.Failure, generation int64) bool {
	return x.Code >= ocfArgs && x.Code <= ocfInstalled && x.Generation == generation
}

// failedHere reports whether that command failed last, and in the container that runs.
func (m *member) failedHere(command string) bool {
	return m.failure != nil && m.failure.Command == command && m.failure.ContainerID == m.running()
}

// failedToGo reports whether the last command that failed was to stop or demote the member.
func (m *member) failedToGo() bool { return m.failure != nil && !starts(m.failure.Command) }

// resists reports whether a stop or demote failed last in the container that runs, and
// nothing says that the member has stopped since.
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

// resistsUs reports the same of a member that is told what to do.
func (m *member) resistsUs() bool { return m.resists() && !m.parked }

// stateOf is what the application of a member is known to be, beside a command of the
// record in its pod: while that may run, no answer proves anything.
func (w *world) stateOf(m *member, command *v1alpha1.RunningCommand) state {
	if m.down() {
		return pending
	}
	r, ok := m.answer(v1alpha1.CommandStatus)
	if !ok || command != nil || m.lost() {
		return unknown
	}
	return w.stateBy(r)
}

// stateBy is what an answer to status says. Where there is no command that makes
// secondaries, one that runs is a primary.
func (w *world) stateBy(r podexec.Result) state {
	if r.Outcome == podexec.Succeeded {
		r.Code = 0
	}
	switch r.Code {
	case ocfNotRunning:
		return idle
	case ocfPrimary, ocfDegradedPrimary:
		return primary
	case 0, ocfDegraded:
		if w.configured(v1alpha1.CommandSecondary) {
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

// sequenceOf reads an answer to sequence: one unsigned whole number.
func sequenceOf(r podexec.Result) (uint64, bool) {
	if r.Outcome != podexec.Succeeded || r.Cut {
		return 0, false
	}
	n, err := strconv.ParseUint(strings.TrimSpace(r.Stdout), 10, 64)
	return n, err == nil
}

// namesOf lists members for people.
func namesOf(members []*member) string {
	names := make([]string, 0, len(members))
	for _, m := range members {
		names = append(names, m.name())
	}
	return strings.Join(names, ", ")
}
