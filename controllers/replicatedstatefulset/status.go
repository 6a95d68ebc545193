package replicatedstatefulset

import (
	"slices"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
)

func summarize(w *world, p *plan) v1alpha1.ReplicatedStatefulSetStatus {
	s := w.set.Status.DeepCopy()
	w.books.into(s)
	s.ObservedGeneration = w.set.Generation
	s.Members = membersOf(w)
	if int32(len(w.members)) == *w.set.Spec.Replicas && len(w.members) > 0 {
		s.RestoreReplicas = int32(len(w.members))
	}
	return *s
}

func membersOf(w *world) v1alpha1.Members {
	var all v1alpha1.Members
	for _, m := range w.members {
		s := w.shown(m)
		if s == pending || m.terminating() || m.lost() {
			all.Unready = append(all.Unready, m.name())
			continue
		}
		all.Ready = append(all.Ready, m.name())
		switch {
		case s == primary:
			all.Primary = append(all.Primary, m.name())
		case s == failed || w.unclean(m):
			all.Failed = append(all.Failed, m.name())
		case s == secondary:
			all.Secondary = append(all.Secondary, m.name())
		}
	}
	return all
}

// shown is the state of a member, or while nobody knows what it was last shown as:
// a restart of the operator changes nothing, nor does an answer that was lost.
func (w *world) shown(m *member) state {
	s, was := w.state(m), &w.set.Status.Members
	switch {
	case s != unknown:
		return s
	case slices.Contains(was.Primary, m.name()) && w.grantedIn(m):
		return primary
	case slices.Contains(was.Secondary, m.name()):
		return secondary
	case slices.Contains(was.Failed, m.name()):
		return failed
	}
	return unknown
}
