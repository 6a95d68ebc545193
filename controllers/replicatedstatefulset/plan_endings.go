package replicatedstatefulset

import (
	"time"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podexec"
)

// ending is a recorded command with the facts about its end.
type ending struct {
	*v1alpha1.RunningCommand
	o *observation
	// m is the member in whose pod the command began. It is nil if the pod is gone.
	m *observedMember
	// gone is true if the command's container has ended.
	gone bool
	// result is the result of the command. seen is true if this process saw the command end, or
	// knows that it never began.
	result podexec.Result
	seen   bool
}

// endingOf returns what is known about the end of a recorded command.
func endingOf(o *observation, c *v1alpha1.RunningCommand) ending {
	e := ending{
		RunningCommand: c,
		o:              o,
		m:              o.byUID(c.UID),
		gone:           o.containerGone(c.UID, c.ContainerID),
	}
	if e.m != nil {
		e.result = e.m.results[c.Name]
		e.seen = isEndOf(c, e.result)
	}
	return e
}

// isEndOf reports whether the result belongs to the command and has a known end.
func isEndOf(c *v1alpha1.RunningCommand, r podexec.Result) bool {
	if !r.Decided.Equal(c.StartedAt.Time) || r.ContainerID != c.ContainerID {
		return false
	}
	return !r.EndUnseen()
}

// neverBegan reports whether the command is known not to have reached its container.
func (e ending) neverBegan() bool { return e.seen && e.result.Outcome == podexec.Unknown }

// zero reports whether the command was seen to end with 0.
func (e ending) zero() bool { return e.seen && e.result.Outcome == podexec.Succeeded }

// underWay reports whether this process runs the command and will see its end.
func (e ending) underWay() bool { return e.m != nil && e.m.command == e.Name }

// agreed reports whether status, sent after the command ended, confirms the command's effect.
func (e ending) agreed() bool {
	answer := e.m.status
	return answer != nil && settles(e.Name, stateBy(e.o.set, *answer))
}

// denied reports whether status contradicted a command that ended with 0, for longer than
// settleWithin.
func (e ending) denied() bool {
	if !e.zero() || e.agreed() {
		return false
	}
	answer := e.m.status
	return answer != nil && e.o.watch.Elapsed(e.result.Ended, answer.Began) > settleWithin
}

// unconfirmed reports whether the command ended with 0 and status has not confirmed it yet. The end
// of its container confirms any stop, but no start.
func (e ending) unconfirmed() bool {
	switch {
	case !e.zero():
		return false
	case e.gone:
		return starts(e.Name)
	}
	return !e.agreed()
}

// mayBeConfirmed reports whether status may still confirm the command. A start that may make a
// primary can be confirmed as long as the container runs.
func (e ending) mayBeConfirmed() bool {
	if e.gone || !e.unconfirmed() {
		return false
	}
	return startsPrimary(e.Name) || !e.denied()
}

// mayReachNext reports whether a command whose container is gone may have reached, or may yet
// reach, the replacement container.
func (e ending) mayReachNext() bool {
	if !startsPrimary(e.Name) {
		return false
	}
	last := strayUntil(e.StartedAt, e.BeginWithin)
	if !e.o.now.After(last) {
		return true // also if the clock of the node is ahead of ours
	}
	next := e.o.nextContainer(e.Pod, e.ContainerID)
	return next != nil && !next.startedAt.After(last)
}

// next returns the member whose container the command may have reached instead of the original one:
// the replacement in the same pod, or in a new pod if the old pod is gone. It returns nil if there
// is none.
func (e ending) next() *observedMember {
	next := e.o.nextContainer(e.Pod, e.ContainerID)
	if e.m != nil && e.m != next {
		return nil
	}
	return next
}

// settles reports whether a state proves that a command with an unknown outcome took effect. For a
// start that may make a primary, only primary proves it; otherwise the command may still be in
// progress. The other commands make no primary, whenever they take effect.
func settles(command string, s state) bool {
	switch command {
	case v1alpha1.CommandStop:
		return s == idle
	case v1alpha1.CommandDemote:
		return s == idle || s == secondary
	case v1alpha1.CommandSecondary:
		return s == secondary || s == primary
	}
	return s == primary
}

// isOver reports whether a command can have no further effect, and records its outcome.
func (r *record) isOver(e ending) bool {
	switch {
	case e.neverBegan():
		r.tell(
			v1alpha1.EventCommandNotSent,
			"%s was not sent to %s and changed nothing there; it will be retried if it is still needed: %s",
			e.Name, e.Pod, e.result.Why,
		)
		return true
	case e.mayBeConfirmed():
		return false
	case e.unconfirmed() && r.countsAsFailed(e):
		r.fail(e.o, e.RunningCommand, 0)
		return true
	case e.seen && !e.unconfirmed():
		r.conclude(e)
		return true
	case e.underWay():
		return false
	case !e.gone:
		return r.isOverByStatus(e)
	case e.mayReachNext():
		return false
	}
	r.tell(v1alpha1.EventCommandEnded, "%s of %s ended with its container", e.Name, e.Pod)
	return true
}

// countsAsFailed reports whether a command that ended with 0, and that status can no longer
// confirm, has failed. If a start may have reached the next container, that container may have
// returned the 0.
func (r *record) countsAsFailed(e ending) bool {
	if !startsPrimary(e.Name) {
		return true
	}
	return e.m.upToDate && !e.mayReachNext() && !r.hasUnconfirmed(e.RunningCommand)
}

// isOverByStatus reports whether status proves that a command with an unknown outcome took effect,
// and records it.
func (r *record) isOverByStatus(e ending) bool {
	answer := e.m.status
	if answer == nil || !answer.Began.After(e.StartedAt.Time) {
		return false
	}
	shows := stateBy(e.o.set, *answer)
	if !settles(e.Name, shows) {
		return false
	}
	r.tell(succeededAs(e.Name), "%s of %s took effect: status reports %s", e.Name, e.Pod, shows)
	if e.Name == v1alpha1.CommandStop {
		r.clean(e.UID)
	}
	return true
}

// conclude records how a command ended.
func (r *record) conclude(e ending) {
	if !e.zero() {
		r.fail(e.o, e.RunningCommand, e.result.Code)
		return
	}
	r.tell(succeededAs(e.Name), "%s of %s succeeded", e.Name, e.Pod)
	if e.Name == v1alpha1.CommandStop {
		r.clean(e.UID)
	}
}

// succeededAs returns the event reason for a command that took effect.
func succeededAs(command string) string {
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

// statusUntil returns the deadline for status to show the outcome of the command.
func (e ending) statusUntil() time.Time {
	until := e.StartedAt.Add(e.Timeout.Duration)
	if !e.zero() {
		return until
	}
	if settled := e.o.watch.Deadline(e.result.Ended, settleWithin); settled.After(until) {
		return settled
	}
	return until
}
