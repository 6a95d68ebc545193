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
	reasonKeep     = "Keep"     // adds our finalizer to the object
	reasonRelease  = "Release"  // removes our finalizer from the object or a pod
	reasonProtect  = "Protect"  // adds our finalizer to a pod
	reasonLearned  = "Learned"  // stores changes of grants and commands
	reasonRole     = "Role"     // sets the labels of a pod
	reasonChild    = "Child"    // creates or repairs a child
	reasonForeign  = "Foreign"  // removes our labels from a pod that is not a member
	reasonBudget   = "Budget"   // closes the budget for a handover
	reasonTemplate = "Template" // changes the StatefulSet's template
	reasonScale    = "Scale"    // changes the StatefulSet's replicas
	reasonExpand   = "Expand"   // grows a claim
	reasonLeft     = "Left"     // deletes a claim with the object
	reasonOverride = "Override" // completes an order
	reasonRefused  = "Refused"  // refuses an order
	reasonAsk      = "Ask"      // sends status or sequence
	reasonUnseen   = "Unseen"   // deletes a pod because of a command with an unknown outcome
	reasonStray    = "Stray"    // deletes a pod that a command for another container may have reached
	reasonFailed   = "Failed"   // deletes a pod because of failed starts or stops
	reasonFenced   = "Fenced"   // deletes a pod whose machine is off
	reasonRenew    = "Renew"    // deletes a pod to recreate it from the current template
	reasonSurplus  = "Surplus"  // deletes a pod after a scale-down
	reasonTrial    = "Trial"    // dry run of the create of a pod, before the pod is deleted
	reasonResize   = "Resize"   // changes the resources of a pod in place
	reasonInPlace  = "InPlace"  // marks a pod that is changed in place
	reasonResized  = "Resized"  // marks a pod that was updated to the current template in place

	reasonUnresponsive = "Unresponsive" // deletes the pod of a member that blocks a failover
)

// asks reports whether a command is a query that changes nothing.
func asks(name string) bool {
	return name == v1alpha1.CommandStatus || name == v1alpha1.CommandSequence
}

// startsPrimary reports whether a command may make a primary.
func startsPrimary(name string) bool {
	return name == v1alpha1.CommandSeed || name == v1alpha1.CommandPrimary || name == v1alpha1.CommandPromote
}

// starts reports whether a command starts a member.
func starts(name string) bool { return startsPrimary(name) || name == v1alpha1.CommandSecondary }

// reasonOf returns the reason of the action that sends a command: Seed, Primary, ...
func reasonOf(name string) string { return strings.ToUpper(name[:1]) + name[1:] }

// maxSequence is the max number of bytes that are kept of the output of sequence. A number has at
// most 20 digits. The output of other commands is not kept.
const maxSequence = 64

// command returns a command for a member in an epoch. If the spec has no command of that name, it
// runs the command named by instead: for example, without seed, a primary is seeded by primary.
func (f *facts) command(m *member, name, instead string, epoch int64) *podexec.Command {
	configured, ok := f.set.Spec.Pod.Commands[name]
	if !ok {
		configured = f.set.Spec.Pod.Commands[instead]
	}
	keep := 0
	if name == v1alpha1.CommandSequence {
		keep = maxSequence
	}
	return &podexec.Command{
		Name:        name,
		Keep:        keep,
		Pod:         types.NamespacedName{Namespace: m.pod.Namespace, Name: m.pod.Name},
		UID:         m.pod.UID,
		Container:   m.commandsIn,
		ContainerID: m.running(),
		Argv:        append(WithEpoch(configured.Command, epoch), f.peers()...),
		Timeout:     timeoutOf(configured),
	}
}

// epochWord is the placeholder of the epoch in a command. As in the command of a container, $$
// escapes it.
const epochWord = "$(RSS_EPOCH)"

// WithEpoch returns a command of the spec with the epoch substituted.
func WithEpoch(argv []string, epoch int64) []string {
	words := strings.NewReplacer("$"+epochWord, epochWord, epochWord, strconv.FormatInt(epoch, 10))
	said := make([]string, 0, len(argv))
	for _, arg := range argv {
		said = append(said, words.Replace(arg))
	}
	return said
}

// ask adds a query to the plan, at most one for each member.
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

// askStatus sends status to the members: at once after a change of the member, otherwise at the
// reconcile interval.
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

// untilStatus returns the delay until the next status command of a member.
func (w *world) untilStatus(m *member) time.Duration {
	r, asked := m.result(v1alpha1.CommandStatus)
	switch {
	case !asked, r.Began.Before(m.touched):
		return 0
	case r.Outcome == podexec.Unknown:
		return w.due(m, v1alpha1.CommandStatus)
	case !m.answers(v1alpha1.CommandStatus):
		return 0 // it is older than a change
	case m.command != nil, m.state == failed:
		return r.Ended.Add(backoff(1)).Sub(w.now)
	}
	return r.Ended.Add(reconcileInterval(&w.set.Spec)).Sub(w.now)
}

// send is the only function that sends a mutating command. It adds the preceding actions, then the
// record, bound to the version of the object that was read, and then the command. If the record
// cannot be written, nothing is sent. If this process dies after the write, the next one knows that
// the command may have been sent.
func (p *plan) send(f *facts, m *member, name, instead, detail string, before ...action.Action) {
	if p.asked[m.name()] || !m.canTakeCommand() {
		p.WaitFor(v1alpha1.ReasonWaitingForCommand, "waiting for a command in "+m.name())
		return
	}
	if m.parked || f.forbids(name) {
		return // callers check this too; it is the last safeguard
	}
	if r, ok := m.result(name); ok && r.Outcome == podexec.Unknown && f.due(m, name) > 0 {
		p.LookAgain(f.due(m, name))
		p.WaitFor(
			v1alpha1.ReasonWaitingForCommand,
			fmt.Sprintf(
				"%s could not be sent to %s and will be retried: %s",
				name, m.name(), r.Why,
			),
		)
		return
	}
	if p.sent {
		return // one record per pass: a second write would be bound to an outdated version
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

// canTakeCommand reports whether a command can be sent to the member and none is pending in its
// pod.
func (m *member) canTakeCommand() bool { return m.free() && m.command == nil && m.reachable() }

// forbids reports whether a command could make a primary too many.
func (f *facts) forbids(name string) bool {
	return startsPrimary(name) && f.record.primaries() >= f.target()
}

// recordWith returns the record with a command that is about to be sent, and the grant that it
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
	g := newGrant(m.identity(), r.epoch, f.now)
	g.BeginWithin = within
	r.granted = append(slices.Clone(r.granted), g)
	return r
}

// epochOf returns the epoch of the next command. A first primary begins a new epoch, higher than
// any before. The epoch is on record before it is sent.
func (r *record) epochOf(name string) int64 {
	if !startsPrimary(name) || r.hasGrants() {
		return r.epoch
	}
	return max(r.epoch, r.before) + 1
}

// beginWithin returns how long after this decision a command may begin. It is longer if reading the
// world took long, because writing the record and sending take as long again. It doubles after each
// failure to send the command.
func (c *clock) beginWithin(m *member, name string) time.Duration {
	within := podexec.Hurry + (2 * c.took).Truncate(time.Second)
	if r, ok := m.result(name); ok && r.Outcome == podexec.Unknown && !r.Sent {
		within <<= min(m.tries[name], 2)
	}
	return min(within, podexec.MaxHurry)
}

func withPeers(peers []string) string {
	if len(peers) == 0 {
		return "alone"
	}
	return "with " + strings.Join(peers, " ")
}

// start starts a member as the first primary: it promotes a secondary, and seeds an idle member.
func (p *plan) start(f *facts, m *member, why string) {
	name := v1alpha1.CommandSeed
	if m.state == secondary {
		name = v1alpha1.CommandPromote
	}
	p.send(f, m, name, v1alpha1.CommandPrimary, fmt.Sprintf("%s: %s", m.name(), why))
}

// stop stops a member, after its labels are changed. A failed stop is retried with backoff, as a
// start is.
func (p *plan) stop(f *facts, m *member, why string) {
	if m.failedHere(v1alpha1.CommandStop) && f.now.Before(m.retryAt) {
		p.LookAgain(m.retryAt.Sub(f.now))
		p.WaitFor(
			v1alpha1.ReasonStopping,
			fmt.Sprintf(
				"stop of %s %s; it will be retried",
				m.name(), howFailed(int(m.failure.Code)),
			),
		)
		return
	}
	if p.waitsForLabel(f, m) {
		return
	}
	before := slices.Concat(p.trial, closingBudget(f, m), label(m, v1alpha1.False, v1alpha1.RoleNone))
	p.send(f, m, v1alpha1.CommandStop, v1alpha1.CommandStop, fmt.Sprintf("%s: %s", m.name(), why), before...)
}

// waitsForLabel reports whether a primary that must stop gets its label in this pass, and with it
// clients. It is stopped in the next pass, after its labels are removed.
func (p *plan) waitsForLabel(f *facts, m *member) bool {
	if !becomesLabelled(f, m) {
		return false
	}
	p.WaitFor(v1alpha1.ReasonHandingOver, "correcting the labels of "+m.name())
	return true
}

// demote turns a primary into a secondary. It stops the primary if there is no demote command, or
// if demote failed.
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
	before := append(closingBudget(f, m), label(m, v1alpha1.True, v1alpha1.RoleSecondary)...)
	p.send(f, m, v1alpha1.CommandDemote, v1alpha1.CommandDemote, p.handover, before...)
}

// remove deletes a pod. The StatefulSet recreates it with the same data.
func remove(m *member, reason, detail string) action.Chain {
	return action.Chain{{Verb: action.Delete, Object: m.pod, Reason: reason, Detail: detail}}
}

// hasCommand reports whether the spec has a command of that name.
func hasCommand(set *v1alpha1.ReplicatedStatefulSet, name string) bool {
	_, ok := set.Spec.Pod.Commands[name]
	return ok
}

// sentCommands returns the commands that the operator sends. The kubelet runs the others.
func sentCommands() []string {
	return slices.DeleteFunc(slices.Concat(neededCommands, optionalCommands), func(name string) bool { return name == v1alpha1.CommandPreStop })
}
