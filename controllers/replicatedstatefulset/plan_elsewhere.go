package replicatedstatefulset

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podexec"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
)

// newerElsewhere tells whether nobody is promoted, for the sake of copies that do not
// run: they may have what those that run have not. A newer one is started first.
// Where the primary was stopped with proof there is nothing to look for.
func (w *world) newerElsewhere(p *plan, running []*member, sequence uint64) bool {
	if w.relieved() {
		return false
	}
	incomplete := len(running) < w.wanted()-w.target()
	if incomplete && w.awaits(p) {
		return true
	}
	asked := w.among(func(m *member) bool {
		s := w.state(m)
		if !incomplete {
			return s == idle && w.kept(m)
		}
		return m.owned && (s == idle || s == failed) && (!w.barred(m) || w.kept(m))
	})
	if len(asked) == 0 {
		return false
	}
	all, answered := w.copies(p, asked)
	p.blind = unknownAmong(slices.DeleteFunc(slices.Clone(all), func(c copyOf) bool { return !w.kept(c.member) }))
	if !answered || p.blind != "" {
		p.waitFor(v1alpha1.ReasonSeeding, "nobody knows yet how new the copies of these are: "+namesOf(asked))
		return true
	}
	if !all[0].known || all[0].sequence <= sequence {
		return false
	}
	if w.startable(all[0].member) {
		w.startAs(p, all[0].member, v1alpha1.CommandSeed, fmt.Sprintf("it does not run, and has the newest copy, sequence %d", all[0].sequence))
	} else {
		p.waitFor(v1alpha1.ReasonRecovering, "the newest copy cannot be started yet: "+all[0].name())
	}
	return true
}

// returnsWithin is how long after the loss of the last primary those are awaited
// that went together with it: a pod is made anew within seconds, and a container
// started again.
const returnsWithin = time.Minute

// awaits tells whether members went together with the last primary, and are about
// to come back: what was acknowledged may be in them alone. One that has been
// Pending for longer, whose container ends again and again, or whose node is lost,
// holds up nobody.
func (w *world) awaits(p *plan) bool {
	left := w.lossAt.Add(returnsWithin).Sub(w.now)
	if left <= 0 {
		return false
	}
	went, here := w.among(w.returns), len(w.among(func(m *member) bool { return m.ordinal < w.wanted() }))
	if len(went) == 0 && here >= w.wanted() {
		return false
	}
	p.lookAgain(left)
	who := namesOf(went)
	if who == "" {
		who = fmt.Sprintf("%d of %d pods", w.wanted()-here, w.wanted())
	}
	p.waitFor(v1alpha1.ReasonSeeding, fmt.Sprintf("these went together with the primary, may have the newest copy, and are awaited for %s: %s", returnsWithin, who))
	return true
}

// returns tells whether the member does not run, and is expected to soon.
func (w *world) returns(m *member) bool {
	switch c := m.container(); {
	case m.lost() || !m.owned:
		return false
	case m.terminating() || podstate.Ended(m.pod):
		return m.down() // while it runs it is asked
	case !m.down():
		return false
	case c != nil && c.State.Terminated != nil:
		return true
	default:
		return m.pod.CreationTimestamp.After(w.lossAt.Add(-returnsWithin)) && m.pod.Status.Phase == corev1.PodPending
	}
}

// relieved tells whether the primary that went last was stopped when another member
// had all of its data.
func (w *world) relieved() bool {
	m := w.byUID(w.lossOf)
	if m == nil {
		return false
	}
	r, ok := m.result(v1alpha1.CommandStop)
	return ok && r.Proven && r.Outcome == podexec.Succeeded
}
