package statefulcluster

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
)

// keepEvicted adds members that were evicted, or whose pod was disrupted or disappeared unobserved,
// to status.updating, so that they are recreated with their names and claims.
func keepEvicted(f *facts, p *plan) {
	entries := slices.Clone(p.updating)
	for _, m := range f.departed {
		if f.keepsEvicted(m) {
			entries = append(entries, v1alpha1.UpdatingMember{Name: m.name(), UID: m.pod.UID, Revision: m.revision(),
				Reason: v1alpha1.UpdatingEviction})
		}
	}
	for _, name := range returnsUnseen(f) {
		// The revision of the member is unknown, because its pod is gone. It gets the revision that
		// an update would give it. Its template is blamed for unreadiness only if no member of that
		// revision was ever Ready.
		entries = append(entries, v1alpha1.UpdatingMember{Name: name, Revision: f.target.Name, Reason: v1alpha1.UpdatingEviction})
	}
	if len(entries) > len(p.updating) {
		p.updating = entries
		p.record(f, reasonUpdate)
	}
}

// keepsEvicted reports whether a departed member was evicted, or disrupted in an outage, and will
// be recreated under its name. A member that is recorded as lost will not.
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

// keptWhenDisrupted reports whether a member with a disrupted pod is kept. With onEviction Replace,
// members that users evict are replaced even in an outage.
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

// returnsUnseen returns the names of the members whose pods disappeared unobserved and that are
// recreated, at most as many as there are empty slots. With onEviction Keep, and in an outage, they
// are not assumed to have been deleted by users.
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

// wasMember reports whether the claims with that name and without a pod belonged to a member,
// because anyone who may create claims can copy labels and names. An empty record may come from an
// older operator, and a full record cannot hold all claims, so neither excludes a claim.
func wasMember(f *facts, name string) bool {
	if n := len(f.claimRecord); n == 0 || n >= maxClaims {
		return true
	}
	return !slices.ContainsFunc(looseClaims(f.world, name), func(c *corev1.PersistentVolumeClaim) bool { return !f.onRecord(c) })
}

// lostUnseen returns the names of the members whose pods disappeared unobserved and that are not
// recreated. A member that is recorded as lost would be replaced at the next disruption.
func lostUnseen(f *facts) []string {
	returns := returnsUnseen(f)
	return slices.DeleteFunc(f.vanished(), func(name string) bool {
		return slices.Contains(returns, name) || slices.Contains(f.pendingEnds, name) || !wasMember(f, name)
	})
}

// sparesUnseen reports whether a member whose pod disappeared unobserved is kept. Shortly after an
// outage it is kept only if it existed long before the first member became Ready.
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

// pendingEnds returns the names of the members whose pod is gone and whose delete event has not
// arrived yet.
func pendingEnds(f *facts) []string {
	return slices.DeleteFunc(slices.Clone(f.ending), func(name string) bool {
		return !sparesUnseen(f, name) || f.succeeded[name] || listed(f.set.Status.Lost, name)
	})
}

// endKnown reports whether the member whose pod is gone is known not to return, or it is not yet
// known how its pod ended.
func endKnown(f *facts, name string) bool {
	return f.deleted[name] || f.succeeded[name] || listed(f.set.Status.Lost, name) || slices.Contains(f.pendingEnds, name)
}
