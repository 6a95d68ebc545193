package replicatedstatefulset

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podexec"
)

// ended tells whether nothing of a command can happen any more, and notes what
// came of it.
func (b *books) ended(w *world, c *v1alpha1.RunningCommand) bool {
	m := w.byUID(c.UID)
	gone := w.containerGone(c.UID, c.ContainerID)
	r, seen := m.endOf(c)
	unconfirmed := w.unconfirmed(c, gone)
	switch {
	case seen && r.Outcome == podexec.Unknown:
		b.tell(v1alpha1.EventCommandNotSent, "%s was not sent to %s, and nothing was changed there; it is decided on anew: %s", c.Name, c.Pod, r.Why)
		return true
	case unconfirmed && !gone && (startsPrimary(c.Name) || !w.denied(c)):
		return false
	case unconfirmed && !startsPrimary(c.Name):
		b.failed(w, c, 0)
		return true
	case unconfirmed && !w.strayed(c) && !b.noted(c) && w.fresher(m):
		// Had it strayed, a container that took the place of its may have said so.
		b.failed(w, c, 0)
		return true
	case seen && !unconfirmed:
		b.conclude(w, c, r)
		return true
	case m != nil && m.busy != nil && m.busy.Name == c.Name:
		return false // it is on its way, by this very process
	case gone && !w.strayed(c):
		b.tell(v1alpha1.EventCommandEnded, "%s of %s has ended with its container", c.Name, c.Pod)
		return true
	case gone:
		return false
	}
	answer, ok := m.answer(v1alpha1.CommandStatus)
	if !ok || !answer.Began.After(c.StartedAt.Time) || !settles(c.Name, w.stateOf(answer)) {
		return false
	}
	b.tell(succeededAs(c.Name), "%s of %s took effect: status says %s", c.Name, c.Pod, w.stateOf(answer))
	if c.Name == v1alpha1.CommandStop {
		b.clean(m)
	}
	return true
}

// endOf is how a command ended, if this process saw it or knows that it never began.
func (m *member) endOf(c *v1alpha1.RunningCommand) (r podexec.Result, seen bool) {
	if m == nil {
		return r, false
	}
	r = m.results[c.Name]
	return r, r.Decided.Equal(c.StartedAt.Time) && r.ContainerID == c.ContainerID && !r.EndUnseen()
}

// zeroOf is the end of a command that ended with 0, if this process saw it.
func (m *member) zeroOf(c *v1alpha1.RunningCommand) (r podexec.Result, seen bool) {
	r, seen = m.endOf(c)
	return r, seen && r.Outcome == podexec.Succeeded
}

// unconfirmed reports whether a command ended with 0 and status has not said yet that
// it has taken effect. The end of its container is an effect of no start, and of every
// stop.
func (w *world) unconfirmed(c *v1alpha1.RunningCommand, gone bool) bool {
	if _, zero := w.byUID(c.UID).zeroOf(c); !zero {
		return false
	}
	if gone {
		return starts(c.Name)
	}
	return !w.agrees(c)
}

// agrees reports whether status says, since a command ended, that it has taken effect.
func (w *world) agrees(c *v1alpha1.RunningCommand) bool {
	answer, ok := w.byUID(c.UID).answer(v1alpha1.CommandStatus)
	return ok && settles(c.Name, w.stateOf(answer))
}

// denied reports whether status said something else of a command that ended with 0, and
// went on to for settleWithin.
func (w *world) denied(c *v1alpha1.RunningCommand) bool {
	m := w.byUID(c.UID)
	r, zero := m.zeroOf(c)
	answer, ok := m.answer(v1alpha1.CommandStatus)
	return zero && ok && !w.agrees(c) && w.watch.Elapsed(r.Ended, answer.Began) > settleWithin
}

// settles tells whether a state shows that a command whose end nobody saw has
// done its work. After a start that may make a primary only a primary does:
// before, it may be on its way still. The others make no primary, whenever they
// take effect.
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

// strayed tells whether a command whose container is gone may have reached, or
// reach, the one that took its place.
func (w *world) strayed(c *v1alpha1.RunningCommand) bool {
	if !startsPrimary(c.Name) {
		return false
	}
	last := strayUntil(c.StartedAt, c.BeginWithin)
	if !w.now.After(last) {
		return true // also where the clock of the node is ahead of ours
	}
	next := w.successor(c.Pod, c.ContainerID)
	return next != nil && !next.startedAt().After(last)
}

// conclude notes how a command ended.
func (b *books) conclude(w *world, c *v1alpha1.RunningCommand, r podexec.Result) {
	m := w.byUID(c.UID)
	if r.Outcome == podexec.Succeeded {
		b.tell(succeededAs(c.Name), "%s of %s succeeded", c.Name, c.Pod)
		if c.Name == v1alpha1.CommandStop {
			b.clean(m)
		}
		return
	}
	b.failed(w, c, r.Code)
}

// failed notes that a command did: code is 0 for one that status denies.
func (b *books) failed(w *world, c *v1alpha1.RunningCommand, code int) {
	b.warn(v1alpha1.EventMemberFailed, "%s of %s %s", c.Name, c.Pod, howFailed(code))
	i := slices.IndexFunc(b.failures, func(f v1alpha1.Failure) bool { return f.Pod == c.Pod })
	if i < 0 {
		i = len(b.failures)
		b.failures = append(b.failures, v1alpha1.Failure{Pod: c.Pod})
	}
	f := &b.failures[i]
	again := dud(f) && code == 0 && startsPrimary(c.Name) // in a pod that took the place of its
	if f.UID != c.UID && !again || w.now.Sub(f.Last.Time) > failureWindow(&w.set.Spec) {
		*f = v1alpha1.Failure{Pod: c.Pod, UID: c.UID}
	}
	f.Count++
	f.UID, f.ContainerID, f.Last, f.Command, f.Code, f.Generation = c.UID, c.ContainerID, metav1.NewTime(w.now), c.Name, int32(code), w.set.Generation
	f.Unclean = f.Unclean || starts(c.Name)
}

// noted reports whether it is on record that this very start made no primary.
func (b *books) noted(c *v1alpha1.RunningCommand) bool {
	return slices.ContainsFunc(b.failures, func(f v1alpha1.Failure) bool { return dud(&f) && f.ContainerID == c.ContainerID })
}

func howFailed(code int) string {
	if code == 0 {
		return "failed: it ended with 0, and status never agreed"
	}
	return fmt.Sprintf("failed with exit code %d", code)
}
