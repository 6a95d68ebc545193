package facts

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/spec"
)

// returnFailsAt returns when a returning member counts as lost, because its Node was lost before
// the kubelet ended the old pod, which it may then never do. It returns zero if the Node is
// healthy. The control plane removes the pod from a Node that is gone or out of service. After an
// eviction the volumes of the member can move to another Node, since otherwise onEviction would not
// be Keep.
func returnFailsAt(f *Facts, m *Member, why v1alpha1.UpdatingReason) time.Time {
	kept, until := KeptInOutage(f, m)
	switch {
	case kept && m.NodeLost():
		return until
	case m.Node.removed():
		if why == v1alpha1.UpdatingEviction {
			return time.Time{}
		}
		if m.Node.OutOfService {
			return f.Now
		}
		return f.nodeGoneAt(m)
	case m.Node.NotReadySince.IsZero():
		return time.Time{}
	}
	return f.nodeLostAt(m)
}

// waitsToBeReplaced reports whether the control plane evicts a member from a lost Node and its
// replacement is subject to maxConcurrent.
func (f *Facts) waitsToBeReplaced(m *Member) bool {
	return f.Parallel() && m.takenByTaint() && !f.Succeeded[m.Name()] && !f.WasRetired(m) && !f.KeepsEvicted(m)
}

// StillReturning returns the entries of status.updating that are still pending: the old pod is
// terminating or gone, and no new pod exists. An entry whose old pod is still running was written
// by a pass that did not reach the deletion. The rules write it again if it is still needed.
func StillReturning(w *World) []v1alpha1.UpdatingMember {
	byName := map[string]*Member{}
	for _, m := range w.Members {
		byName[m.Name()] = m
	}
	var waiting []v1alpha1.UpdatingMember
	for _, e := range w.Set.Status.Updating {
		m := byName[e.Name]
		livesOn := m != nil && !m.Terminating()
		isNew := m != nil && m.Pod.UID != e.UID
		if !livesOn && !isNew {
			waiting = append(waiting, e)
		}
	}
	return waiting
}

// KeepsEvicted reports whether a departed member was evicted, or disrupted in an outage, and will
// be recreated under its name. A member that is recorded as lost will not.
func (f *Facts) KeepsEvicted(m *Member) bool {
	if !keptWhenDisrupted(f, m) {
		return false
	}
	failsAt := returnFailsAt(f, m, v1alpha1.UpdatingEviction)
	switch {
	case !failsAt.IsZero() && f.Reached(failsAt):
		return false
	case f.WasRetired(m), f.Succeeded[m.Name()]:
		return false
	case Listed(f.Set.Status.Lost, m.Name()):
		return false
	}
	return true
}

// keptWhenDisrupted reports whether a member with a disrupted pod is kept. With onEviction Replace,
// members that users evict are replaced even in an outage.
func keptWhenDisrupted(f *Facts, m *Member) bool {
	keeps := f.Set.Spec.Replacement.OnEviction == v1alpha1.EvictionKeeps
	switch {
	case !podstate.Disrupted(m.Pod):
		return false
	case keeps && (m.evicted() || !m.Node.removed()):
		return true
	case m.evicted():
		return false
	}
	kept, _ := KeptInOutage(f, m)
	return kept
}

// ReturnsUnseen returns the names of the members whose pods disappeared unobserved and that are
// recreated, at most as many as there are empty slots. With onEviction Keep, and in an outage, they
// are not assumed to have been deleted by users.
func ReturnsUnseen(f *Facts) (names []string) {
	slots := f.Wanted() - f.Occupied()
	for _, m := range f.Departed {
		if f.KeepsEvicted(m) {
			slots--
		}
	}
	for _, name := range f.Vanished() {
		if len(names) < slots && SparesUnseen(f, name) && !EndKnown(f, name) && f.HasClaims(f.IDOf(name)) && wasMember(f, name) {
			names = append(names, name)
		}
	}
	return names
}

// LostUnseen returns the names of the members whose pods disappeared unobserved and that are not
// recreated. A member that is recorded as lost would be replaced at the next disruption.
func LostUnseen(f *Facts) []string {
	returns := ReturnsUnseen(f)
	return slices.DeleteFunc(f.Vanished(), func(name string) bool {
		return slices.Contains(returns, name) || slices.Contains(f.PendingEnds, name) || !wasMember(f, name)
	})
}

// SparesUnseen reports whether a member whose pod disappeared unobserved is kept. Shortly after an
// outage it is kept only if it existed long before the first member became Ready.
func SparesUnseen(f *Facts, name string) bool {
	switch {
	case f.Set.Spec.Replacement.OnEviction == v1alpha1.EvictionKeeps:
		return true
	case !InOutage(f):
		return false
	}
	return f.Up.IsZero() || !slices.ContainsFunc(LooseClaims(f.World, name), func(c *corev1.PersistentVolumeClaim) bool {
		return c.CreationTimestamp.Add(spec.OutageGrace).After(f.Up)
	})
}

// pendingEnds returns the names of the members whose pod is gone and whose delete event has not
// arrived yet.
func pendingEnds(f *Facts) []string {
	return slices.DeleteFunc(slices.Clone(f.Ending), func(name string) bool {
		return !SparesUnseen(f, name) || f.Succeeded[name] || Listed(f.Set.Status.Lost, name)
	})
}

// EndKnown reports whether the member whose pod is gone is known not to return, or it is not yet
// known how its pod ended.
func EndKnown(f *Facts, name string) bool {
	return f.Deleted[name] || f.Succeeded[name] || Listed(f.Set.Status.Lost, name) || slices.Contains(f.PendingEnds, name)
}
