package rules

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/facts"
)

// The names of new members are written into status.creating before their pods are created, with an
// optimistic lock on the version of the object that was read. If two processes decide on the same
// object, only one can write its names: the write of the other is refused. Later passes use the
// recorded names. So if a create is repeated, or arrives late, it fails with AlreadyExists and does not
// create a second member.

// createMembers adds chains that create members. If their names are not in status.creating yet, a step
// before them records the names. The removal of an entry from status.updating is recorded before, too.
func (p *Plan) createMembers(f *facts.Facts, chains ...action.Chain) {
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
