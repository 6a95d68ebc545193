package replicatedstatefulset

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podexec"
)

// templateIsSeen reports whether the StatefulSet's controller has seen the template.
func (w *world) templateIsSeen() bool {
	return w.stateful != nil && w.stateful.Status.ObservedGeneration == w.stateful.Generation
}

// renewIdle recreates pods, one at a time, in which nothing runs and that are out of date:
// they serve no client, and a template that cannot run is left like this.
func renewIdle(f *facts, p *plan) {
	if !f.starts() || !f.templateIsSeen() || f.renewing() {
		return
	}
	if f.trial.isRecent(f.now) {
		p.tryLater(f)
		return
	}
	for _, m := range slices.Backward(f.members) {
		if !m.upToDate && isRenewable(m) && !f.mayBeNeededFirst(m) {
			p.Do(append(trialOf(f, m), remove(m, reasonRenew, "its template is out of date, and nothing runs in it")...))
			return
		}
	}
}

// isRenewable reports whether nothing runs in a member, or is known to.
func isRenewable(m *member) bool {
	switch {
	case m.stranger != "", m.terminating(), m.lost(), m.parked:
		return false
	case m.granted, m.command != nil:
		return false
	}
	switch m.state {
	case idle, pending, failed:
		return true
	}
	return m.silent()
}

// mayBeNeededFirst reports whether a member in which nothing runs may have the copy that is
// started first.
func (f *facts) mayBeNeededFirst(m *member) bool {
	if f.record.hasGrants() {
		return false
	}
	if r, _ := m.result(v1alpha1.CommandStop); m.state == idle && r.Outcome != podexec.Succeeded {
		return true // it was not stopped for this, and the new template may be bad
	}
	if f.record.epoch == 0 || len(f.set.Spec.Pod.VolumeClaimTemplates) > 0 {
		return false // no member has served yet, or its copy stays when its pod is deleted
	}
	// Its copy is deleted with its pod, and may be the newest when its container runs again.
	return m.endedAfter(f.now.Add(-returnsWithin)) && !m.crashLoops()
}

// renewing reports whether a member is on its way already.
func (f *facts) renewing() bool {
	return len(f.members) < f.wanted() || slices.ContainsFunc(f.members, isBeingRenewed)
}

// isBeingRenewed reports whether a member goes, or came with the present template and has not
// said yet what it is.
func isBeingRenewed(m *member) bool {
	switch {
	case m.terminating():
		return true
	case m.parked:
		return false
	}
	return m.upToDate && (m.state == pending || m.state == unknown)
}

// renew stops members that are out of date, one at a time while nothing is missing:
// secondaries first, then each primary when another has its place. What is stopped is
// recreated by renewIdle.
func renew(f *facts, p *plan) {
	outdated := f.among(func(m *member) bool { return !m.upToDate })
	if len(outdated) == 0 || !f.starts() || !f.templateIsSeen() {
		return
	}
	if parked := (parking{f}).parked(); len(parked) > 0 {
		p.WaitFor(v1alpha1.ReasonUpdating, "members are recreated from the present template when none is parked; in spec.maintenance are "+namesOf(parked))
		return
	}
	if f.mayUpdate() {
		renewOne(f, p, nextToRenew(outdated))
	}
	p.WaitFor(v1alpha1.ReasonUpdating, updatingMessageOf(f.world))
}

// nextToRenew is the member that is updated next: secondaries before primaries, and of these
// one that is on its way in place; nil if there is none.
func nextToRenew(outdated []*member) *member {
	for _, state := range []state{secondary, primary} {
		for _, begun := range []bool{true, false} {
			for _, m := range slices.Backward(outdated) {
				if m.state == state && isChangedInPlace(m.pod) == begun {
					return m
				}
			}
		}
	}
	return nil
}

// renewOne updates a member, in place where that can be.
func renewOne(f *facts, p *plan, m *member) {
	const why = "its template is out of date"
	if m == nil {
		return
	}
	next := stepInPlace(f, m)
	p.goOn(f, next)
	if next.instead {
		return
	}
	if f.trial.isRecent(f.now) {
		p.tryLater(f)
		return
	}
	p.trial = trialOf(f, m)
	if m.state == primary {
		relieve(f, p, m, why)
		return
	}
	p.stop(f, m, why)
}

// mayUpdate reports whether nothing is missing or wrong, so that a member may be stopped for
// an update.
func (f *facts) mayUpdate() bool {
	if !f.wellStaffed() || f.renewing() {
		return false
	}
	if trouble(f).Status == metav1.ConditionTrue {
		return false
	}
	return !slices.ContainsFunc(f.members, servesNotYet)
}

// servesNotYet reports whether a primary that was updated serves no clients.
func servesNotYet(m *member) bool { return m.upToDate && m.shown == primary && m.unserved() != "" }
