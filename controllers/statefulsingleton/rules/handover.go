package rules

import (
	"fmt"
	"slices"

	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/facts"
)

// supersede deletes the running pod of an older revision once a pod of the newest revision
// has been at its gate for long enough. This resolves a deadlock: a rolling update with surge
// waits for the new pod to be Ready, and the new pod waits for the old one to stop. The
// Deployment would delete the old pod later anyway. Nothing is deleted if another blocker is
// not superseded, because it would block the new pod anyway. If there are several blockers,
// those that were not created under this object are not superseded, because their Deployment
// would not stop them all at once.
func supersede(f *facts.Facts, p *Plan) {
	if !f.Grants() {
		return
	}
	var chains []action.Chain
	for _, m := range f.Blockers {
		if m.Terminating() {
			continue
		}
		if !isSuperseded(f, m) {
			return
		}
		chains = append(chains, Deletion(m, ReasonSuperseded, whySuperseded(f, m)))
	}
	p.Do(chains...)
}

// isSuperseded reports whether a pod may be deleted for one of its successors.
func isSuperseded(f *facts.Facts, m *facts.Member) bool {
	if len(f.Blockers) > 1 && !f.MadeUnder(m) {
		return false
	}
	return slices.ContainsFunc(f.Successors(m), func(next *facts.Member) bool {
		if next.NeedsClaimOf(m) {
			return true
		}
		return next.Eligible() && next.GateSteady
	})
}

// whySuperseded returns why a superseded pod is deleted.
func whySuperseded(f *facts.Facts, m *facts.Member) string {
	if m == f.Leaving {
		return fmt.Sprintf("its Node %s is cordoned, and its replacement waits on another Node", m.Pod.Spec.NodeName)
	}
	return "a pod of the newest revision waits for it"
}

// endLateHandover deletes the pods that block a late handover, if the spec allows that and they
// were created under this object. A pod whose successor cannot reach its gate keeps
// running: deleting it would gain nothing, and the next pod of its revision would be
// deleted as well.
func endLateHandover(f *facts.Facts, p *Plan) {
	if !f.Late || !f.DeletesOnTimeout() {
		return
	}
	var replaced []*facts.Member
	chains := deletions(f.Blockers, ReasonTimeout, timeoutDetail, func(m *facts.Member) bool {
		switch {
		case !blocksOthers(f, m), m.Terminating(), !f.MadeUnder(m):
			return false
		case f.MayBeReplaced(m):
			replaced = append(replaced, m)
			return false
		}
		return true
	})
	p.Do(append(chains, replacement(f, replaced)...)...)
}

// timeoutDetail is why such a pod is deleted.
const timeoutDetail = "the handover takes longer than maxTransitionTime"

// blocksOthers reports whether another pod could start as soon as this one has stopped.
func blocksOthers(f *facts.Facts, m *facts.Member) bool {
	switch {
	case podstate.Ended(m.Pod), f.IsIdle(m), f.MayBeReplaced(m):
		return true
	}
	return slices.ContainsFunc(f.Successors(m), (*facts.Member).AtGate)
}
