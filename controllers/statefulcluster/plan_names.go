package statefulcluster

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
)

// The names of new members are written into status.creating before their pods are created, with an
// optimistic lock on the version of the object that was read. If two processes decide on the same
// object, only one can write its names; the write of the other is refused. Later passes use the
// recorded names. So a repeated or late create fails with AlreadyExists and does not create a
// second member.

// namesBatch bounds the number of recorded names, so that the object stays far below the etcd limit
// (1.5 MiB).
const namesBatch = 2000

// unusedNames returns the recorded ids that, as far as can be seen, were never used: by no member,
// claim, loss or entry of status.updating.
func unusedNames(w *world) []string {
	taken := w.ids()
	var free []string
	for _, name := range w.set.Status.Creating {
		id := w.idOf(name)
		if !taken[id] && !listed(w.set.Status.Lost, name) {
			free = append(free, id)
		}
	}
	return free
}

// stillWanted returns the recorded names that are needed for empty slots. The others are removed,
// so a set at rest has no recorded names.
func stillWanted(f *facts) []string {
	free := unusedNames(f.world)
	empty := max(0, f.wanted()-f.occupied()+len(f.lost)) // a lost member's slot is filled by a new member
	return f.namesOf(free[:min(len(free), empty)])
}

func (w *world) namesOf(ids []string) []string {
	var names []string
	for _, id := range ids {
		names = append(names, w.nameOf(id))
	}
	return names
}

// make adds chains that create members, and before them the step that records their names. Entries
// removed from status.updating are recorded first, too.
func (p *plan) make(f *facts, chains ...action.Chain) {
	onRecord := true
	for _, name := range created(chains) {
		if !slices.Contains(f.set.Status.Creating, name) {
			onRecord = false
		}
		if !slices.Contains(p.creating, name) {
			p.creating = append(p.creating, name)
		}
	}
	switch {
	case !onRecord:
		p.record(f, reasonNames)
	case f.returnFailed && len(chains) > 0:
		p.record(f, reasonUpdate)
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

// stillCreating returns the names that stay recorded after the pass. Names whose pod was created,
// or that the pod of another owner has, are removed.
func stillCreating(f *facts, p *plan, done results) []string {
	names := p.creating
	if p.recorded && !done.wroteStatus() {
		names = stillWanted(f)
	}
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		return slices.ContainsFunc(done.outcomes, func(o action.Outcome) bool { return usesName(o, name) })
	})
}

// usesName reports whether a name is used up: a pod was created with it, or another pod already had
// it.
func usesName(o action.Outcome, name string) bool {
	if !createsNew(o) || o.Object.GetName() != name {
		return false
	}
	return o.Err == nil || apierrors.IsAlreadyExists(o.Err)
}

// createsNew reports whether the action creates the pod of a new member.
func createsNew(o action.Outcome) bool {
	return o.Verb == action.Create && (o.Reason == reasonMissing || o.Reason == reasonReplaced)
}
