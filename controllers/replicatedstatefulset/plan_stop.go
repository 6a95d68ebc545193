package replicatedstatefulset

import (
	"fmt"
	"slices"
	"time"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podexec"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
)

// endUnseen deletes the pods of commands whose end nobody saw and whose time is
// over, so that the kubelet says when they are: nothing else ends a command. One
// that may have reached the next container of its name ends that one too.
func endUnseen(w *world, p *plan) {
	if !w.serves() {
		return
	}
	for i := range w.books.commands {
		c := &w.books.commands[i]
		m := w.byUID(c.UID)
		if m != nil && m.busy != nil && m.busy.Name == c.Name {
			continue // it runs, and its end will be seen
		}
		if next := w.successor(c.Pod, c.ContainerID); next != nil && (m == nil || m == next) {
			if !next.terminating() && w.now.After(strayUntil(c.StartedAt, c.BeginWithin)) { // before, the one after it could be reached too
				w.removeAfter(p, next, c, remove(next, reasonStray, fmt.Sprintf("%s for the container before may have reached it", c.Name)))
			}
			continue
		}
		if m == nil {
			continue
		}
		if m.terminating() {
			if startsPrimary(c.Name) {
				p.WaitFor(v1alpha1.ReasonWaitingForStop, w.whoMayRun())
			}
			continue
		}
		r, seen := m.zeroOf(c) // what ended otherwise is in the books no more
		_, answered := m.answer(v1alpha1.CommandStatus)
		until := c.StartedAt.Add(c.Timeout.Duration)
		if patience := w.watch.Deadline(r.Ended, settleWithin); seen && patience.After(until) {
			until = patience
		}
		switch {
		case w.denied(c) || !seen && answered && w.books.noted(c):
			w.removeAfter(p, m, c, remove(m, reasonUnseen, fmt.Sprintf("%s ended with 0, and status did not agree within %s", c.Name, settleWithin)))
		case w.askedSince(m, until) && seen:
			w.removeAfter(p, m, c, remove(m, reasonUnseen, c.Name+" ended with 0, and status does not answer"))
		case w.askedSince(m, until):
			p.Do(remove(m, reasonUnseen, fmt.Sprintf("nobody saw how %s ended, and status does not say", c.Name)))
		case !seen:
			p.WaitFor(v1alpha1.ReasonWaitingForCommand, fmt.Sprintf("nobody saw how %s of %s ended; status is asked until it says", c.Name, c.Pod))
		case answered:
			p.WaitFor(v1alpha1.ReasonWaitingForCommand, fmt.Sprintf("%s of %s ended with 0; status is asked until it agrees", c.Name, c.Pod))
		}
	}
}

// removeAfter deletes a pod. If a start in it ended with 0 and made no primary, that is
// on record before: the pod may be gone before anybody looks again. Of an old template
// it is not, since the next pod has another.
func (w *world) removeAfter(p *plan, m *member, c *v1alpha1.RunningCommand, gone action.Chain) {
	if _, seen := m.zeroOf(c); !seen || !startsPrimary(c.Name) || !w.fresher(m) || w.books.noted(c) {
		p.Do(gone)
	} else if !p.sent {
		p.sent = true
		b := w.books
		b.failures = slices.Clone(b.failures)
		b.failed(w, c, 0)
		p.Do(append(action.Chain{w.write(b, reasonUnseen, fmt.Sprintf("%s of %s %s", c.Name, c.Pod, howFailed(0)))}, gone...))
	}
}

// askedSince tells whether status was asked after that time, and did not settle what
// it was asked for; or cannot be asked. After an outage nobody is deleted unasked, nor
// on a node that does not answer: its kubelet would not hear of it.
func (w *world) askedSince(m *member, then time.Time) bool {
	if !m.reachable() {
		return !m.lost() && w.now.After(then)
	}
	r, ok := m.result(v1alpha1.CommandStatus)
	return ok && r.Began.After(then) && (r.Outcome != podexec.Unknown || m.mute() && (r.Sent || r.Refused && r.Began.After(w.watch.Deadline(then, refusedFor))))
}

// repair stops what failed, so that it can be started again, and deletes the pods
// in which too much has failed.
func repair(w *world, p *plan) {
	if !w.serves() {
		return
	}
	for _, m := range w.members {
		if m.terminating() || !m.reachable() || w.commandIn(m) != nil {
			continue
		}
		f, s := w.failure(m), w.state(m)
		bad := s == failed || w.unclean(m) && s != unknown && s != primary
		switch {
		case f != nil && bad && f.ContainerID == m.running() && f.Command == v1alpha1.CommandStop:
			p.Do(remove(m, reasonFailed, "stop "+howFailed(int(f.Code))))
		case f != nil && f.UID == m.pod.UID && f.Count >= *w.set.Spec.FailureThreshold && !w.young(m) && (bad || f.Command == v1alpha1.CommandStop && s != idle && f.ContainerID == m.running()):
			p.Do(remove(m, reasonFailed, fmt.Sprintf("%d starts or stops failed", f.Count)))
		case bad:
			w.stop(p, m, w.whyBad(m))
		}
	}
}

// young tells whether a pod is too new for that. One that may be primary is not:
// others wait for its end.
func (w *world) young(m *member) bool {
	return !w.granted(m) && w.now.Before(m.pod.CreationTimestamp.Add(minPodAge))
}

func (w *world) whyBad(m *member) string {
	if f := w.failure(m); f != nil && w.unclean(m) {
		return f.Command + " " + howFailed(int(f.Code))
	}
	r, _ := m.answer(v1alpha1.CommandStatus)
	return fmt.Sprintf("status failed with exit code %d", r.Code)
}

// stopTerminating stops primaries whose pods are being deleted, where another can
// take over: the grace period may be long, and the program of the pod idle.
func stopTerminating(w *world, p *plan) {
	if !w.serves() || w.target() >= w.wanted() {
		return
	}
	for _, m := range w.members {
		if f := w.failure(m); m.terminating() && w.state(m) == primary && (f == nil || starts(f.Command)) {
			w.stop(p, m, "its pod is being deleted")
		}
	}
}

// stopSurplus demotes a primary too many, or stops it where there is no command
// for that: the oldest copy, of equals the highest ordinal. If that fails, no
// other is touched. Of a set that goes all are scale's.
func stopSurplus(w *world, p *plan) {
	live := w.primaries()
	if !w.serves() || len(live) <= w.target() || w.wanted() == 0 {
		return
	}
	for _, c := range w.books.commands {
		if !asks(c.Name) && w.grantedPod(c.Pod) {
			p.WaitFor(v1alpha1.ReasonWaitingForCommand, fmt.Sprintf("%s of %s has not ended, as far as is known", c.Name, c.Pod))
			return
		}
	}
	if i := slices.IndexFunc(live, func(m *member) bool {
		f := w.failure(m)
		return f != nil && !starts(f.Command)
	}); i >= 0 {
		w.demote(p, live[i], "a primary too many")
		return
	}
	all, answered := w.copies(p, live)
	if !answered {
		p.WaitFor(v1alpha1.ReasonStopping, "sequence has not answered yet in all of "+namesOf(live))
		return
	}
	w.demote(p, all[len(all)-1].member, "a primary too many")
}

func (w *world) grantedPod(name string) bool {
	return slices.ContainsFunc(w.books.grants, func(g v1alpha1.Grant) bool { return g.Pod == name })
}

// stopLeavers stops those members one after another, and tells whether none runs
// any more: secondaries first, then primaries, the highest ordinal first, or where
// nobody stays the newest copy last. A primary goes when another has its place.
func (w *world) stopLeavers(p *plan, leavers []*member) (done bool) {
	done = true
	var secondaries, primaries []*member
	for _, m := range slices.Backward(leavers) {
		s := w.state(m)
		switch {
		case s == pending, s == idle && w.commandIn(m) == nil, m.terminating(), podstate.Ended(m.pod), m.lost() && !w.granted(m), w.silent(m):
			continue // of a silent one the pod goes, and is held until its kubelet has stopped it
		case s == secondary:
			secondaries = append(secondaries, m)
		case s == primary:
			primaries = append(primaries, m)
		case w.commandIn(m) != nil:
			p.WaitFor(v1alpha1.ReasonStopping, fmt.Sprintf("%s of %s has not ended, as far as is known", w.commandIn(m).Name, m.name()))
			return false // one after another
		default:
			p.WaitFor(v1alpha1.ReasonStopping, "nobody knows how this member is: "+m.name())
		}
		done = false
	}
	switch {
	case len(secondaries) > 0:
		// How new its copy is has to be on record before: those that stay may lack it.
		m, answered := secondaries[0], true
		if w.wanted() > 0 {
			_, answered, _ = w.sequence(p, m)
		}
		if answered {
			w.stop(p, m, "it goes")
		} else {
			p.WaitFor(v1alpha1.ReasonStopping, "sequence has not answered yet in "+m.name())
		}
	case len(primaries) == 0:
	case w.wanted() == 0:
		all, answered := w.copies(p, primaries)
		if answered {
			w.stop(p, all[len(all)-1].member, "it goes")
		}
	default:
		w.relieve(p, primaries[0], "it goes")
	}
	return done
}
