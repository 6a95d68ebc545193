package rules

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/facts"
)

// The names of new members are written into status.creating before their pods are created, with an
// optimistic lock on the version of the object that was read. If two processes decide on the same
// object, only one can write its names; the write of the other is refused. Later passes use the
// recorded names. So a repeated or late create fails with AlreadyExists and does not create a
// second member.

// make adds chains that create members, and before them the step that records their names. Entries
// removed from status.updating are recorded first, too.
func (p *Plan) make(f *facts.Facts, chains ...action.Chain) {
	onRecord := true
	for _, name := range created(chains) {
		if !slices.Contains(f.Set.Status.Creating, name) {
			onRecord = false
		}
		if !slices.Contains(p.Creating, name) {
			p.Creating = append(p.Creating, name)
		}
	}
	switch {
	case !onRecord:
		p.record(f, facts.ReasonNames)
	case f.ReturnFailed && len(chains) > 0:
		p.record(f, facts.ReasonUpdate)
	}
	p.Then(chains...)
}

// created returns the names of the pods that the chains create.
func created(chains []action.Chain) (names []string) {
	for _, chain := range chains {
		for _, a := range chain {
			if _, isPod := a.Object.(*corev1.Pod); isPod && a.Verb == action.Create {
				names = append(names, a.Object.GetName())
			}
		}
	}
	return names
}
