package replicatedstatefulset

import (
	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podexec"
)

// ending is a command of the record, and what is known of its end.
type ending struct {
	*v1alpha1.RunningCommand
	f *facts
	// m is the member in whose pod it was begun; nil if the pod is gone.
	m *member
	// gone is true if its container has ended.
	gone bool
	// result is how it ended, if seen: this process saw it, or knows that it never began.
	result podexec.Result
	seen   bool
}

func (f *facts) ending(c *v1alpha1.RunningCommand) ending {
	e := ending{
		RunningCommand: c,
		f:              f,
		m:              f.byUID(c.UID),
		gone:           f.containerGone(c.UID, c.ContainerID),
	}
	if e.m != nil {
		e.result = e.m.results[c.Name]
		e.seen = isEndOf(c, e.result)
	}
	return e
}

// isEndOf reports whether a result is that of a command, and says how it ended.
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

// underWay reports whether this process runs the command: it will see the end.
func (e ending) underWay() bool { return e.m != nil && e.m.runs(e.Name) }

// agreed reports whether status says, since the command ended, that it has taken effect.
func (e ending) agreed() bool {
	answer, ok := e.m.answer(v1alpha1.CommandStatus)
	return ok && settles(e.Name, e.f.stateBy(answer))
}

// denied reports whether status said something else of a command that ended with 0, and
// went on to for settleWithin.
func (e ending) denied() bool {
	if !e.zero() || e.agreed() {
		return false
	}
	answer, ok := e.m.answer(v1alpha1.CommandStatus)
	return ok && e.f.watch.Elapsed(e.result.Ended, answer.Began) > settleWithin
}

// unconfirmed reports whether the command ended with 0 and status has not said yet that it
// has taken effect. The end of its container is an effect of no start, and of every stop.
func (e ending) unconfirmed() bool {
	switch {
	case !e.zero():
		return false
	case e.gone:
		return starts(e.Name)
	}
	return !e.agreed()
}

// mayBeConfirmed reports whether status may still say that the command has taken effect.
// Of a start that may make a primary it may as long as the container runs.
func (e ending) mayBeConfirmed() bool {
	if e.gone || !e.unconfirmed() {
		return false
	}
	return startsPrimary(e.Name) || !e.denied()
}

// mayReachNext reports whether a command whose container is gone may have reached, or
// reach, the one that took its place.
func (e ending) mayReachNext() bool {
	if !startsPrimary(e.Name) {
		return false
	}
	last := strayUntil(e.StartedAt, e.BeginWithin)
	if !e.f.now.After(last) {
		return true // also where the clock of the node is ahead of ours
	}
	next := e.f.nextContainer(e.Pod, e.ContainerID)
	return next != nil && !next.startedAt().After(last)
}

// next is the member whose container the command may have reached in the place of its own:
// it took that place in the same pod, or the pod is gone; nil if there is none.
func (e ending) next() *member {
	next := e.f.nextContainer(e.Pod, e.ContainerID)
	if e.m != nil && e.m != next {
		return nil
	}
	return next
}

// settles reports whether a state shows that a command whose end was not seen has done its
// work. After a start that may make a primary only a primary does: before, it may be on its
// way still. The others make no primary, whenever they take effect.
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

// isOver reports whether nothing of a command can happen any more, and puts down what came
// of it.
func (r *record) isOver(e ending) bool {
	switch {
	case e.neverBegan():
		r.tell(
			v1alpha1.EventCommandNotSent,
			"%s was not sent to %s, and nothing was changed there; it is decided again: %s",
			e.Name, e.Pod, e.result.Why,
		)
		return true
	case e.mayBeConfirmed():
		return false
	case e.unconfirmed() && r.countsAsFailed(e):
		r.fail(e.f, e.RunningCommand, 0)
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
	r.tell(v1alpha1.EventCommandEnded, "%s of %s has ended with its container", e.Name, e.Pod)
	return true
}

// countsAsFailed reports whether a command that ended with 0, and that status cannot
// confirm any more, has failed. Had a start reached the next container, that one may have
// said so.
func (r *record) countsAsFailed(e ending) bool {
	if !startsPrimary(e.Name) {
		return true
	}
	return e.m.upToDate && !e.mayReachNext() && !r.hasUnconfirmed(e.RunningCommand)
}

// isOverByStatus reports whether status shows that a command whose end was not seen has
// taken effect, and puts that down.
func (r *record) isOverByStatus(e ending) bool {
	answer, ok := e.m.answer(v1alpha1.CommandStatus)
	if !ok || !answer.Began.After(e.StartedAt.Time) {
		return false
	}
	shows := e.f.stateBy(answer)
	if !settles(e.Name, shows) {
		return false
	}
	r.tell(succeededAs(e.Name), "%s of %s took effect: status says %s", e.Name, e.Pod, shows)
	if e.Name == v1alpha1.CommandStop {
		r.clean(e.m)
	}
	return true
}

// conclude puts down how a command ended.
func (r *record) conclude(e ending) {
	if !e.zero() {
		r.fail(e.f, e.RunningCommand, e.result.Code)
		return
	}
	r.tell(succeededAs(e.Name), "%s of %s succeeded", e.Name, e.Pod)
	if e.Name == v1alpha1.CommandStop {
		r.clean(e.m)
	}
}

// succeededAs is the reason of the event that a command has taken effect.
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
