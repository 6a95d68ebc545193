package replicatedstatefulset

import (
	"fmt"
	"slices"
	"time"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podexec"
)

// endUnseen deletes the pods of commands with an unknown outcome whose timeout has expired, so that
// the kubelet reports their end. Nothing else ends such a command. If the command may have reached
// the next container of the name, that pod is deleted too.
func endUnseen(f *facts, p *plan) {
	if !f.serves() {
		return
	}
	for i := range f.record.commands {
		e := endingOf(f.observed, &f.record.commands[i])
		m, next := f.byUID(e.UID), e.next()
		switch {
		case e.underWay():
			// this process will see its end
		case next != nil:
			endInNext(f, p, e, f.byUID(next.podUID))
		case m == nil:
			// it ends with its pod
		case m.terminating():
			if startsPrimary(e.Name) {
				p.WaitFor(v1alpha1.ReasonWaitingForStop, f.whoMayRun())
			}
		default:
			endByStatus(f, p, m, e)
		}
	}
}

// endInNext deletes the pod of the replacement container that a command may have reached. It waits
// until strayUntil, because a further replacement could be reached before.
func endInNext(f *facts, p *plan, e ending, next *member) {
	if next.terminating() || !f.now.After(strayUntil(e.StartedAt, e.BeginWithin)) {
		return
	}
	p.removeAfter(
		f,
		e,
		remove(next, reasonStray, "command "+e.Name+" for the previous container may have reached it"),
	)
}

// endByStatus deletes the pod of a command if status did not show the command's outcome in time.
func endByStatus(f *facts, p *plan, m *member, e ending) {
	zero, answers := e.zero(), m.answers(v1alpha1.CommandStatus)
	over := f.askedInVain(m, e.statusUntil())
	switch {
	case e.denied(), !zero && answers && f.record.hasUnconfirmed(e.RunningCommand):
		p.removeAfter(
			f,
			e,
			remove(
				m,
				reasonUnseen,
				fmt.Sprintf(
					"%s exited with 0, but status did not confirm it within %s",
					e.Name, settleWithin,
				),
			),
		)
	case over && zero:
		p.removeAfter(
			f,
			e,
			remove(m, reasonUnseen, e.Name+" exited with 0, but status does not respond"),
		)
	case over:
		p.Do(remove(
			m,
			reasonUnseen,
			fmt.Sprintf("the outcome of %s is unknown, and status does not show it", e.Name),
		))
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

// removeAfter deletes a pod. If a start in it ended with 0 and made no primary, it records the
// failure first, because the pod may be gone in the next pass. It does not record failures of an
// outdated template, because the next pod has another one.
func (p *plan) removeAfter(f *facts, e ending, gone action.Chain) {
	if !isToNote(f, e) {
		p.Do(gone)
		return
	}
	if p.sent {
		return
	}
	p.sent = true
	r := p.record
	r.failures = slices.Clone(r.failures)
	r.fail(f.observed, e.RunningCommand, 0)
	noted := f.store(r, reasonUnseen, fmt.Sprintf("%s of %s %s", e.Name, e.Pod, howFailed(0)))
	p.Do(append(action.Chain{noted}, gone...))
}

// isToNote reports whether a start ended with 0, made no primary, and this is not on record yet.
func isToNote(f *facts, e ending) bool {
	if !e.zero() || !startsPrimary(e.Name) {
		return false
	}
	return e.m.upToDate && !f.record.hasUnconfirmed(e.RunningCommand)
}

// askedInVain reports whether a status command sent after that time did not show the outcome, or
// status cannot be sent. After an outage, no pod is deleted without a new query. On an unreachable
// node, no pod is deleted, because its kubelet would not receive the deletion.
func (c *clock) askedInVain(m *member, then time.Time) bool {
	if !m.reachable() {
		return !m.lost() && c.now.After(then)
	}
	r, asked := m.result(v1alpha1.CommandStatus)
	switch {
	case !asked, !r.Began.After(then):
		return false
	case r.Outcome != podexec.Unknown:
		return true
	case !m.unresponsive():
		return false
	case r.Refused && r.Began.After(c.watch.Deadline(then, refusedFor)):
		return true
	}
	return r.Sent
}

// repair stops failed members, so that they can be started again, and deletes pods with too many
// failures.
func repair(f *facts, p *plan) {
	if !f.serves() {
		return
	}
	for _, m := range f.members {
		if m.terminating() || !m.reachable() || m.command != nil || m.parked {
			continue
		}
		if why := f.whyRecreate(m); why != "" {
			p.Do(remove(m, reasonFailed, why))
		} else if m.isBad() {
			p.stop(f, m, whyBad(m))
		}
	}
}

// isBad reports whether the member must be stopped before it can be started again.
func (m *member) isBad() bool {
	switch m.state {
	case failed:
		return true
	case unknown, primary:
		return false
	}
	return m.needsStop()
}

// whyRecreate states why the pod of a member is deleted because of failures. It is "" if it is not.
func (f *facts) whyRecreate(m *member) string {
	x := m.failure
	switch {
	case x == nil:
		return ""
	case m.isBad() && m.failedHere(v1alpha1.CommandStop):
		return "stop " + howFailed(int(x.Code))
	case x.UID != m.pod.UID, x.Count < *f.set.Spec.FailureThreshold, f.isYoung(m):
		return ""
	case m.isBad(), m.state != idle && m.failedHere(v1alpha1.CommandStop):
		return fmt.Sprintf("%d starts or stops failed", x.Count)
	}
	return ""
}

// isYoung reports whether a pod is too new to be recreated for failed starts. A pod that may be
// primary never is, because other members wait for its end.
func (c *clock) isYoung(m *member) bool {
	return !m.granted && c.now.Before(m.pod.CreationTimestamp.Add(minPodAge))
}

func whyBad(m *member) string {
	if m.needsStop() {
		return m.failure.Command + " " + howFailed(int(m.failure.Code))
	}
	r, _ := m.answer(v1alpha1.CommandStatus)
	return fmt.Sprintf("status failed with exit code %d", r.Code)
}

// stopTerminating stops primaries whose pods are terminating, if another member can take over: the
// grace period may be long, and the pod's main process idle. A primary whose SIGTERM is delayed
// hands its role over.
func stopTerminating(f *facts, p *plan) {
	if !f.serves() || f.target() >= f.wanted() {
		return
	}
	for _, m := range f.members {
		switch {
		case !m.terminating(), m.state != primary, m.failedToGo():
		case f.isHeld(m):
			handOverHeld(f, p, m)
		default:
			p.stop(f, m, "its pod is being deleted")
		}
	}
}

// stopSurplus demotes a primary too many, or stops it if there is no demote command. It takes the
// oldest copy, and of equals the highest ordinal. If that fails, no other primary is changed. scale
// handles a set that is being deleted.
func stopSurplus(f *facts, p *plan) {
	live := f.primaries()
	if !f.serves() || f.wanted() == 0 || len(live) <= f.target() {
		return
	}
	const why = "there are too many primaries"
	if c := f.changingPrimary(); c != nil {
		p.WaitFor(
			v1alpha1.ReasonWaitingForCommand,
			fmt.Sprintf("waiting for command %s in %s", c.Name, c.Pod),
		)
		return
	}
	if i := slices.IndexFunc(live, (*member).failedToGo); i >= 0 {
		p.demote(f, live[i], why)
		return
	}
	p.askVersions(f, live)
	all := copiesOf(live)
	if !all.answered() {
		p.WaitFor(v1alpha1.ReasonStopping, "waiting for a response from sequence in "+namesOf(live))
		return
	}
	p.demote(f, all.oldest(), why)
}

// changingPrimary returns a pending command that may change a primary. It returns nil if there is
// none.
func (f *facts) changingPrimary() *v1alpha1.RunningCommand {
	for i := range f.record.commands {
		if c := &f.record.commands[i]; !asks(c.Name) && f.record.grantsName(c.Pod) {
			return c
		}
	}
	return nil
}

// departure is the progress of members that are being removed.
type departure struct {
	// over is true if all of them have stopped.
	over bool
	// busy is true while waiting for a command in one of them. They are stopped one after another.
	busy bool
	// waiting is the reason why the removal is delayed.
	waiting string
	// secondaries and primaries are the running members, the highest ordinal first.
	secondaries, primaries []*member
}

// departureOf returns the progress of members that are being removed.
func departureOf(leavers []*member) departure {
	d := departure{over: true}
	for _, m := range slices.Backward(leavers) {
		if hasLeft(m) {
			continue
		}
		d.over = false
		switch {
		case m.state == secondary:
			d.secondaries = append(d.secondaries, m)
		case m.state == primary:
			d.primaries = append(d.primaries, m)
		case m.command != nil:
			d.busy = true
			d.wait(fmt.Sprintf(
				"waiting for command %s in %s",
				m.command.Name, m.name(),
			))
			return d
		default:
			d.wait("cannot determine whether " + m.name() + " runs: status does not respond")
		}
	}
	return d
}

// wait sets the reason of the delay, unless it is set already.
func (d *departure) wait(what string) {
	if d.waiting == "" {
		d.waiting = what
	}
}

// hasLeft reports whether nothing must be stopped in a member that is being removed. The pod of a
// silent member is deleted, and its finalizer stays until the kubelet has stopped it.
func hasLeft(m *member) bool {
	switch {
	case m.state == pending, m.goesForGood(), m.silent():
		return true
	case m.state == idle:
		return m.command == nil
	}
	return m.lost() && !m.granted
}

// stopLeavers stops members one after another: secondaries before primaries, the highest ordinal
// first. If no member stays, the newest copy is stopped last. A primary is stopped when another
// member can take its role.
func stopLeavers(f *facts, p *plan, d departure) {
	if d.waiting != "" {
		p.WaitFor(v1alpha1.ReasonStopping, d.waiting)
	}
	why := "scaled down"
	if f.deleting() {
		why = "the set is being deleted"
	}
	switch {
	case d.busy:
	case len(d.secondaries) > 0:
		stopFollower(f, p, d.secondaries[0], why)
	case len(d.primaries) == 0:
	case f.wanted() == 0:
		p.askVersions(f, d.primaries)
		if all := copiesOf(d.primaries); all.answered() {
			p.stop(f, all.oldest(), why)
		}
	default:
		relieve(f, p, d.primaries[0], why)
	}
}

// stopFollower stops a secondary that is being removed. Its sequence must be on record first,
// because the staying members may lack its data.
func stopFollower(f *facts, p *plan, m *member, why string) {
	if f.wanted() > 0 {
		p.askVersions(f, []*member{m})
		if !m.version.answered {
			p.WaitFor(v1alpha1.ReasonStopping, "waiting for a response from sequence in "+m.name())
			return
		}
	}
	p.stop(f, m, why)
}
