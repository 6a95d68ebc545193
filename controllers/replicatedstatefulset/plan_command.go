package replicatedstatefulset

import (
	"fmt"
	"slices"
	"strconv"
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
	reasonLearned  = "Learned"  // what was learned of grants and commands
	reasonRole     = "Role"     // the labels of a pod
	reasonChild    = "Child"    // a child made or repaired
	reasonForeign  = "Foreign"  // our labels, off a pod that is no member
	reasonBudget   = "Budget"   // the budget closed, for a handover
	reasonTemplate = "Template" // the StatefulSet's template
	reasonScale    = "Scale"    // the StatefulSet's replicas
	reasonExpand   = "Expand"   // a claim grown
	reasonLeft     = "Left"     // a claim deleted with the object
	reasonOverride = "Override" // an order that was obeyed
	reasonRefused  = "Refused"  // and one that was not
	reasonAsk      = "Ask"      // status and sequence
	reasonUnseen   = "Unseen"   // a pod deleted since the end of a command in it was not seen
	reasonStray    = "Stray"    // a pod deleted since a command for another may have reached it
	reasonFailed   = "Failed"   // a pod deleted since starts or stops in it failed
	reasonFenced   = "Fenced"   // a pod deleted since its machine is off
	reasonRenew    = "Renew"    // a pod deleted to be recreated from the present template
	reasonSurplus  = "Surplus"  // a pod deleted after a scale-down
	reasonTrial    = "Trial"    // a dry run of the create of a pod, before it is deleted
	reasonResize   = "Resize"   // the resources of a pod, in place
	reasonInPlace  = "InPlace"  // the note that a pod is changed in place
	reasonResized  = "Resized"  // a pod that was brought to the present template in place

	reasonUnresponsive = "Unresponsive" // a pod deleted since its member blocks a failover
)

// asks reports whether a command changes nothing.
func asks(name string) bool {
	return name == v1alpha1.CommandStatus || name == v1alpha1.CommandSequence
}

// startsPrimary reports whether a command may make a primary.
func startsPrimary(name string) bool {
	return name == v1alpha1.CommandSeed || name == v1alpha1.CommandPrimary || name == v1alpha1.CommandPromote
}

// starts reports whether a command starts a member.
func starts(name string) bool { return startsPrimary(name) || name == v1alpha1.CommandSecondary }

// reasonOf is the reason of the action that sends a command: Seed, Primary, ...
func reasonOf(name string) string { return strings.ToUpper(name[:1]) + name[1:] }

// mostSequence is how many bytes are kept of what sequence prints; a number has at most
// 20 digits. Of other commands nothing is.
const mostSequence = 64

// command is one for a member, of an epoch. What is run may have another name than what it
// is for: where there is no seed, a primary is seeded.
func (f *facts) command(m *member, name, instead string, epoch int64) *podexec.Command {
	spec, ok := f.set.Spec.Pod.Commands[name]
	if !ok {
		spec = f.set.Spec.Pod.Commands[instead]
	}
	keep := 0
	if name == v1alpha1.CommandSequence {
		keep = mostSequence
	}
	return &podexec.Command{
		Name:        name,
		Keep:        keep,
		Pod:         types.NamespacedName{Namespace: m.pod.Namespace, Name: m.pod.Name},
		UID:         m.pod.UID,
		Container:   m.commandsIn,
		ContainerID: m.running(),
		Argv:        append(WithEpoch(spec.Command, epoch), f.peers()...),
		Timeout:     timeoutOf(spec),
	}
}

// epochWord is what the epoch takes the place of in a command. As in the command of a
// container, a second $ before it lets it stand.
const epochWord = "$(RSS_EPOCH)"

// WithEpoch is a command of the spec as it is run in that epoch.
func WithEpoch(argv []string, epoch int64) []string {
	words := strings.NewReplacer("$"+epochWord, epochWord, epochWord, strconv.FormatInt(epoch, 10))
	said := make([]string, 0, len(argv))
	for _, arg := range argv {
		said = append(said, words.Replace(arg))
	}
	return said
}

// ask adds a command that changes nothing, once.
func (p *plan) ask(f *facts, m *member, name string) {
	if p.asked[m.name()] || !m.free() || !m.reachable() || !f.serves() {
		return
	}
	p.asked[m.name()] = true
	c := f.command(m, name, name, f.record.epoch)
	c.Asked = f.now
	p.Do(action.Chain{{
		Verb:    action.Exec,
		Object:  m.pod,
		Command: c,
		Reason:  reasonAsk,
		Detail:  name,
	}})
	if name == v1alpha1.CommandStatus {
		p.LookAgain(answersWithin)
	}
}

// askStatus asks the members how they are: at once after something happened to them, else
// at the interval.
func askStatus(f *facts, p *plan) {
	if !f.serves() {
		return
	}
	for _, m := range f.members {
		if !m.reachable() || !m.free() {
			continue
		}
		if wait := f.untilStatus(m); wait > 0 {
			p.LookAgain(wait)
		} else {
			p.ask(f, m, v1alpha1.CommandStatus)
		}
	}
}

// untilStatus is in how long a member is asked for its status.
func (w *world) untilStatus(m *member) time.Duration {
	r, asked := m.result(v1alpha1.CommandStatus)
	switch {
	case !asked, r.Began.Before(m.touched):
		return 0
	case r.Outcome == podexec.Unknown:
		return w.due(m, v1alpha1.CommandStatus)
	case !m.answers(v1alpha1.CommandStatus):
		return 0 // it is of before a change
	case m.command != nil, m.state == failed:
		return r.Ended.Add(again(1)).Sub(w.now)
	}
	return r.Ended.Add(reconcileInterval(&w.set.Spec)).Sub(w.now)
}

// send is the only way a command is sent that changes something: what comes before, then
// the record, bound to the version of the object that was read, then at once the command.
// If the record cannot be written, nothing is sent; if this process dies after it, the next
// one knows that it may have been.
func (p *plan) send(f *facts, m *member, name, instead, detail string, before ...action.Action) {
	if p.asked[m.name()] || !m.canTakeCommand() {
		p.WaitFor(v1alpha1.ReasonWaitingForCommand, "a command runs in "+m.name())
		return
	}
	if m.parked || f.forbids(name) {
		return // the callers know; this is the last door
	}
	if r, ok := m.result(name); ok && r.Outcome == podexec.Unknown && f.due(m, name) > 0 {
		p.LookAgain(f.due(m, name))
		p.WaitFor(
			v1alpha1.ReasonWaitingForCommand,
			fmt.Sprintf(
				"%s could not be sent to %s, and is tried again: %s",
				name, m.name(), r.Why,
			),
		)
		return
	}
	if p.sent {
		return // one record at a time: a second would be bound to a version that is gone
	}
	p.sent = true
	c := f.command(m, name, instead, p.record.epochOf(name))
	c.Decided, c.Proven, c.Within = f.now.Truncate(time.Microsecond), p.proven, f.beginWithin(m, name)
	chain := append(slices.Clone(action.Chain(before)),
		f.store(p.recordWith(f, m, c), reasonOf(name), detail),
		action.Action{
			Verb:    action.Exec,
			Object:  m.pod,
			Command: c,
			Reason:  reasonOf(name),
			Detail:  withPeers(f.peers()),
		})
	p.Do(chain)
}

// canTakeCommand reports whether no command runs in the pod of a member, and one can.
func (m *member) canTakeCommand() bool { return m.free() && m.command == nil && m.reachable() }

// forbids reports whether a command could make a primary too many.
func (f *facts) forbids(name string) bool {
	return startsPrimary(name) && f.record.primaries() >= f.target()
}

// recordWith is the record with a command that is about to be sent, and the grant that it
// needs.
func (p *plan) recordWith(f *facts, m *member, c *podexec.Command) record {
	var within *metav1.Duration
	if c.Within > podexec.Hurry {
		within = &metav1.Duration{Duration: c.Within}
	}
	r := p.record
	r.commands = append(slices.Clone(r.commands), v1alpha1.RunningCommand{
		Pod:          m.name(),
		UID:          m.pod.UID,
		ContainerID:  m.running(),
		RestartCount: m.container().RestartCount,
		Name:         c.Name,
		StartedAt:    metav1.NewMicroTime(c.Decided),
		Timeout:      metav1.Duration{Duration: c.Timeout},
		BeginWithin:  within,
	})
	if !startsPrimary(c.Name) {
		return r
	}
	r.epoch = r.epochOf(c.Name)
	g := f.grant(m, r.epoch)
	g.BeginWithin = within
	r.granted = append(slices.Clone(r.granted), g)
	return r
}

// epochOf is the epoch of a command that is sent next: a first primary begins a new one,
// so that no other has had a higher one before it. It is on record before it is sent.
func (r *record) epochOf(name string) int64 {
	if !startsPrimary(name) || r.hasGrants() {
		return r.epoch
	}
	return max(r.epoch, r.before) + 1
}

// beginWithin is how long after this decision a command may begin: longer where reading the
// world took long, since to write the record and to send take as long again, and twice as
// long after each time that it could not be sent.
func (c *clock) beginWithin(m *member, name string) time.Duration {
	within := podexec.Hurry + (2 * c.took).Truncate(time.Second)
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

// start starts a member as first primary: a secondary is promoted, an idle one seeded.
func (p *plan) start(f *facts, m *member, why string) {
	name := v1alpha1.CommandSeed
	if m.state == secondary {
		name = v1alpha1.CommandPromote
	}
	p.send(f, m, name, v1alpha1.CommandPrimary, fmt.Sprintf("%s: %s", m.name(), why))
}

// stop tells a member to stop; its labels say so first. After a stop that failed there is a
// pause, as there is before a start.
func (p *plan) stop(f *facts, m *member, why string) {
	if m.failedHere(v1alpha1.CommandStop) && f.now.Before(m.retryAt) {
		p.LookAgain(m.retryAt.Sub(f.now))
		p.WaitFor(
			v1alpha1.ReasonStopping,
			fmt.Sprintf(
				"stop of %s %s, and is tried again",
				m.name(), howFailed(int(m.failure.Code)),
			),
		)
		return
	}
	if p.waitsForLabel(f, m) {
		return
	}
	before := slices.Concat(p.trial, budgets{f}.closing(m), label(m, v1alpha1.False, v1alpha1.RoleNone))
	p.send(f, m, v1alpha1.CommandStop, v1alpha1.CommandStop, fmt.Sprintf("%s: %s", m.name(), why), before...)
}

// waitsForLabel reports whether a primary that is to go gets its label in this pass, and clients
// with it: it is told to in the next one, when they are taken off first.
func (p *plan) waitsForLabel(f *facts, m *member) bool {
	if !becomesLabelled(f, m) {
		return false
	}
	p.WaitFor(v1alpha1.ReasonHandingOver, "the labels of "+m.name()+" are put right")
	return true
}

// demote turns a primary into a secondary, or stops it where there is no command for that,
// or it failed.
func (p *plan) demote(f *facts, m *member, why string) {
	p.handover = fmt.Sprintf("%s: %s", m.name(), why)
	can := f.configured(v1alpha1.CommandDemote) && f.configured(v1alpha1.CommandSecondary)
	if !can || m.failedToGo() {
		p.stop(f, m, why)
		return
	}
	if p.waitsForLabel(f, m) {
		return
	}
	before := append(budgets{f}.closing(m), label(m, v1alpha1.True, v1alpha1.RoleSecondary)...)
	p.send(f, m, v1alpha1.CommandDemote, v1alpha1.CommandDemote, p.handover, before...)
}

// remove deletes a pod, so that the StatefulSet makes it again on the same data.
func remove(m *member, reason, detail string) action.Chain {
	return action.Chain{{Verb: action.Delete, Object: m.pod, Reason: reason, Detail: detail}}
}
