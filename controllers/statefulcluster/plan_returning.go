package statefulcluster

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
)

// keepEvicted writes members into status.updating that were evicted or taken away, so
// that they come back as themselves: while their pods terminate, and after a pod vanished
// unseen.
func keepEvicted(f *facts, p *plan) {
	entries := slices.Clone(p.updating)
	for _, m := range f.departed {
		if f.keepsEvicted(m) {
			entries = append(entries, v1alpha1.UpdatingMember{Name: m.name(), UID: m.pod.UID, Revision: m.revision(),
				Reason: v1alpha1.UpdatingEviction})
		}
	}
	for _, name := range returnsUnseen(f) {
		// Its revision went with its pod. It gets the one that an update would give it. The
		// template is not to blame if it does not become Ready, unless none of that revision was.
		entries = append(entries, v1alpha1.UpdatingMember{Name: name, Revision: f.target.Name, Reason: v1alpha1.UpdatingEviction})
	}
	if len(entries) > len(p.updating) {
		p.updating = entries
		p.record(f, reasonUpdate)
	}
}

// keepsEvicted reports whether a departed member was evicted, or taken away in an outage,
// and comes back as itself. One that was recorded as lost before does not.
func (f *facts) keepsEvicted(m *member) bool {
	if !keptWhenDisrupted(f, m) {
		return false
	}
	failsAt := returnFailsAt(f, m, v1alpha1.UpdatingEviction)
	switch {
	case !failsAt.IsZero() && f.reached(failsAt):
		return false
	case f.wasRetired(m), f.succeeded[m.name()]:
		return false
	case listed(f.set.Status.Lost, m.name()):
		return false
	}
	return true
}

// keptWhenDisrupted reports whether a member with a disrupted pod is kept. With onEviction
// Replace, members that users evict are replaced in an outage too.
func keptWhenDisrupted(f *facts, m *member) bool {
	keeps := f.set.Spec.Replacement.OnEviction == v1alpha1.EvictionKeeps
	switch {
	case !podstate.Disrupted(m.pod):
		return false
	case keeps && (m.evicted() || !m.node.removed()):
		return true
	case m.evicted():
		return false
	}
	kept, _ := keptInOutage(f, m)
	return kept
}

// returnsUnseen returns the names of the members whose pods vanished unseen and that come
// back, as many as there are slots. With onEviction Keep, and in an outage, these are not
// taken for members that users deleted.
func returnsUnseen(f *facts) (names []string) {
	slots := f.wanted() - f.occupied()
	for _, m := range f.departed {
		if f.keepsEvicted(m) {
			slots--
		}
	}
	for _, name := range f.vanished() {
		if len(names) < slots && sparesUnseen(f, name) && !endKnown(f, name) && f.hasClaims(f.idOf(name)) && wasMember(f, name) {
			names = append(names, name)
		}
	}
	return names
}

// wasMember reports whether the claims of that name, which have no pod, are those of a member:
// whoever may create claims can copy labels and names. A set without a record has the status of an
// older operator, and one with a full record has more claims than it can hold.
func wasMember(f *facts, name string) bool {
	if n := len(f.claimRecord); n == 0 || n >= maxClaims {
		return true
	}
	return !slices.ContainsFunc(looseClaims(f.world, name), func(c *corev1.PersistentVolumeClaim) bool { return !f.onRecord(c) })
}

// lostUnseen returns the names of the members whose pods vanished unseen and that do not come
// back. One on record as lost would be replaced by the next disruption.
func lostUnseen(f *facts) []string {
	returns := returnsUnseen(f)
	return slices.DeleteFunc(f.vanished(), func(name string) bool {
		return slices.Contains(returns, name) || slices.Contains(f.pendingEnds, name) || !wasMember(f, name)
	})
}

// sparesUnseen reports whether a member whose pod vanished unseen is kept. Shortly after an
// outage that is one which was there long before the first member became Ready.
func sparesUnseen(f *facts, name string) bool {
	switch {
	case f.set.Spec.Replacement.OnEviction == v1alpha1.EvictionKeeps:
		return true
	case !inOutage(f):
		return false
	}
	return f.up.IsZero() || !slices.ContainsFunc(looseClaims(f.world, name), func(c *corev1.PersistentVolumeClaim) bool {
		return c.CreationTimestamp.Add(outageGrace).After(f.up)
	})
}

// pendingEnds returns the names of the members whose pod is gone while its delete event has
// not arrived yet.
func pendingEnds(f *facts) []string {
	return slices.DeleteFunc(slices.Clone(f.ending), func(name string) bool {
		return !sparesUnseen(f, name) || f.succeeded[name] || listed(f.set.Status.Lost, name)
	})
}

// endKnown reports whether it is known that the member whose pod is gone does not come
// back, or not yet known how its pod ended.
func endKnown(f *facts, name string) bool {
	return f.deleted[name] || f.succeeded[name] || listed(f.set.Status.Lost, name) || slices.Contains(f.pendingEnds, name)
}
