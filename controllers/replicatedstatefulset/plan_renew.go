package replicatedstatefulset

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podexec"
)

// templateIsSeen reports whether the StatefulSet controller has observed the template.
func (w *world) templateIsSeen() bool {
	return w.stateful != nil && w.stateful.Status.ObservedGeneration == w.stateful.Generation
}

// renewIdle recreates outdated pods in which nothing runs, one at a time. They serve no client, and
// this replaces a template that cannot run.
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
			p.Do(append(trialOf(f, m), remove(m, reasonRenew, "its template is outdated, and it has no running member")...))
			return
		}
	}
}

// isRenewable reports whether nothing runs in a member, as far as known.
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

// mayBeNeededFirst reports whether a member in which nothing runs may have the copy that must start
// first.
func (f *facts) mayBeNeededFirst(m *member) bool {
	if f.record.hasGrants() {
		return false
	}
	if r, _ := m.result(v1alpha1.CommandStop); m.state == idle && r.Outcome != podexec.Succeeded {
		return true // it was not stopped for this update, and the new template may be broken
	}
	if f.record.epoch == 0 || len(f.set.Spec.Pod.VolumeClaimTemplates) > 0 {
		return false // no member has served yet, or its copy survives the deletion of its pod
	}
	// Its copy is deleted with its pod, and may be the newest once its container runs again.
	return m.endedAfter(f.now.Add(-returnsWithin)) && !m.crashLoops()
}

// renewing reports whether a member is being recreated already.
func (f *facts) renewing() bool {
	return len(f.members) < f.wanted() || slices.ContainsFunc(f.members, isBeingRenewed)
}

// isBeingRenewed reports whether a member is terminating, or has the current template and is
// pending or unknown.
func isBeingRenewed(m *member) bool {
	switch {
	case m.terminating():
		return true
	case m.parked:
		return false
	}
	return m.upToDate && (m.state == pending || m.state == unknown)
}

// renew stops outdated members one at a time while nothing is missing: secondaries first, then each
// primary after another member has taken its role. renewIdle recreates the stopped ones.
func renew(f *facts, p *plan) {
	outdated := f.among(func(m *member) bool { return !m.upToDate })
	if len(outdated) == 0 || !f.starts() || !f.templateIsSeen() {
		return
	}
	if parked := parkedMembers(f); len(parked) > 0 {
		p.WaitFor(v1alpha1.ReasonUpdating, "the update waits until no member is parked; members in spec.maintenance: "+namesOf(parked))
		return
	}
	if f.mayUpdate() {
		renewOne(f, p, nextToRenew(outdated))
	}
	p.WaitFor(v1alpha1.ReasonUpdating, updatingMessageOf(f.world))
}

// nextToRenew returns the next member to update: secondaries before primaries, and of these first
// one that is being changed in place. It returns nil if there is none.
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

// renewOne updates a member, in place if possible.
func renewOne(f *facts, p *plan, m *member) {
	const why = "its template is outdated"
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

// mayUpdate reports whether nothing is missing or degraded, so that a member may be stopped for an
// update.
func (f *facts) mayUpdate() bool {
	if !f.wellStaffed() || f.renewing() {
		return false
	}
	if trouble(f).Status == metav1.ConditionTrue {
		return false
	}
	return !slices.ContainsFunc(f.members, servesNotYet)
}

// servesNotYet reports whether an updated primary serves no clients.
func servesNotYet(m *member) bool { return m.upToDate && m.shown == primary && m.unserved() != "" }
