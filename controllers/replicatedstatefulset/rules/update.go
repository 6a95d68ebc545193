package rules

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podexec"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/record"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/spec"
)

// recreateIdle recreates outdated pods in which nothing runs, one at a time. They serve no client,
// and this replaces a template that cannot run.
func recreateIdle(f *facts.Facts, p *Plan) {
	if !f.MayStartMembers() || !f.TemplateIsSeen() || f.IsRecreating() {
		return
	}
	if f.RefusedDryRun.IsRecent(f.Now) {
		p.retryDryRun(f)
		return
	}
	for _, m := range slices.Backward(f.Members) {
		if !m.UpToDate && isRecreatable(m) && !mayBeNeededFirst(f, m) {
			p.Do(append(dryRunOf(f, m), deletePod(m, facts.ReasonRenew, "its template is outdated, and it has no running member")...))
			return
		}
	}
}

// isRecreatable reports whether nothing runs in a member, as far as known.
func isRecreatable(m *facts.Member) bool {
	switch {
	case m.WhyForeign != "", m.Terminating(), m.NodeUnreachable(), m.Parked:
		return false
	case m.Granted, m.Command != nil:
		return false
	}
	switch m.State {
	case record.Idle, record.Pending, record.Failed:
		return true
	}
	return m.NeverAnswers()
}

// mayBeNeededFirst reports whether a member in which nothing runs may have the copy that must start
// first.
func mayBeNeededFirst(f *facts.Facts, m *facts.Member) bool {
	if f.Record.HasGrants() {
		return false
	}
	if f.MustBeCompared(m) {
		return true
	}
	if r, _ := m.Result(v1alpha1.CommandStop); m.State == record.Idle && r.Outcome != podexec.Succeeded {
		return true // it was not stopped for this update, and the new template may be broken
	}
	if f.Record.Epoch == 0 || len(f.Set.Spec.Pod.VolumeClaimTemplates) > 0 {
		return false // no member has served yet, or its copy survives the deletion of its pod
	}
	// Its copy is deleted with its pod, and may be the newest once its container runs again.
	return m.EndedAfter(f.Now.Add(-spec.ReturnsWithin)) && !m.CrashLoops()
}

// update stops outdated members one at a time while nothing is missing: secondaries first, then
// each primary after another member has taken its role. recreateIdle recreates the stopped ones.
func update(f *facts.Facts, p *Plan) {
	outdated := f.Among(func(m *facts.Member) bool { return !m.UpToDate })
	if len(outdated) == 0 || !f.MayStartMembers() || !f.TemplateIsSeen() {
		return
	}
	if parked := facts.ParkedMembers(f); len(parked) > 0 {
		p.WaitFor(v1alpha1.ReasonUpdating, "the update waits until no member is parked; members in spec.maintenance: "+facts.NamesOf(parked))
		return
	}
	if unavailable := f.Among(f.BlocksUpdate); len(unavailable) > 0 {
		p.awaitAvailable(f, unavailable)
		return
	}
	if mayUpdate(f) {
		updateMember(f, p, nextToUpdate(outdated))
	}
	p.WaitFor(v1alpha1.ReasonUpdating, UpdatingMessageOf(f.World))
}

// awaitAvailable delays the update until the given members have served clients for minReadySeconds.
func (p *Plan) awaitAvailable(f *facts.Facts, unavailable []*facts.Member) {
	var names []string
	for _, m := range unavailable {
		names = append(names, fmt.Sprintf("%s (%s)", m.Name(), f.WhyUnavailable(m)))
	}
	p.WaitFor(v1alpha1.ReasonWaitingForAvailability, fmt.Sprintf(
		"the update waits until updated members have been Ready for spec.minReadySeconds (%s): %s",
		f.MinReady(), strings.Join(names, ", "),
	))
}

// nextToUpdate returns the next member to update: secondaries before primaries, and of these first
// one that is being changed in place. It returns nil if there is none.
func nextToUpdate(outdated []*facts.Member) *facts.Member {
	for _, state := range []record.State{record.Secondary, record.Primary} {
		for _, begun := range []bool{true, false} {
			for _, m := range slices.Backward(outdated) {
				if m.State == state && facts.IsChangedInPlace(m.Pod) == begun {
					return m
				}
			}
		}
	}
	return nil
}

// updateMember updates a member, in place if possible.
func updateMember(f *facts.Facts, p *Plan, m *facts.Member) {
	const why = "its template is outdated"
	if m == nil {
		return
	}
	next := stepInPlace(f, m)
	p.addStep(f, next)
	if next.instead {
		return
	}
	if f.RefusedDryRun.IsRecent(f.Now) {
		p.retryDryRun(f)
		return
	}
	p.dryRun = dryRunOf(f, m)
	if m.State == record.Primary {
		stopWithSuccessor(f, p, m, why)
		return
	}
	p.stop(f, m, why)
}

// mayUpdate reports whether nothing is missing or degraded, so that a member may be stopped for an
// update.
func mayUpdate(f *facts.Facts) bool {
	if !f.WellStaffed() || f.IsRecreating() {
		return false
	}
	if facts.Trouble(f).Status == metav1.ConditionTrue {
		return false
	}
	return !slices.ContainsFunc(f.Members, servesNotYet)
}

// servesNotYet reports whether an updated primary serves no clients.
func servesNotYet(m *facts.Member) bool {
	return m.UpToDate && m.Shown == record.Primary && m.Unserved() != ""
}

// UpdatingMessage is the message while members have another template.
const UpdatingMessage = "recreating members from the current template, one at a time"

// UpdatingMessageOf returns the message for a set, which differs if members may be changed in
// place.
func UpdatingMessageOf(w *facts.World) string {
	if w.ChangesInPlace() {
		return "updating members to the current template, one at a time: in place if only cpu and memory changed, otherwise by recreating them"
	}
	return UpdatingMessage
}
