package replicatedstatefulset

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podexec"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
)

// newerElsewhere tells whether nobody is promoted, for the sake of copies that do not
// run: they may have what those that run have not. A newer one is started first, and
// is missed if that fails. If all but one run there is nothing to look for: that one
// was the primary.
func (w *world) newerElsewhere(p *plan, running []*member, sequence uint64) bool {
	incomplete := len(running) < max(w.wanted(), len(w.members))-1
	if incomplete && w.awaits(p) {
		return true
	}
	asked := w.among(func(m *member) bool {
		s := w.state(m)
		switch {
		case w.relieved(m):
			return false
		case !incomplete:
			return s == idle && w.kept(m)
		}
		return m.owned && (s == idle || s == failed || s == secondary && m.terminating()) && (!w.barred(m) || w.kept(m))
	})
	if len(asked) == 0 {
		return false
	}
	all, answered := w.copies(p, asked)
	p.blind = unknownAmong(slices.DeleteFunc(slices.Clone(all), func(c copyOf) bool { return !w.kept(c.member) }))
	if !answered || p.blind != "" {
		p.WaitFor(v1alpha1.ReasonSeeding, "nobody knows yet how new the copies of these are: "+namesOf(asked))
		return true
	}
	if !all[0].known || all[0].sequence <= sequence {
		return false
	}
	w.books.record(all[0].member, all[0].sequence)
	for _, c := range all {
		if c.sequence == all[0].sequence && w.startable(c.member) {
			w.startAs(p, c.member, v1alpha1.CommandSeed, fmt.Sprintf("it does not run, and has the newest copy, sequence %d", c.sequence))
			return true
		}
	}
	p.WaitFor(v1alpha1.ReasonRecovering, "the newest copy cannot be started yet: "+all[0].name())
	return true
}

// awaits tells whether members went together with the last primary, and are about
// to come back: what was acknowledged may be in them alone. One that has been
// Pending for longer, whose container ended longer ago, or whose node is lost, holds
// up nobody.
func (w *world) awaits(p *plan) bool {
	left := w.watch.Deadline(w.lossAt, returnsWithin).Sub(w.now)
	if left <= 0 {
		return false
	}
	went, here := w.among(w.returns), len(w.among(func(m *member) bool { return m.ordinal < w.wanted() }))
	if len(went) == 0 && here >= w.wanted() {
		return false
	}
	p.LookAgain(left)
	who := namesOf(went)
	if who == "" {
		who = fmt.Sprintf("%d of %d pods", w.wanted()-here, w.wanted())
	}
	p.WaitFor(v1alpha1.ReasonSeeding, fmt.Sprintf("these went together with the primary, may have the newest copy, and are awaited for %s: %s", returnsWithin, who))
	return true
}

// returns tells whether the member cannot say how new its copy is, and is expected
// to soon.
func (w *world) returns(m *member) bool {
	if m.lost() || !m.owned {
		return false
	}
	if !m.down() {
		return w.commandIn(m) != nil && m.reachable()
	}
	went := w.lossAt.Add(-returnsWithin)
	return m.terminating() || podstate.Ended(m.pod) || m.endedAfter(went) ||
		m.pod.CreationTimestamp.After(went) && m.pod.Status.Phase == corev1.PodPending
}

// relieved tells whether the member is the primary that went last, and was stopped
// when another member had all of its data.
func (w *world) relieved(m *member) bool {
	if m.pod.UID != w.lossOf {
		return false
	}
	r, ok := m.result(v1alpha1.CommandStop)
	return ok && r.Proven && r.Outcome == podexec.Succeeded && !r.Ended.Before(m.changedAt())
}
