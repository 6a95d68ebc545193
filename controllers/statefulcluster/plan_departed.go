package statefulcluster

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
)

// lossesListed returns status.lost with new entries for the members that this pass deleted as lost,
// that others deleted, or that cannot return because claims are gone.
func lossesListed(f *facts, p *plan, done results) []v1alpha1.LostMember {
	lost := slices.DeleteFunc(slices.Clone(f.set.Status.Lost), func(l v1alpha1.LostMember) bool { return isBack(f, l) })
	add := func(name string, reason v1alpha1.LossReason, claims []string) {
		if !listed(lost, name) {
			lost = slices.Insert(lost, 0, v1alpha1.LostMember{Name: name, Reason: reason, Time: metav1.NewTime(f.now), Claims: claims})
		}
	}
	for _, m := range f.unlisted() {
		add(m.name(), departureReason(m, f.succeeded[m.name()]), retainedClaims(f.world, m.sortedClaims()))
	}
	for _, name := range lostUnseen(f) {
		add(name, v1alpha1.LossDeleted, retainedClaims(f.world, looseClaims(f.world, name)))
	}
	if done.wroteStatus() {
		for _, name := range p.dropped {
			add(name, v1alpha1.LossClaimGone, nil)
		}
	}
	for _, l := range f.lost {
		if done.deleted(l.pod.UID) {
			add(l.name(), l.reason, retainedClaims(f.world, l.sortedClaims()))
		}
	}
	return lost[:min(len(lost), maxLost)]
}

// isBack reports whether a lost member exists again, on claims that were given back to the set.
func isBack(f *facts, l v1alpha1.LostMember) bool {
	return f.live && slices.ContainsFunc(f.members, func(m *member) bool {
		return m.name() == l.Name && !m.terminating() && m.pod.Annotations[v1alpha1.AnnotationUpdated] == restored &&
			!m.pod.CreationTimestamp.Before(&l.Time)
	})
}

// listed reports whether status.lost has an entry for a member.
func listed(lost []v1alpha1.LostMember, name string) bool {
	return slices.ContainsFunc(lost, func(l v1alpha1.LostMember) bool { return l.Name == name })
}

// unlisted returns the departures that are missing in status.lost. A pod may stay terminating on a
// lost Node for days. Once the list is full of later losses, its own is too old to be listed.
func (f *facts) unlisted() []*member {
	known := f.set.Status.Lost
	isOld := func(m *member) bool {
		return len(known) >= maxLost && !podstate.DeletedAt(m.pod).After(known[len(known)-1].Time.Time)
	}
	return slices.DeleteFunc(f.departures(), func(m *member) bool { return listed(known, m.name()) || isOld(m) })
}

// departureReason returns the loss reason of a member that this pass did not delete.
func departureReason(m *member, succeeded bool) v1alpha1.LossReason {
	switch {
	case m.evicted():
		return v1alpha1.LossEvicted
	case m.takenByTaint():
		return m.takenBecause()
	case succeeded && m.nodeLost(): // deleted by an earlier pass that was interrupted
		return m.takenBecause()
	}
	return v1alpha1.LossDeleted
}

// departures returns the members whose pod was deleted by others.
func (f *facts) departures() []*member {
	var found []*member
	for _, m := range f.departed {
		if !f.wasRetired(m) && !f.keepsEvicted(m) {
			found = append(found, m)
		}
	}
	return found
}

// vanished returns the names of the members whose pod disappeared unobserved, so that its claims
// lack the retained label.
func (f *facts) vanished() []string {
	var names []string
	for _, c := range f.loose {
		name := f.nameOf(memberOf(c))
		returning := slices.ContainsFunc(f.returning, func(e v1alpha1.UpdatingMember) bool { return e.Name == name })
		if !isRetained(c) && !returning && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}
