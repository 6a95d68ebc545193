package rules

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podexec"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/children"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/record"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/spec"
)

// askStatus sends status to the members: at once after a change of the member, otherwise at the
// reconcile interval.
func askStatus(f *facts.Facts, p *Plan) {
	if !f.MayRunCommands() {
		return
	}
	for _, m := range f.Members {
		if !m.Reachable() || !m.Free() {
			continue
		}
		if wait := untilStatus(f.World, m); wait > 0 {
			p.LookAgain(wait)
		} else {
			p.ask(f, m, v1alpha1.CommandStatus)
		}
	}
}

// untilStatus returns the delay until the next status command of a member.
func untilStatus(w *facts.World, m *facts.Member) time.Duration {
	r, asked := m.Result(v1alpha1.CommandStatus)
	switch {
	case !asked, r.Began.Before(m.Touched):
		return 0
	case r.Outcome == podexec.Unknown:
		return w.Due(m, v1alpha1.CommandStatus)
	case !m.Answers(v1alpha1.CommandStatus):
		return 0 // it is older than a change
	case m.Command != nil, m.State == record.Failed:
		return r.Ended.Add(spec.Backoff(1)).Sub(w.Now)
	}
	return r.Ended.Add(spec.ReconcileInterval(&w.Set.Spec)).Sub(w.Now)
}

// ask adds a query to the plan, unless the plan has one for this member, or none can be sent now.
func (p *Plan) ask(f *facts.Facts, m *facts.Member, name string) {
	if p.Asked[m.Name()] || !m.Free() || !m.Reachable() || !f.MayRunCommands() {
		return
	}
	p.Asked[m.Name()] = true
	c := f.Command(m, name, name, f.Record.Epoch)
	c.Asked = f.Now
	p.Do(action.Chain{{
		Verb:    action.Exec,
		Object:  m.Pod,
		Command: c,
		Reason:  facts.ReasonAsk,
		Detail:  name,
	}})
	if name == v1alpha1.CommandStatus {
		p.LookAgain(spec.AnswersWithin)
	}
}

// askVersions sends sequence to the members whose version is not current.
func (p *Plan) askVersions(f *facts.Facts, members []*facts.Member) {
	for _, m := range members {
		if !m.Version.Current {
			p.askVersion(f, m)
		}
	}
}

// askDegraded asks degraded primaries for their sequences. They are 0 until a member has all data.
func (p *Plan) askDegraded(f *facts.Facts) {
	p.askVersions(f, f.Among(func(m *facts.Member) bool { return m.IsPrimary() && m.Degraded() }))
}

// askVersion sends sequence to a member. It applies the backoff after a response that was missing
// or no number.
func (p *Plan) askVersion(f *facts.Facts, m *facts.Member) {
	wait := f.Due(m, v1alpha1.CommandSequence)
	if r, ok := m.Result(v1alpha1.CommandSequence); ok {
		if _, known := record.SequenceOf(r); known {
			wait = 0 // the number is outdated but valid, so no backoff applies
		}
	}
	if wait > 0 {
		p.LookAgain(wait)
		return
	}
	p.ask(f, m, v1alpha1.CommandSequence)
}

// question is a member that must report its sequence again, after the time after.
type question struct {
	*facts.Member
	after time.Time
}

// askSince sends sequence to a member: at once if its last sequence began before q.after, otherwise
// one second after the last response, because that copy was too old.
func (p *Plan) askSince(f *facts.Facts, q question) {
	if last, ok := q.Result(v1alpha1.CommandSequence); ok && last.Began.After(q.after) {
		if wait := last.Ended.Add(spec.Backoff(1)).Sub(f.Now); wait > 0 {
			p.LookAgain(wait)
			return
		}
	}
	p.ask(f, q.Member, v1alpha1.CommandSequence)
}

// Send is the only function that sends a mutating command. It adds the preceding actions, then the
// record, bound to the version of the object that was read, then, for a start as primary, the Lease of
// the member, and then the command. If the record or the Lease cannot be written, nothing is sent. If
// this process dies after the write, the next one knows that the command may have been sent.
func (p *Plan) Send(f *facts.Facts, m *facts.Member, name, instead, detail string, before ...action.Action) {
	if p.Asked[m.Name()] || !canTakeCommand(m) {
		p.WaitFor(v1alpha1.ReasonWaitingForCommand, "waiting for a command in "+m.Name())
		return
	}
	if m.Parked || forbids(f, name) {
		return // callers check this too; it is the last safeguard
	}
	if r, ok := m.Result(name); ok && r.Outcome == podexec.Unknown && f.Due(m, name) > 0 {
		p.LookAgain(f.Due(m, name))
		p.WaitFor(
			v1alpha1.ReasonWaitingForCommand,
			fmt.Sprintf(
				"%s could not be sent to %s and will be retried: %s",
				name, m.Name(), r.Why,
			),
		)
		return
	}
	why := p.whyNoLease(f, m)
	if spec.StartsPrimary(name) && why != "" {
		p.WaitFor(v1alpha1.ReasonStarting, fmt.Sprintf("cannot start %s as primary: %s", m.Name(), why))
		return
	}
	if p.writesRecord {
		return // one record per pass: a second write would be bound to an outdated version
	}
	p.writesRecord = true
	c := f.Command(m, name, instead, p.Record.EpochOf(name))
	c.Decided, c.Proven, c.Within = f.Now.Truncate(time.Microsecond), p.proven, beginWithin(&f.Clock, m, name)
	chain := append(slices.Clone(action.Chain(before)), store(f.World, p.withCommand(f, m, c), facts.ReasonOf(name), detail))
	if spec.StartsPrimary(name) && m.IsLeased() {
		chain = append(chain, assignLease(f, m, f.Observed.LeaseEpoch(m.Identity())))
	}
	p.Do(append(chain, action.Action{
		Verb:    action.Exec,
		Object:  m.Pod,
		Command: c,
		Reason:  facts.ReasonOf(name),
		Detail:  withPeers(f.Peers()),
	}))
}

// canTakeCommand reports whether a command can be sent to the member and none is pending in its
// pod.
func canTakeCommand(m *facts.Member) bool { return m.Free() && m.Command == nil && m.Reachable() }

// forbids reports whether a command could make a primary too many. It enforces the invariant.
func forbids(f *facts.Facts, name string) bool {
	return spec.StartsPrimary(name) && f.Record.Primaries() >= f.WantedPrimaries()
}

// withCommand returns the record with a command that is about to be sent, and the grant that it
// needs.
func (p *Plan) withCommand(f *facts.Facts, m *facts.Member, c *podexec.Command) record.Record {
	var within *metav1.Duration
	if c.Within > podexec.Hurry {
		within = &metav1.Duration{Duration: c.Within}
	}
	r := p.Record
	r.NoteSent(f.Set, c.Name, m.Name())
	r.Commands = append(slices.Clone(r.Commands), v1alpha1.RunningCommand{
		Pod:          m.Name(),
		UID:          m.Pod.UID,
		ContainerID:  m.Running(),
		RestartCount: m.Container().RestartCount,
		Name:         c.Name,
		StartedAt:    metav1.NewMicroTime(c.Decided),
		Timeout:      metav1.Duration{Duration: c.Timeout},
		BeginWithin:  within,
	})
	if !spec.StartsPrimary(c.Name) {
		return r
	}
	r.Epoch = r.EpochOf(c.Name)
	g := record.NewGrant(m.Identity(), r.Epoch, f.Now)
	g.BeginWithin, g.LeaseEpoch = within, f.Observed.LeaseEpoch(m.Identity())
	r.Granted = append(slices.Clone(r.Granted), g)
	return r
}

// beginWithin returns how long after this decision a command may begin. It is longer if reading the
// world took long, because writing the record and sending take as long again. It doubles after each
// failure to send the command.
func beginWithin(c *facts.Clock, m *facts.Member, name string) time.Duration {
	within := podexec.Hurry + (2 * c.Took).Truncate(time.Second)
	if r, ok := m.Result(name); ok && r.Outcome == podexec.Unknown && !r.Sent {
		within <<= min(m.Tries[name], 2)
	}
	return min(within, podexec.MaxHurry)
}

// withPeers returns the detail of an action that sends a command with these peers.
func withPeers(peers []string) string {
	if len(peers) == 0 {
		return "alone"
	}
	return "with " + strings.Join(peers, " ")
}

// startFirstPrimary starts a member as the first primary: it promotes a secondary, and seeds an
// idle member.
func (p *Plan) startFirstPrimary(f *facts.Facts, m *facts.Member, why string) {
	name := v1alpha1.CommandSeed
	if m.State == record.Secondary {
		name = v1alpha1.CommandPromote
	}
	p.Send(f, m, name, v1alpha1.CommandPrimary, fmt.Sprintf("%s: %s", m.Name(), why))
}

// stop stops a member, after its labels are changed. A failed stop is retried with backoff, as a
// start is.
func (p *Plan) stop(f *facts.Facts, m *facts.Member, why string) {
	if m.FailedHere(v1alpha1.CommandStop) && f.Now.Before(m.RetryAt) {
		p.LookAgain(m.RetryAt.Sub(f.Now))
		p.WaitFor(
			v1alpha1.ReasonStopping,
			fmt.Sprintf(
				"stop of %s %s; it will be retried",
				m.Name(), record.HowFailed(int(m.Failure.Code)),
			),
		)
		return
	}
	if p.waitsForLabel(f, m) {
		return
	}
	before := slices.Concat(p.dryRun, closingBudget(f, m), label(m, v1alpha1.False, v1alpha1.RoleNone))
	p.Send(f, m, v1alpha1.CommandStop, v1alpha1.CommandStop, fmt.Sprintf("%s: %s", m.Name(), why), before...)
}

// waitsForLabel reports whether a primary that must stop gets its label in this pass, and with it
// clients. It is stopped in the next pass, after its labels are removed.
func (p *Plan) waitsForLabel(f *facts.Facts, m *facts.Member) bool {
	if !becomesLabelled(f, m) {
		return false
	}
	p.WaitFor(v1alpha1.ReasonHandingOver, "correcting the labels of "+m.Name())
	return true
}

// demote turns a primary into a secondary. It stops the primary if there is no demote command, or
// if demote failed.
func (p *Plan) demote(f *facts.Facts, m *facts.Member, why string) {
	p.Handover = fmt.Sprintf("%s: %s", m.Name(), why)
	can := f.Configured(v1alpha1.CommandDemote) && f.Configured(v1alpha1.CommandSecondary)
	if !can || m.FailedToStepDown() {
		p.stop(f, m, why)
		return
	}
	if p.waitsForLabel(f, m) {
		return
	}
	before := append(closingBudget(f, m), label(m, v1alpha1.True, v1alpha1.RoleSecondary)...)
	p.Send(f, m, v1alpha1.CommandDemote, v1alpha1.CommandDemote, p.Handover, before...)
}

// HowToSkipLeave ends a message with the remedy if leave cannot succeed.
const HowToSkipLeave = ". To remove the member although the application may not have forgotten it, remove spec.pod.commands[leave]"

// leave runs command leave in a member that is being removed, while a member is primary. The member
// gets no clients any more. A failed leave is retried with backoff.
func (p *Plan) leave(f *facts.Facts, m *facts.Member, why string) {
	if len(f.Primaries()) == 0 {
		p.WaitFor(v1alpha1.ReasonScaling, "leave runs in "+m.Name()+" when a member is primary")
		return
	}
	if x := m.Membership; x.Failures > 0 && x.LastFailure != nil {
		p.WaitFor(v1alpha1.ReasonScaling, fmt.Sprintf("leave of %s %s; it will be retried%s", m.Name(), record.HowFailed(int(x.ExitCode)), HowToSkipLeave))
		if wait := x.LastFailure.Add(spec.Backoff(int(x.Failures))).Sub(f.Now); wait > 0 {
			p.LookAgain(wait)
			return
		}
	}
	if p.waitsForLabel(f, m) {
		return
	}
	p.Send(f, m, v1alpha1.CommandLeave, v1alpha1.CommandLeave, fmt.Sprintf("%s: %s", m.Name(), why), label(m, v1alpha1.False, v1alpha1.RoleNone)...)
}

// deletePod deletes a pod. The StatefulSet recreates it with the same data.
func deletePod(m *facts.Member, reason, detail string) action.Chain {
	return action.Chain{{Verb: action.Delete, Object: m.Pod, Reason: reason, Detail: detail}}
}

// dryRunOf returns the dry run of the create of a member's pod from the current template, as if the
// current pod were gone.
//
// A running member is not stopped to be recreated if the API server would reject its new pod,
// because the member would then stay missing. A dry run right before each stop and delete of an
// update tests this. A success is not remembered, because a policy or quota may change.
func dryRunOf(f *facts.Facts, m *facts.Member) action.Chain {
	return action.Chain{{
		Verb: action.Try, Object: children.BuildPod(f.Stateful, m.Ordinal), From: m.Pod,
		Reason: facts.ReasonTrial, Detail: "dry run before the pod is recreated",
	}}
}

// retryDryRun requeues the set for when a member may be stopped again, if a dry run succeeds then.
func (p *Plan) retryDryRun(f *facts.Facts) {
	p.LookAgain(f.RefusedDryRun.At.Add(spec.TrialPause).Sub(f.Now))
}
