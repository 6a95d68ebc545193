package statefulcluster

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
)

// lossesListed adds to status.lost what this pass deleted as lost, the members that others
// deleted, and those that cannot come back because claims are gone.
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

// isBack reports whether a member that was lost is there again, on claims that were given
// back to the set.
func isBack(f *facts, l v1alpha1.LostMember) bool {
	return f.live && slices.ContainsFunc(f.members, func(m *member) bool {
		return m.name() == l.Name && !m.terminating() && m.pod.Annotations[v1alpha1.AnnotationUpdated] == restored &&
			!m.pod.CreationTimestamp.Before(&l.Time)
	})
}

// listed reports whether a loss is on record.
func listed(lost []v1alpha1.LostMember, name string) bool {
	return slices.ContainsFunc(lost, func(l v1alpha1.LostMember) bool { return l.Name == name })
}

// unlisted are the departures that status.lost should have and has not. A
// pod may hang for days on a lost node: once the list is full of later losses
// its own is old news.
func (f *facts) unlisted() []*member {
	known := f.set.Status.Lost
	isOld := func(m *member) bool {
		return len(known) >= maxLost && !podstate.DeletedAt(m.pod).After(known[len(known)-1].Time.Time)
	}
	return slices.DeleteFunc(f.departures(), func(m *member) bool { return listed(known, m.name()) || isOld(m) })
}

// departureReason is why a member went that this pass did not delete.
func departureReason(m *member, succeeded bool) v1alpha1.LossReason {
	switch {
	case m.evicted():
		return v1alpha1.LossEvicted
	case m.takenByTaint():
		return m.takenBecause()
	case succeeded && m.nodeLost(): // deleted by a pass of ours that died
		return m.takenBecause()
	}
	return v1alpha1.LossDeleted
}

// departures are members whose pod was deleted by others.
func (f *facts) departures() []*member {
	var found []*member
	for _, m := range f.departed {
		if !f.wasRetired(m) && !f.keepsEvicted(m) {
			found = append(found, m)
		}
	}
	return found
}

// vanished are the members whose claims lost their pod unseen.
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
