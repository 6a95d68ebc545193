package rules

import (
	"fmt"
	"slices"
	"time"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podexec"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/record"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/spec"
)

// resolveCommands ends commands whose end this process will not see: those with an unknown outcome,
// and starts that ended with 0 and that status does not confirm. When their timeout has expired, it
// deletes their pods, so that the kubelet reports the end of the container. Nothing else ends such
// a command. If the command may have reached the next container of the name, that pod is deleted
// too.
func resolveCommands(f *facts.Facts, p *Plan) {
	if !f.MayRunCommands() {
		return
	}
	for i := range f.Record.Commands {
		e := record.EndingOf(f.Observed, &f.Record.Commands[i])
		m, next := f.ByUID(e.UID), e.Next()
		switch {
		case e.UnderWay():
			// this process will see its end
		case next != nil:
			endInReplacement(f, p, e, f.ByUID(next.PodUID))
		case m == nil:
			// it ends with its pod
		case m.Terminating():
			if spec.StartsPrimary(e.Name) {
				p.WaitFor(v1alpha1.ReasonWaitingForStop, f.WhoMayRun())
			}
		default:
			endByStatus(f, p, m, e)
		}
	}
}

// endInReplacement deletes the pod of the replacement container that a command may have reached. It
// waits until StrayUntil, because a further replacement could be reached before.
func endInReplacement(f *facts.Facts, p *Plan, e record.Ending, next *facts.Member) {
	if next.Terminating() || !f.Now.After(spec.StrayUntil(e.StartedAt, e.BeginWithin)) {
		return
	}
	p.deletePodAndRecord(
		f,
		e,
		deletePod(next, facts.ReasonStray, "command "+e.Name+" for the previous container may have reached it"),
	)
}

// endByStatus deletes the pod of a command if status did not show the command's outcome in time.
func endByStatus(f *facts.Facts, p *Plan, m *facts.Member, e record.Ending) {
	zero, answers := e.ExitedZero(), m.Answers(v1alpha1.CommandStatus)
	over := statusIsOverdue(&f.Clock, m, e.StatusUntil())
	switch {
	case e.Contradicted(), !zero && answers && f.Record.HasUnconfirmed(e.RunningCommand):
		p.deletePodAndRecord(
			f,
			e,
			deletePod(
				m,
				facts.ReasonUnseen,
				fmt.Sprintf(
					"%s exited with 0, but status did not confirm it within %s",
					e.Name, spec.SettleWithin,
				),
			),
		)
	case over && zero:
		p.deletePodAndRecord(
			f,
			e,
			deletePod(m, facts.ReasonUnseen, e.Name+" exited with 0, but status does not respond"),
		)
	case over:
		p.Do(deletePod(
			m,
			facts.ReasonUnseen,
			fmt.Sprintf("the outcome of %s is unknown, and status does not show it", e.Name),
		))
	case !zero && e.Name == v1alpha1.CommandLeave:
		p.WaitFor(
			v1alpha1.ReasonWaitingForCommand,
			fmt.Sprintf("the outcome of leave of %s is unknown; its pod is deleted after the timeout of the command", e.Pod),
		)
	case !zero:
		p.WaitFor(
			v1alpha1.ReasonWaitingForCommand,
			fmt.Sprintf(
				"the outcome of %s of %s is unknown; waiting for status to show it",
				e.Name, e.Pod,
			),
		)
	case answers:
		p.WaitFor(
			v1alpha1.ReasonWaitingForCommand,
			fmt.Sprintf("%s of %s exited with 0; waiting for status to confirm it", e.Name, e.Pod),
		)
	}
}

// deletePodAndRecord deletes a pod. If a start in it ended with 0 and made no primary, it records
// the failure first, because the result is lost with the pod. It does not record failures of an
// outdated template, because the next pod has another one.
func (p *Plan) deletePodAndRecord(f *facts.Facts, e record.Ending, gone action.Chain) {
	if !isUnrecordedFailure(f, e) {
		p.Do(gone)
		return
	}
	if p.writesRecord {
		return
	}
	p.writesRecord = true
	r := p.Record
	r.Failures = slices.Clone(r.Failures)
	r.Fail(f.Observed, e.RunningCommand, 0)
	noted := store(f.World, r, facts.ReasonUnseen, fmt.Sprintf("%s of %s %s", e.Name, e.Pod, record.HowFailed(0)))
	p.Do(append(action.Chain{noted}, gone...))
}

// isUnrecordedFailure reports whether a start ended with 0, made no primary, and this is not on
// record yet.
func isUnrecordedFailure(f *facts.Facts, e record.Ending) bool {
	if !e.ExitedZero() || !spec.StartsPrimary(e.Name) {
		return false
	}
	return e.Member.UpToDate && !f.Record.HasUnconfirmed(e.RunningCommand)
}

// statusIsOverdue reports whether a status command that was sent after then did not show the
// outcome of a command, or cannot be sent although then has passed. So after an outage no pod is
// deleted without a new query. On an unreachable Node no pod is deleted, because its kubelet would
// not receive the deletion.
func statusIsOverdue(c *facts.Clock, m *facts.Member, then time.Time) bool {
	if !m.Reachable() {
		return !m.NodeUnreachable() && c.Now.After(then)
	}
	r, asked := m.Result(v1alpha1.CommandStatus)
	switch {
	case !asked, !r.Began.After(then):
		return false
	case r.Outcome != podexec.Unknown:
		return true
	case !m.Unresponsive():
		return false
	case r.Refused && r.Began.After(c.Watch.Deadline(then, spec.RefusedFor)):
		return true
	}
	return r.Sent
}

// stopFailed stops failed members, so that they can be started again, and deletes pods with too
// many failures.
func stopFailed(f *facts.Facts, p *Plan) {
	if !f.MayRunCommands() {
		return
	}
	for _, m := range f.Members {
		if m.Terminating() || !m.Reachable() || m.Command != nil || m.Parked {
			continue
		}
		if why := whyRecreate(f, m); why != "" {
			p.Do(deletePod(m, facts.ReasonFailed, why))
		} else if needsStopFirst(m) {
			p.stop(f, m, whyNeedsStop(m))
		}
	}
}

// needsStopFirst reports whether the member must be stopped before it can be started again.
func needsStopFirst(m *facts.Member) bool {
	switch m.State {
	case record.Failed:
		return true
	case record.Unknown, record.Primary:
		return false
	}
	return m.NeedsStop()
}

// whyRecreate states why the pod of a member is deleted because of failures. It is "" if it is not.
func whyRecreate(f *facts.Facts, m *facts.Member) string {
	x := m.Failure
	switch {
	case x == nil:
		return ""
	case needsStopFirst(m) && m.FailedHere(v1alpha1.CommandStop):
		return "stop " + record.HowFailed(int(x.Code))
	case x.UID != m.Pod.UID, x.Count < *f.Set.Spec.FailureThreshold, isYoung(&f.Clock, m):
		return ""
	case needsStopFirst(m), m.State != record.Idle && m.FailedHere(v1alpha1.CommandStop):
		return fmt.Sprintf("%d starts or stops failed", x.Count)
	}
	return ""
}

// isYoung reports whether a pod is too new to be recreated for failed starts. For a pod that may be
// primary it returns false, because other members wait for its end.
func isYoung(c *facts.Clock, m *facts.Member) bool {
	return !m.Granted && c.Now.Before(m.Pod.CreationTimestamp.Add(spec.MinPodAge))
}

// whyNeedsStop states why the member must be stopped.
func whyNeedsStop(m *facts.Member) string {
	if m.NeedsStop() {
		return m.Failure.Command + " " + record.HowFailed(int(m.Failure.Code))
	}
	r, _ := m.Answer(v1alpha1.CommandStatus)
	return fmt.Sprintf("status failed with exit code %d", r.Code)
}

// stopTerminating stops primaries whose pods are terminating, if another member can take over: the
// grace period may be long, and the pod's main process idle. A primary whose SIGTERM is delayed
// hands its role over.
func stopTerminating(f *facts.Facts, p *Plan) {
	if !f.MayRunCommands() || f.WantedPrimaries() >= f.Wanted() {
		return
	}
	for _, m := range f.Members {
		switch {
		case !m.Terminating(), m.State != record.Primary, m.FailedToStepDown():
		case f.IsHeld(m):
			handOverHeld(f, p, m)
		default:
			p.stop(f, m, "its pod is being deleted")
		}
	}
}

// stopSurplus demotes a primary too many, or stops it if there is no demote command. It takes the
// oldest copy, and of equals the highest ordinal. If that fails, no other primary is changed. scale
// handles a set that is being deleted, and members that must leave as primaries. If all members are
// primaries, one that still receives all data does not count, because it would be started again.
func stopSurplus(f *facts.Facts, p *Plan) {
	live := f.Among(func(m *facts.Member) bool { return m.IsPrimary() && !f.LeavesAsPrimary(m) })
	if !f.MayRunCommands() || f.Wanted() == 0 || len(live) <= f.WantedPrimaries() {
		return
	}
	if f.Set.Spec.Primaries == nil {
		p.askDegraded(f)
		live = slices.DeleteFunc(live, (*facts.Member).LacksData)
	}
	if len(live) <= f.WantedPrimaries() {
		return
	}
	const why = "there are too many primaries"
	if c := changingPrimary(f); c != nil {
		p.WaitFor(
			v1alpha1.ReasonWaitingForCommand,
			fmt.Sprintf("waiting for command %s in %s", c.Name, c.Pod),
		)
		return
	}
	if i := slices.IndexFunc(live, (*facts.Member).FailedToStepDown); i >= 0 {
		p.demote(f, live[i], why)
		return
	}
	p.askVersions(f, live)
	all := copiesOf(live)
	if !all.answered() {
		p.WaitFor(v1alpha1.ReasonStopping, "waiting for a response from sequence in "+facts.NamesOf(live))
		return
	}
	p.demote(f, all.oldest(), why)
}

// changingPrimary returns a pending command that may change a primary. It returns nil if there is
// none.
func changingPrimary(f *facts.Facts) *v1alpha1.RunningCommand {
	for i := range f.Record.Commands {
		if c := &f.Record.Commands[i]; !spec.Asks(c.Name) && f.Record.GrantsName(c.Pod) {
			return c
		}
	}
	return nil
}

// restartRejoining stops members in which leave was sent, and which are not removed. The next start
// makes them join the application again. A primary is stopped only if another one stays.
func restartRejoining(f *facts.Facts, p *Plan) {
	if !f.MayStartMembers() {
		return
	}
	for _, m := range f.Members {
		switch {
		case !m.MustRejoin, m.Parked, !canTakeCommand(m):
		case m.IsSecondary(), m.IsPrimary() && len(f.Primaries()) > 1:
			p.stop(f, m, "the application may have forgotten it, and it is not removed")
			return
		}
	}
}
