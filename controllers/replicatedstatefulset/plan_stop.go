package replicatedstatefulset

import (
	"fmt"
	"slices"
	"time"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podexec"
)

// endUnseen deletes the pods of commands whose end was not seen and whose time is over, so
// that the kubelet says when they are: nothing else ends a command. One that may have
// reached the next container of its name ends that one too.
func endUnseen(f *facts, p *plan) {
	if !f.serves() {
		return
	}
	for i := range f.record.commands {
		e := f.ending(&f.record.commands[i])
		next := e.next()
		switch {
		case e.underWay():
			// Its end will be seen.
		case next != nil:
			endInNext(f, p, e, next)
		case e.m == nil:
			// It ends with its pod.
		case e.m.terminating():
			if startsPrimary(e.Name) {
				p.WaitFor(v1alpha1.ReasonWaitingForStop, f.whoMayRun())
			}
		default:
			endByStatus(f, p, e)
		}
	}
}

// endInNext deletes the pod whose container a command may have reached in the place of its
// own. Before its time is over, the one after that could be reached too.
func endInNext(f *facts, p *plan, e ending, next *member) {
	if next.terminating() || !f.now.After(strayUntil(e.StartedAt, e.BeginWithin)) {
		return
	}
	p.removeAfter(
		f,
		e,
		remove(next, reasonStray, e.Name+" for the container before may have reached it"),
	)
}

// endByStatus deletes the pod of a command when status had time to show what came of it,
// and did not.
func endByStatus(f *facts, p *plan, e ending) {
	zero, answers := e.zero(), e.m.answers(v1alpha1.CommandStatus)
	over := f.askedInVain(e.m, e.statusUntil())
	switch {
	case e.denied(), !zero && answers && f.record.hasUnconfirmed(e.RunningCommand):
		p.removeAfter(
			f,
			e,
			remove(
				e.m,
				reasonUnseen,
				fmt.Sprintf(
					"%s ended with 0, and status did not agree within %s",
					e.Name, settleWithin,
				),
			),
		)
	case over && zero:
		p.removeAfter(
			f,
			e,
			remove(e.m, reasonUnseen, e.Name+" ended with 0, and status does not answer"),
		)
	case over:
		p.Do(remove(
			e.m,
			reasonUnseen,
			fmt.Sprintf("the end of %s was not seen, and status does not say", e.Name),
		))
	case !zero:
		p.WaitFor(
			v1alpha1.ReasonWaitingForCommand,
			fmt.Sprintf(
				"the end of %s of %s was not seen; status is asked until it says",
				e.Name, e.Pod,
			),
		)
	case answers:
		p.WaitFor(
			v1alpha1.ReasonWaitingForCommand,
			fmt.Sprintf("%s of %s ended with 0; status is asked until it agrees", e.Name, e.Pod),
		)
	}
}

// statusUntil is until when status may show what came of the command.
func (e ending) statusUntil() time.Time {
	until := e.StartedAt.Add(e.Timeout.Duration)
	if !e.zero() {
		return until
	}
	if settled := e.f.watch.Deadline(e.result.Ended, settleWithin); settled.After(until) {
		return settled
	}
	return until
}

// removeAfter deletes a pod. If a start in it ended with 0 and made no primary, that is on
// record before: the pod may be gone before the next look. Of an old template it is not,
// since the next pod has another.
func (p *plan) removeAfter(f *facts, e ending, gone action.Chain) {
	if !e.isToNote() {
		p.Do(gone)
		return
	}
	if p.sent {
		return
	}
	p.sent = true
	r := p.record
	r.failures = slices.Clone(r.failures)
	r.fail(f, e.RunningCommand, 0)
	noted := f.store(r, reasonUnseen, fmt.Sprintf("%s of %s %s", e.Name, e.Pod, howFailed(0)))
	p.Do(append(action.Chain{noted}, gone...))
}

// isToNote reports whether a start ended with 0, made no primary, and is not on record as
// one that did not.
func (e ending) isToNote() bool {
	if !e.zero() || !startsPrimary(e.Name) {
		return false
	}
	return e.m.upToDate && !e.f.record.hasUnconfirmed(e.RunningCommand)
}

// askedInVain reports whether status was asked after that time, and did not settle what it
// was asked for; or cannot be asked. After an outage no pod is deleted unasked, nor on a
// node that does not answer: its kubelet would not hear of it.
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

// repair stops what failed, so that it can be started again, and deletes the pods in which
// too much has failed.
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

// isBad reports whether the member has to be stopped before it can be started again.
func (m *member) isBad() bool {
	switch m.state {
	case failed:
		return true
	case unknown, primary:
		return false
	}
	return m.needsStop()
}

// whyRecreate says why the pod of a member is deleted, in which too much has failed; "" if
// it is not.
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

// isYoung reports whether a pod is too new to be recreated for starts that failed. One that
// may be primary is not: others wait for its end.
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

// stopTerminating stops primaries whose pods are being deleted, where another can take over:
// the grace period may be long, and the program of the pod idle. One that its kubelet holds
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

// stopSurplus demotes a primary too many, or stops it where there is no command for that:
// the oldest copy, of equals the highest ordinal. If that fails, no other is touched. Of a
// set that goes all are scale's.
func stopSurplus(f *facts, p *plan) {
	live := f.primaries()
	if !f.serves() || f.wanted() == 0 || len(live) <= f.target() {
		return
	}
	const why = "a primary too many"
	if c := f.changingPrimary(); c != nil {
		p.WaitFor(
			v1alpha1.ReasonWaitingForCommand,
			fmt.Sprintf("%s of %s has not ended, as far as is known", c.Name, c.Pod),
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
		p.WaitFor(v1alpha1.ReasonStopping, "sequence has not answered yet in all of "+namesOf(live))
		return
	}
	p.demote(f, all.oldest(), why)
}

// changingPrimary is a command that may change one of the primaries; nil if there is none.
func (f *facts) changingPrimary() *v1alpha1.RunningCommand {
	for i := range f.record.commands {
		if c := &f.record.commands[i]; !asks(c.Name) && f.record.grantsName(c.Pod) {
			return c
		}
	}
	return nil
}

// departure is how far members that leave have got.
type departure struct {
	// over is true when none of them runs any more.
	over bool
	// busy is true while a command runs in one of them: they go one after another.
	busy bool
	// waiting says what is waited for.
	waiting string
	// secondaries and primaries are those that run, the highest ordinal first.
	secondaries, primaries []*member
}

// departureOf looks at members that leave.
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
				"%s of %s has not ended, as far as is known",
				m.command.Name, m.name(),
			))
			return d
		default:
			d.wait("it is not known whether " + m.name() + " runs: status does not answer")
		}
	}
	return d
}

// wait says what is waited for, unless something is said already.
func (d *departure) wait(what string) {
	if d.waiting == "" {
		d.waiting = what
	}
}

// hasLeft reports whether nothing has to be stopped in a member that leaves. Of a silent one
// the pod goes, and is held until its kubelet has stopped it.
func hasLeft(m *member) bool {
	switch {
	case m.state == pending, m.goesForGood(), m.silent():
		return true
	case m.state == idle:
		return m.command == nil
	}
	return m.lost() && !m.granted
}

// stopLeavers stops members that leave one after another: secondaries first, then primaries,
// the highest ordinal first, or where none stays the newest copy last. A primary goes when
// another has its place.
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

// stopFollower stops a secondary that leaves. How new its copy is has to be on record before:
// those that stay may lack it.
func stopFollower(f *facts, p *plan, m *member, why string) {
	if f.wanted() > 0 {
		p.askVersions(f, []*member{m})
		if !m.version.answered {
			p.WaitFor(v1alpha1.ReasonStopping, "sequence has not answered yet in "+m.name())
			return
		}
	}
	p.stop(f, m, why)
}
