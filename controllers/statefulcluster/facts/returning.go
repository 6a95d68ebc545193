package facts

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/spec"
)

// returnFailsAt returns when a returning member, whose old pod still exists, counts as lost. It is lost
// if its Node is lost before the kubelet has ended the old pod, which it may then never do. The time is
// zero if the member does not count as lost:
//   - its Node is healthy;
//   - its Node is gone or out of service, so the control plane removes the old pod, and the member was
//     evicted. With onEviction Keep its volumes can move to another Node;
//   - no member is Ready, so none is given up.
//
// why is the reason for which the member returns.
func returnFailsAt(f *Facts, m *Member, why v1alpha1.UpdatingReason) time.Time {
	kept, until := KeptInOutage(f, m)
	switch {
	case kept && m.OnBadNode():
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
	return f.Parallel() && m.taintEvicted() && !f.HasSuccessor[m.Name()] && !f.WasRetired(m) && !f.KeepsEvicted(m)
}

// StillReturning returns the entries of status.updating that are still pending: the old pod is being
// deleted or is gone, and no new pod exists. An entry whose old pod is not being deleted is left out:
// the pass that wrote it did not reach the deletion. The rules write it again if it is still needed.
func StillReturning(w *World) []v1alpha1.UpdatingMember {
	byName := map[string]*Member{}
	for _, m := range w.Members {
		byName[m.Name()] = m
	}
	var waiting []v1alpha1.UpdatingMember
	for _, e := range w.Set.Status.Updating {
		m := byName[e.Name]
		notDeleted := m != nil && !m.Terminating()
		isNew := m != nil && m.Pod.UID != e.UID
		if !notDeleted && !isNew {
			waiting = append(waiting, e)
		}
	}
	return waiting
}

// KeepsEvicted reports whether a member whose pod is being deleted was evicted, or disrupted in an
// outage, and will be recreated under its name. A member that is recorded as lost, was retired, or has
// a successor will not.
func (f *Facts) KeepsEvicted(m *Member) bool {
	if !keptWhenDisrupted(f, m) {
		return false
	}
	failsAt := returnFailsAt(f, m, v1alpha1.UpdatingEviction)
	switch {
	case !failsAt.IsZero() && f.Reached(failsAt):
		return false
	case f.WasRetired(m), f.HasSuccessor[m.Name()]:
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

// ReturningVanished returns the names of the vanished members that are recreated on their claims, at
// most as many as there are empty slots. With onEviction Keep, and in an outage, it is assumed that
// their pods were not deleted by users.
func ReturningVanished(f *Facts) (names []string) {
	slots := f.Wanted() - f.Occupied()
	for _, m := range f.Departed {
		if f.KeepsEvicted(m) {
			slots--
		}
	}
	for _, name := range f.Vanished() {
		if len(names) < slots && KeepsVanished(f, name) && EndUnobserved(f, name) && f.HasClaims(f.IDOf(name)) && wasMember(f, name) {
			names = append(names, name)
		}
	}
	return names
}

// LostVanished returns the names of the vanished members that are not recreated. They are listed in
// status.lost, so that later passes do not recreate them either.
func LostVanished(f *Facts) []string {
	returns := ReturningVanished(f)
	return slices.DeleteFunc(f.Vanished(), func(name string) bool {
		return slices.Contains(returns, name) || slices.Contains(f.PendingEnds, name) || !wasMember(f, name)
	})
}

// KeepsVanished reports whether onEviction or an outage requires to keep a vanished member. Shortly
// after an outage it is kept only if its claims existed long before the first member became Ready.
func KeepsVanished(f *Facts, name string) bool {
	switch {
	case f.Set.Spec.Replacement.OnEviction == v1alpha1.EvictionKeeps:
		return true
	case !InOutage(f):
		return false
	}
	return f.ReadySince.IsZero() || !slices.ContainsFunc(LooseClaims(f.World, name), func(c *corev1.PersistentVolumeClaim) bool {
		return c.CreationTimestamp.Add(spec.OutageGrace).After(f.ReadySince)
	})
}

// pendingEnds returns the names of the members whose pod is gone and whose delete event has not
// arrived yet, as far as that event decides whether they are recreated.
func pendingEnds(f *Facts) []string {
	return slices.DeleteFunc(slices.Clone(f.Ending), func(name string) bool {
		return !KeepsVanished(f, name) || f.HasSuccessor[name] || Listed(f.Set.Status.Lost, name)
	})
}

// EndUnobserved reports whether nothing shows, or will show, how the pod of a vanished member ended.
// It is false if
//   - the pod watch showed that a user deleted the pod,
//   - the member has a successor or is listed as lost, so an earlier pass decided about it,
//   - or the delete event of the pod has not arrived yet.
func EndUnobserved(f *Facts, name string) bool {
	decided := f.Deleted[name] || f.HasSuccessor[name] || Listed(f.Set.Status.Lost, name)
	return !decided && !slices.Contains(f.PendingEnds, name)
}
