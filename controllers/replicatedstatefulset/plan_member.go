package replicatedstatefulset

import (
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
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

func (m *member) name() string { return m.pod.Name }

func (m *member) terminating() bool { return podstate.Terminating(m.pod) }

// lost tells whether nobody can be reached where the member is.
func (m *member) lost() bool { return podstate.Scheduled(m.pod) && !m.node.Ready }

func (m *member) protected() bool {
	return controllerutil.ContainsFinalizer(m.pod, v1alpha1.FinalizerMember)
}

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

// reachable tells whether commands can be run in the member now.
func (m *member) reachable() bool {
	return m.owned && m.running() != "" && !m.lost() && !podstate.Ended(m.pod)
}

// free tells whether no command runs in the pod, as far as this process knows.
func (m *member) free() bool { return m.busy == nil }

// result is the newest result of a command in the container that runs; false if
// it has none there.
func (m *member) result(name string) (podexec.Result, bool) {
	r, ok := m.results[name]
	return r, ok && r.ContainerID == m.running() && r.ContainerID != ""
}

// changedAt is when the last command that changes something ended in the
// container that runs: what was answered before is of an older state.
func (m *member) changedAt() (last time.Time) {
	for name := range m.results {
		if r, ok := m.result(name); ok && !asks(name) && r.Ended.After(last) {
			last = r.Ended
		}
	}
	return last
}

// answer is what the member answered last to a command that asks, after the last
// change; false without an answer. One whose outcome is unknown is none.
func (m *member) answer(name string) (podexec.Result, bool) {
	r, ok := m.said[name]
	return r, ok && r.ContainerID == m.running() && r.ContainerID != "" && r.Outcome != podexec.Unknown && r.Began.After(m.changedAt()) && (m.busy == nil || asks(m.busy.Name))
}

// down tells whether the kubelet says that no container of the commands runs.
func (m *member) down() bool {
	c := m.container()
	if c == nil { // it may have another name, in a pod of an older template
		return len(m.pod.Status.ContainerStatuses) == 0 && m.pod.Status.Phase != corev1.PodRunning
	}
	return c.State.Running == nil
}

// endedAfter tells whether the container of the commands does not run, and ended
// after that, or the kubelet has not decided yet whether to start it again.
func (m *member) endedAfter(then time.Time) bool {
	c := m.container()
	if c == nil || c.State.Running != nil {
		return false
	}
	last := c.LastTerminationState.Terminated
	return c.State.Terminated != nil || last != nil && last.FinishedAt.After(then)
}

// state is what the member's application is known to be.
func (w *world) state(m *member) state {
	if m.down() {
		return pending
	}
	r, ok := m.answer(v1alpha1.CommandStatus)
	if !ok || m.lost() || w.commandIn(m) != nil {
		return unknown // after a start whose end was not seen, no answer proves anything
	}
	return w.stateOf(r)
}

// stateOf is what an answer to status says. Where there is no command that makes
// secondaries, one that runs is a primary.
func (w *world) stateOf(r podexec.Result) state {
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

// limping tells whether the member runs, and says itself that it is degraded.
func (w *world) limping(m *member) bool {
	r, ok := m.answer(v1alpha1.CommandStatus)
	return ok && !m.down() && r.Outcome == podexec.Failed && (r.Code == ocfDegraded || r.Code == ocfDegradedPrimary)
}

// leaver tells whether the member shall go.
func (w *world) leaver(m *member) bool { return m.ordinal >= w.wanted() && !w.kept(m) }

// kept tells whether a member that is not wanted stays until another has its data:
// nobody is primary, and no wanted member is known to have a copy as new.
func (w *world) kept(m *member) bool {
	if m.ordinal < w.wanted() || w.wanted() == 0 || len(w.books.grants) > 0 || !w.candid(m) {
		return false
	}
	mine, known := w.sinceLoss(m)
	return !known || !slices.ContainsFunc(w.members, func(o *member) bool {
		n, said := w.sinceLoss(o)
		return o.ordinal < w.wanted() && w.candid(o) && said && n >= mine
	})
}

// candid tells whether a member can say how new its copy is, and could be first.
func (w *world) candid(m *member) bool {
	s := w.state(m)
	return (s == idle || s == secondary) && !m.terminating()
}

// sinceLoss is how new the member's copy is, by what it said since the last
// primary went.
func (w *world) sinceLoss(m *member) (uint64, bool) {
	r, ok := m.answer(v1alpha1.CommandSequence)
	n, known := sequenceOf(r)
	return n, ok && known && r.Began.After(w.lossAt)
}

// commandIn is the command of the books in a pod; nil if there is none.
func (w *world) commandIn(m *member) *v1alpha1.RunningCommand {
	return commandOf(w.books.commands, m.pod.UID)
}

func commandOf(commands []v1alpha1.RunningCommand, pod types.UID) *v1alpha1.RunningCommand {
	for i := range commands {
		if commands[i].UID == pod {
			return &commands[i]
		}
	}
	return nil
}

func (w *world) granted(m *member) bool {
	return slices.ContainsFunc(w.books.grants, func(g v1alpha1.Grant) bool { return g.UID == m.pod.UID })
}

// grantedIn tells whether the container that runs is granted.
func (w *world) grantedIn(m *member) bool {
	return slices.ContainsFunc(w.books.grants, func(g v1alpha1.Grant) bool { return g.UID == m.pod.UID && g.ContainerID == m.running() })
}

// failure is what failed in the member's pod; nil if nothing did lately.
func (w *world) failure(m *member) *v1alpha1.Failure {
	for i := range w.books.failures {
		if f := &w.books.failures[i]; f.UID == m.pod.UID || f.Pod == m.name() && dud(f) {
			return f
		}
	}
	return nil
}

// dud tells whether a start ended with 0 and made no primary. Its pod was made anew for
// that, and the next one of the name is no better for it.
func dud(f *v1alpha1.Failure) bool { return f.Code == 0 && startsPrimary(f.Command) }

// unclean tells whether a start failed in the container that runs, and no stop
// has succeeded since.
func (w *world) unclean(m *member) bool {
	f := w.failure(m)
	return f != nil && f.Unclean && f.ContainerID == m.running()
}

// barred tells whether the member may not be started in this pod: its exit code
// said that it cannot work there.
func (w *world) barred(m *member) bool {
	f := w.failure(m)
	return f != nil && f.Code >= ocfArgs && f.Code <= ocfInstalled && f.Generation == w.set.Generation
}

// silent tells whether the member runs, is reached, and does not say what it is
// however often it is asked, as one whose image lacks the command.
func (w *world) silent(m *member) bool {
	r, asked := m.result(v1alpha1.CommandStatus)
	return w.state(m) == unknown && w.commandIn(m) == nil && asked && r.EndUnseen() && m.mute()
}

// mute tells whether status does not answer any more in a container that runs.
func (m *member) mute() bool {
	return m.reachable() && m.unanswered >= unresponsiveAfter
}

// startable tells whether the member may be told to start, or to take a role.
func (w *world) startable(m *member) bool {
	s := w.state(m)
	return (s == idle || s == secondary) && m.reachable() && !m.terminating() && !w.leaver(m) && !w.unclean(m) && !w.barred(m) &&
		w.commandIn(m) == nil && (m.protected() || !exclusive(w.set)) && !w.now.Before(w.retryAt(m))
}

// retryAt is when a member may be started again in which starts or stops failed
// lately.
func (w *world) retryAt(m *member) time.Time {
	if f := w.failure(m); f != nil {
		return f.Last.Add(again(int(f.Count)))
	}
	return time.Time{}
}

// primaries are the members that run as primary and will go on to.
func (w *world) primaries() (live []*member) {
	for _, m := range w.members {
		if w.state(m) == primary && !m.terminating() {
			live = append(live, m)
		}
	}
	return live
}

// peers are the names under which the primaries are found.
func (w *world) peers() (names []string) {
	for _, m := range w.primaries() {
		names = append(names, m.name()+"."+serviceName(w.set))
	}
	return names
}

func (w *world) named(name string) *member {
	for _, m := range w.members {
		if m.name() == name {
			return m
		}
	}
	return nil
}

func (w *world) byUID(uid types.UID) *member {
	for _, m := range w.members {
		if m.pod.UID == uid {
			return m
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

// resists reports whether a stop or demote failed last in the container that runs, and
// nothing says that the member has stopped since.
func (w *world) resists(m *member) bool {
	f := w.failure(m)
	if f == nil || starts(f.Command) || f.ContainerID != m.running() || f.ContainerID == "" {
		return false
	}
	s := w.state(m)
	return s != idle && (s != secondary || f.Command == v1alpha1.CommandStop)
}

// shallStop reports whether a member that runs shall stop, or be no primary any more.
func (w *world) shallStop(m *member) bool {
	return w.leaver(m) || m.terminating() || !w.fresher(m) || w.state(m) == primary && len(w.primaries()) > w.target()
}
