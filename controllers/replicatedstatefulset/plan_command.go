package replicatedstatefulset

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podexec"
)

// Reasons of actions.
const (
	reasonKeep     = "Keep"     // our finalizer on the object
	reasonRelease  = "Release"  // and off it, and off pods
	reasonProtect  = "Protect"  // our finalizer on a pod
	reasonLearned  = "Learned"  // the books, brought up to date
	reasonRole     = "Role"     // the labels of a pod
	reasonChild    = "Child"    // a child made or repaired
	reasonTemplate = "Template" // the StatefulSet's template
	reasonScale    = "Scale"    // the StatefulSet's replicas
	reasonOverride = "Override" // an annotation taken off that was obeyed
	reasonRefused  = "Refused"  // and one that was not
	reasonAsk      = "Ask"      // status and sequence
	reasonUnseen   = "Unseen"   // a pod deleted since nobody saw the end of a command in it
	reasonStray    = "Stray"    // a pod deleted since a command for another may have reached it
	reasonFailed   = "Failed"   // a pod deleted since starts or stops in it failed
	reasonFenced   = "Fenced"   // a pod deleted since its machine is off
	reasonRenew    = "Renew"    // a pod deleted to be made anew from the present template
)

// asks tells whether a command changes nothing.
func asks(name string) bool {
	return name == v1alpha1.CommandStatus || name == v1alpha1.CommandSequence
}

// startsPrimary tells whether a command may make a primary.
func startsPrimary(name string) bool {
	return name == v1alpha1.CommandSeed || name == v1alpha1.CommandPrimary || name == v1alpha1.CommandPromote
}

func starts(name string) bool { return startsPrimary(name) || name == v1alpha1.CommandSecondary }

// reasonOf is the reason of the action that sends a command: Seed, Primary, ...
func reasonOf(name string) string { return strings.ToUpper(name[:1]) + name[1:] }

// mostSequence is how many bytes are kept of what sequence prints; a number has at most
// 20 digits. Of other commands nothing is.
const mostSequence = 64

// command is one for a member. What is run may have another name than what it is
// for: where there is no seed, a primary is seeded.
func (w *world) command(m *member, name, instead string) *podexec.Command {
	spec, ok := w.set.Spec.Pod.Commands[name]
	if !ok {
		spec = w.set.Spec.Pod.Commands[instead]
	}
	keep := 0
	if name == v1alpha1.CommandSequence {
		keep = mostSequence
	}
	return &podexec.Command{
		Name: name, Keep: keep, Pod: types.NamespacedName{Namespace: m.pod.Namespace, Name: m.pod.Name}, UID: m.pod.UID, Container: m.commandsIn, ContainerID: m.running(),
		Argv: slices.Concat(spec.Command, w.peers()), Timeout: timeoutOf(spec),
	}
}

// ask adds a command that changes nothing, once.
func (p *plan) ask(w *world, m *member, name string) {
	if p.asked[m.name()] || !m.free() || !m.reachable() || !w.serves() {
		return
	}
	p.asked[m.name()] = true
	c := w.command(m, name, name)
	c.Asked = w.now
	p.Do(action.Chain{{Verb: action.Exec, Object: m.pod, Command: c, Reason: reasonAsk, Detail: name}})
	if name == v1alpha1.CommandStatus {
		p.LookAgain(answersWithin)
	}
}

// due is when a question is to be asked again that has no answer; now if it has
// not been asked of this container.
func (w *world) due(m *member, name string) time.Duration {
	r, ok := m.result(name)
	if !ok {
		return 0
	}
	return max(r.Ended.Add(again(m.tries[name])).Sub(w.now), 0)
}

// askStatus asks the members how they are: at once after something happened to
// them, else at the interval.
func askStatus(w *world, p *plan) {
	for _, m := range w.members {
		if !m.reachable() || !m.free() || !w.serves() {
			continue
		}
		wait := time.Duration(0)
		r, ok := m.result(v1alpha1.CommandStatus)
		_, current := m.answer(v1alpha1.CommandStatus)
		switch {
		case !ok || r.Began.Before(m.touched) || r.Outcome != podexec.Unknown && !current:
		case r.Outcome == podexec.Unknown:
			wait = w.due(m, v1alpha1.CommandStatus)
		case w.commandIn(m) != nil || w.state(m) == failed:
			wait = r.Ended.Add(again(1)).Sub(w.now)
		default:
			wait = r.Ended.Add(reconcileInterval(&w.set.Spec)).Sub(w.now)
		}
		if wait <= 0 {
			p.ask(w, m, v1alpha1.CommandStatus)
			continue
		}
		p.LookAgain(wait)
	}
}

// sequence is how new the copy of a member is, asked when it is not known: since
// the last primary went, and lately if the member runs. answered is false as long
// as no answer came; known is false too for one that is no number.
func (w *world) sequence(p *plan, m *member) (n uint64, answered, known bool) {
	r, ok := m.answer(v1alpha1.CommandSequence)
	n, known = sequenceOf(r)
	if fresh := ok && r.Began.After(w.lossAt) && (w.state(m) == idle || w.now.Sub(r.Ended) < freshFor); fresh && known {
		return n, true, true
	} else if fresh {
		w.askSequence(p, m) // again, and go on meanwhile
		return 0, true, false
	}
	w.askSequence(p, m)
	if r, ok := m.result(v1alpha1.CommandSequence); ok && r.Outcome == podexec.Unknown && m.tries[v1alpha1.CommandSequence] >= unresponsiveAfter {
		return 0, true, false
	}
	return 0, false, false
}

func (w *world) askSequence(p *plan, m *member) {
	wait := w.due(m, v1alpha1.CommandSequence)
	if r, ok := m.result(v1alpha1.CommandSequence); ok {
		if _, known := sequenceOf(r); known {
			wait = 0 // it is old, or from before a change, and not wrong
		}
	}
	if wait > 0 {
		p.LookAgain(wait)
		return
	}
	p.ask(w, m, v1alpha1.CommandSequence)
}

// send is the only way a command is sent that changes something: what comes
// before, then the record, bound to the version of the object that was read, then
// at once the command. If the record cannot be written, nothing is sent; if
// this process dies after it, the next one knows that it may have been.
func (w *world) send(p *plan, m *member, name, instead, detail string, before ...action.Action) {
	if !m.free() || !m.reachable() || w.commandIn(m) != nil || p.asked[m.name()] { // one at a time in a pod
		p.WaitFor(v1alpha1.ReasonWaitingForCommand, "a command runs in "+m.name())
		return
	}
	if startsPrimary(name) && len(w.books.grants) >= w.target() {
		return // the callers know; this is the last door
	}
	if r, ok := m.result(name); ok && r.Outcome == podexec.Unknown && w.due(m, name) > 0 {
		p.LookAgain(w.due(m, name))
		p.WaitFor(v1alpha1.ReasonWaitingForCommand, fmt.Sprintf("%s could not be sent to %s, and is tried again: %s", name, m.name(), r.Why))
		return
	}
	if p.sent {
		return // one record at a time: a second would be bound to a version that is gone
	}
	p.sent = true
	at := w.now.Truncate(time.Microsecond)
	c := w.command(m, name, instead)
	c.Decided, c.Proven, c.Within = at, p.proven, w.beginWithin(m, name)
	var within *metav1.Duration
	if c.Within > podexec.Hurry {
		within = &metav1.Duration{Duration: c.Within}
	}
	b := w.books
	b.commands = append(slices.Clone(b.commands), v1alpha1.RunningCommand{
		Pod: m.name(), UID: m.pod.UID, ContainerID: m.running(), RestartCount: m.container().RestartCount,
		Name: name, StartedAt: metav1.NewMicroTime(at), Timeout: metav1.Duration{Duration: c.Timeout}, BeginWithin: within})
	if startsPrimary(name) {
		if len(b.grants) == 0 {
			b.epoch++
		}
		g := w.grant(m, b.epoch)
		g.BeginWithin = within
		b.grants = append(slices.Clone(b.grants), g)
	}
	p.Do(append(slices.Clone(action.Chain(before)), w.write(b, reasonOf(name), detail), action.Action{Verb: action.Exec, Object: m.pod, Command: c, Reason: reasonOf(name), Detail: withPeers(w.peers())}))
}

// beginWithin is how long after this decision a command may begin: longer where reading
// the world took long, since to write the record and to send take as long again, and
// twice as long after each time that it could not be sent.
func (w *world) beginWithin(m *member, name string) time.Duration {
	within := podexec.Hurry + (2 * w.took).Truncate(time.Second)
	if r, ok := m.result(name); ok && r.Outcome == podexec.Unknown && !r.Sent {
		within <<= min(m.tries[name], 2)
	}
	return min(within, podexec.MostHurry)
}

func withPeers(peers []string) string {
	if len(peers) == 0 {
		return "alone"
	}
	return "with " + strings.Join(peers, " ")
}

// stop tells a member to stop; its labels say so first. After a stop that failed there
// is a pause, as there is before a start.
func (w *world) stop(p *plan, m *member, why string) {
	if f := w.failure(m); f != nil && f.Command == v1alpha1.CommandStop && f.ContainerID == m.running() && w.now.Before(w.retryAt(m)) {
		p.LookAgain(w.retryAt(m).Sub(w.now))
		p.WaitFor(v1alpha1.ReasonStopping, fmt.Sprintf("stop of %s %s, and is tried again", m.name(), howFailed(int(f.Code))))
		return
	}
	w.send(p, m, v1alpha1.CommandStop, v1alpha1.CommandStop, fmt.Sprintf("%s: %s", m.name(), why), w.label(m, v1alpha1.False, v1alpha1.RoleNone)...)
}

// demote turns a primary into a secondary, or stops it where there is no command
// for that.
func (w *world) demote(p *plan, m *member, why string) {
	f := w.failure(m)
	if !w.configured(v1alpha1.CommandDemote) || !w.configured(v1alpha1.CommandSecondary) || f != nil && !starts(f.Command) {
		w.stop(p, m, why)
		return
	}
	w.send(p, m, v1alpha1.CommandDemote, v1alpha1.CommandDemote, fmt.Sprintf("%s: %s", m.name(), why), w.label(m, v1alpha1.True, v1alpha1.RoleSecondary)...)
}

// remove deletes a pod, so that the StatefulSet makes it anew on the same data.
func remove(m *member, reason, detail string) action.Chain {
	return action.Chain{{Verb: action.Delete, Object: m.pod, Reason: reason, Detail: detail}}
}
