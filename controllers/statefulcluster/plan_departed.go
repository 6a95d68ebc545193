package statefulcluster

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
)

// lostNow adds to status.lost what this pass deleted as lost, and the members
// that somebody else deleted.
func lostNow(w *world, r *roster, outcomes []action.Outcome) []v1alpha1.LostMember {
	lost := slices.Clone(w.set.Status.Lost)
	add := func(name string, reason v1alpha1.LossReason, claims []string) {
		if !listed(lost, name) {
			lost = slices.Insert(lost, 0, v1alpha1.LostMember{Name: name, Reason: reason, Time: metav1.NewTime(w.now), Claims: claims})
		}
	}
	for _, m := range unrecorded(w, r) {
		add(m.name(), departureReason(m, r.succeeded[m.name()]), kept(w, m.sortedClaims()))
	}
	for _, name := range vanished(w, r) {
		add(name, v1alpha1.LossDeleted, kept(w, looseClaims(w, name)))
	}
	for _, l := range r.lost {
		if lossDeleted(l, outcomes) {
			add(l.name(), l.reason, kept(w, l.sortedClaims()))
		}
	}
	return lost[:min(len(lost), maxLost)]
}

// listed tells whether a loss is on record.
func listed(lost []v1alpha1.LostMember, name string) bool {
	return slices.ContainsFunc(lost, func(l v1alpha1.LostMember) bool { return l.Name == name })
}

// unrecorded are the departures that status.lost should have and has not. A
// pod may hang for days on a lost node: once the list is full of later losses
// its own is old news.
func unrecorded(w *world, r *roster) []*member {
	known := w.set.Status.Lost
	return slices.DeleteFunc(departures(w, r), func(m *member) bool {
		return listed(known, m.name()) ||
			len(known) >= maxLost && !podstate.DeletedAt(m.pod).After(known[len(known)-1].Time.Time)
	})
}

func departureReason(m *member, succeeded bool) v1alpha1.LossReason {
	switch {
	case podstate.Evicted(m.pod):
		return v1alpha1.LossEvicted
	case takenByTaint(m), succeeded && m.node.lostNow():
		return takenBecause(m) // by the control plane, or by a pass of ours that died
	}
	return v1alpha1.LossDeleted
}

// departures are members whose pod goes by somebody else's hand.
func departures(w *world, r *roster) []*member {
	var found []*member
	for _, m := range r.departed {
		if !w.wasRetired(m) && !w.keepsEvicted(r, m) {
			found = append(found, m)
		}
	}
	return found
}

// vanished are the members whose claims lost their pod unseen.
func vanished(w *world, r *roster) []string {
	var names []string
	for _, c := range w.loose {
		name := w.nameOf(memberOf(c))
		returning := slices.ContainsFunc(r.returning, func(e v1alpha1.UpdatingMember) bool { return e.Name == name })
		if c.Labels[v1alpha1.LabelRetained] == "" && !returning && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

func lossDeleted(l loss, outcomes []action.Outcome) bool {
	return slices.ContainsFunc(outcomes, func(o action.Outcome) bool {
		return o.Verb == action.Delete && o.Object.GetUID() == l.pod.UID && o.Err == nil
	})
}
