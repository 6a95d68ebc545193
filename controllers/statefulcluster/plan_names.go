package statefulcluster

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
)

// The names of new members are written into status.creating, on the version of
// the object that was read, before a pod is created under one of them. Of two
// processes that decide on the same object one writes its names, and the other
// one's write is refused. Whoever goes on takes the names that are on record, so
// a create that comes twice, or late, meets AlreadyExists and makes no twin.

// namesBatch bounds the names on record, so that the object stays far below
// what etcd takes (1.5 MiB).
const namesBatch = 2000

// unusedNames are the ids on record that no one has, or had as far as can be seen:
// no member, no claim, no loss and no entry of status.updating.
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

// stillWanted are the names on record that the empty slots will take. The others
// are given back: a set at rest has no names on record.
func stillWanted(f *facts) []string {
	free := unusedNames(f.world)
	empty := max(0, f.wanted()-f.occupied()+len(f.lost)) // a lost member's slot is taken by a new one
	return f.namesOf(free[:min(len(free), empty)])
}

func (w *world) namesOf(ids []string) []string {
	var names []string
	for _, id := range ids {
		names = append(names, w.nameOf(id))
	}
	return names
}

// make adds chains that create members, and before them the record of their
// names. What was given up is recorded first, too.
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

// created are the names of the pods that the chains create.
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

// stillCreating are the names that stay on record after the pass: not those
// whose pod was created, nor those that the pod of another owner has.
func stillCreating(f *facts, p *plan, done results) []string {
	names := p.creating
	if p.recorded && !done.wroteStatus() {
		names = stillWanted(f)
	}
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		return slices.ContainsFunc(done.outcomes, func(o action.Outcome) bool { return usesName(o, name) })
	})
}

// usesName reports whether a name is given away for good: a pod was created under it,
// or one had it already.
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
