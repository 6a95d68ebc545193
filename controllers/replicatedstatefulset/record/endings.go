package record

import (
	"slices"
	"time"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podexec"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/spec"
)

// A command stays on record until it can have no further effect. The proof is one of these:
//
//   - This process saw it end, or knows that it was not sent.
//   - A later status command shows its effect (proves).
//   - Its container has ended, and it cannot have reached the replacement (mayReachNext).
//   - It starts a primary, and the Lease of its grant does not name the pod any more (isRevoked).
//
// A command that ended with 0 must also be confirmed by status, because exec may return 0 for a
// process that still runs (kubernetes#73056). Until then it counts as running. If status
// contradicts it for SettleWithin, a start that may make a primary has an unknown outcome, and any
// other command has failed. No status shows the effect of leave: any status confirms its 0, and none
// proves that it took effect if its outcome is unknown.

// Ending is a command on record with the facts about its end.
type Ending struct {
	*v1alpha1.RunningCommand
	observed *Observed
	// Member is the member in whose pod the command began. It is nil if the pod is gone.
	Member *ObservedMember
	// containerEnded is true if the command's container has ended.
	containerEnded bool
	// result is the result of the command in this process. endIsKnown is true if the result belongs
	// to this command and has a known end: this process saw the command end, or knows that it was
	// not sent.
	result     podexec.Result
	endIsKnown bool
}

// EndingOf returns the facts about the end of a command on record.
func EndingOf(o *Observed, c *v1alpha1.RunningCommand) Ending {
	e := Ending{
		RunningCommand: c,
		observed:       o,
		Member:         o.byUID(c.UID),
		containerEnded: o.containerEnded(c.UID, c.ContainerID),
	}
	if e.Member != nil {
		e.result = e.Member.Results[c.Name]
		e.endIsKnown = isEndOf(c, e.result)
	}
	return e
}

// endCommands removes the commands that can have no further effect.
func (r *Record) endCommands(o *Observed) {
	r.Commands = slices.DeleteFunc(
		r.Commands,
		func(c v1alpha1.RunningCommand) bool { return r.isOver(EndingOf(o, &c)) },
	)
}

// isOver reports whether a command can have no further effect, and records its outcome. The order
// of the cases matters. The first four are for commands that were seen to end. In the others the
// outcome is unknown, or a start ended with 0 and made no primary.
func (r *Record) isOver(e Ending) bool {
	switch {
	case r.endsWithLease(e):
		r.addEvent(v1alpha1.EventCommandEnded, "%s of %s ended with its Lease", e.Name, e.Pod)
		return true
	case e.neverBegan():
		r.addEvent(
			v1alpha1.EventCommandNotSent,
			"%s was not sent to %s and changed nothing there; it will be retried if it is still needed: %s",
			e.Name, e.Pod, e.result.Why,
		)
		return true
	case e.mayBeConfirmed():
		return false
	case e.unconfirmed() && r.countsAsFailed(e):
		r.Fail(e.observed, e.RunningCommand, 0)
		return true
	case e.endIsKnown && !e.unconfirmed():
		r.conclude(e)
		return true
	case e.UnderWay():
		return false
	case !e.containerEnded:
		return r.isOverByStatus(e)
	case e.mayReachNext():
		return false
	}
	r.addEvent(v1alpha1.EventCommandEnded, "%s of %s ended with its container", e.Name, e.Pod)
	return true
}

// endsWithLease reports whether a start can begin no more, and what it has started has ended, because its Lease
// does not name the pod any more. If the end of the command is known, its result counts instead.
func (r *Record) endsWithLease(e Ending) bool {
	isKnown := e.endIsKnown && !e.unconfirmed()
	if isKnown || !spec.StartsPrimary(e.Name) {
		return false
	}
	g := r.grantOf(e.RunningCommand)
	return g != nil && e.observed.isRevoked(g)
}

// isEndOf reports whether the result belongs to the command and has a known end.
func isEndOf(c *v1alpha1.RunningCommand, r podexec.Result) bool {
	if !r.Decided.Equal(c.StartedAt.Time) || r.ContainerID != c.ContainerID {
		return false
	}
	return !r.EndUnseen()
}

// neverBegan reports whether the command is known not to have reached its container.
func (e Ending) neverBegan() bool { return e.endIsKnown && e.result.Outcome == podexec.Unknown }

// ExitedZero reports whether the command was seen to end with 0.
func (e Ending) ExitedZero() bool { return e.endIsKnown && e.result.Outcome == podexec.Succeeded }

// UnderWay reports whether this process runs the command and will see its end.
func (e Ending) UnderWay() bool { return e.Member != nil && e.Member.Command == e.Name }

// confirmed reports whether status, sent after the command ended, confirms the command's effect.
func (e Ending) confirmed() bool {
	answer := e.Member.Status
	if answer == nil {
		return false
	}
	return e.Name == v1alpha1.CommandLeave || proves(e.Name, stateBy(e.observed.Set, *answer))
}

// Contradicted reports whether status contradicted a command that ended with 0, for longer than
// SettleWithin.
func (e Ending) Contradicted() bool {
	if !e.ExitedZero() || e.confirmed() {
		return false
	}
	answer := e.Member.Status
	return answer != nil && e.observed.Watch.Elapsed(e.result.Ended, answer.Began) > spec.SettleWithin
}

// unconfirmed reports whether the command ended with 0 and status has not confirmed it yet. The end
// of its container confirms any stop, but no start.
func (e Ending) unconfirmed() bool {
	switch {
	case !e.ExitedZero():
		return false
	case e.containerEnded:
		return spec.Starts(e.Name)
	}
	return !e.confirmed()
}

// mayBeConfirmed reports whether the command ended with 0 and status may still confirm it. A start
// that may make a primary can be confirmed as long as the container runs, because no elapsed time
// proves that it has failed.
func (e Ending) mayBeConfirmed() bool {
	if e.containerEnded || !e.unconfirmed() {
		return false
	}
	return spec.StartsPrimary(e.Name) || !e.Contradicted()
}

// mayReachNext reports whether a command whose container is gone may have reached, or may yet
// reach, the replacement container.
func (e Ending) mayReachNext() bool {
	if !spec.StartsPrimary(e.Name) && e.Name != v1alpha1.CommandLeave {
		return false
	}
	last := spec.StrayUntil(e.StartedAt, e.BeginWithin)
	if !e.observed.Now.After(last) {
		return true // also if the clock of the node is ahead of ours
	}
	next := e.observed.replacementOf(e.Pod, e.ContainerID)
	return next != nil && !next.StartedAt.After(last)
}

// Next returns the member whose container the command may have reached instead of the original one:
// the replacement in the same pod, or in a new pod if the old pod is gone. It returns nil if there
// is none.
func (e Ending) Next() *ObservedMember {
	next := e.observed.replacementOf(e.Pod, e.ContainerID)
	if e.Member != nil && e.Member != next {
		return nil
	}
	return next
}

// proves reports whether a state proves that a command with an unknown outcome took effect. For a
// start that may make a primary, only primary proves it; otherwise the command may still be in
// progress. The other commands make no primary, whenever they take effect.
func proves(command string, state State) bool {
	switch command {
	case v1alpha1.CommandLeave:
		return false
	case v1alpha1.CommandStop:
		return state == Idle
	case v1alpha1.CommandDemote:
		return state == Idle || state == Secondary
	case v1alpha1.CommandSecondary:
		return state == Secondary || state == Primary
	}
	return state == Primary
}

// countsAsFailed reports whether a command that ended with 0, and that status can no longer
// confirm, is recorded as failed. A start that may make a primary is not, if
//
//   - its pod has an outdated template: the next pod has another one;
//   - it may have reached the next container, which then returned the 0;
//   - the failure is on record already.
func (r *Record) countsAsFailed(e Ending) bool {
	if !spec.StartsPrimary(e.Name) {
		return true
	}
	return e.Member.UpToDate && !e.mayReachNext() && !r.HasUnconfirmed(e.RunningCommand)
}

// isOverByStatus reports whether status proves that a command with an unknown outcome took effect,
// and records it.
func (r *Record) isOverByStatus(e Ending) bool {
	answer := e.Member.Status
	if answer == nil || !answer.Began.After(e.StartedAt.Time) {
		return false
	}
	shows := stateBy(e.observed.Set, *answer)
	if !proves(e.Name, shows) {
		return false
	}
	r.addEvent(SucceededAs(e.Name), "%s of %s took effect: status reports %s", e.Name, e.Pod, shows)
	if e.Name == v1alpha1.CommandStop {
		r.clearUnclean(e.UID)
	}
	return true
}

// conclude records how a command ended.
func (r *Record) conclude(e Ending) {
	switch {
	case e.Name == v1alpha1.CommandLeave:
		r.noteLeave(e.observed, e.Pod, e.result.Code)
		return
	case !e.ExitedZero():
		r.Fail(e.observed, e.RunningCommand, e.result.Code)
		return
	}
	r.addEvent(SucceededAs(e.Name), "%s of %s succeeded", e.Name, e.Pod)
	if e.Name == v1alpha1.CommandStop {
		r.clearUnclean(e.UID)
	}
}

// SucceededAs returns the event reason for a command that took effect.
func SucceededAs(command string) string {
	switch command {
	case v1alpha1.CommandSeed:
		return v1alpha1.EventSeeded
	case v1alpha1.CommandStop:
		return v1alpha1.EventMemberStopped
	case v1alpha1.CommandDemote:
		return v1alpha1.EventDemoted
	}
	return v1alpha1.EventMemberStarted
}

// StatusUntil returns the deadline for status to show the outcome of the command.
func (e Ending) StatusUntil() time.Time {
	until := e.StartedAt.Add(e.Timeout.Duration)
	if !e.ExitedZero() {
		return until
	}
	if settled := e.observed.Watch.Deadline(e.result.Ended, spec.SettleWithin); settled.After(until) {
		return settled
	}
	return until
}
