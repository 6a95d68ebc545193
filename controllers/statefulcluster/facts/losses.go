package facts

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/spec"
)

// evidentLoss returns a loss with evidence other than that the member is not Ready: the state of its
// Node, the end of its pod, or a missing claim. A bad template does not cause these, except that its
// pods may end: then the pod is recreated, and the member is not lost. For losses by unreadiness see
// unreadyLoss.
func evidentLoss(w *World, m *Member) (Loss, bool) {
	delay := Backoff(w, m)
	switch {
	case w.KeepsEnded(m):
		return Loss{}, false // rule restartEnded recreates the pod
	case m.Node.Gone:
		return Loss{Member: m, Reason: v1alpha1.LossNodeGone, Due: latest(w.nodeGoneAt(m), m.since(corev1.PodScheduled).Add(delay))}, true
	case m.Node.OutOfService:
		return Loss{Member: m, Reason: v1alpha1.LossNodeOutOfService, Due: m.since(corev1.PodScheduled).Add(delay)}, true
	case m.Ended() && blameTemplate(w, m):
		return Loss{}, false // rule restartEnded recreates the pod
	case m.Ended():
		return Loss{Member: m, Reason: v1alpha1.LossFailed, Due: m.Pod.CreationTimestamp.Add(delay)}, true
	case m.HasRun() && len(MissingClaims(w, m)) > 0:
		return Loss{Member: m, Reason: v1alpha1.LossClaimGone, Due: m.Pod.CreationTimestamp.Add(delay)}, true
	case !m.Node.NotReadySince.IsZero():
		// The backoff also applies to a replacement that was bound to a Node that was already lost.
		due := latest(w.nodeLostAt(m), m.since(corev1.PodScheduled).Add(delay))
		return Loss{Member: m, Reason: v1alpha1.LossNodeNotReady, Due: due}, true
	}
	return Loss{}, false
}

// nodeLostAt returns when the member counts as lost if its Node stays not Ready. A Node that was
// cut off together with the operator, or whose kubelet could not reach the API server either, has
// the full time to report Ready.
func (w *World) nodeLostAt(m *Member) time.Time {
	after := time.Duration(*w.Set.Spec.Replacement.NodeLostSeconds) * time.Second
	return w.Watch.Deadline(m.Node.NotReadySince, after)
}

// nodeGoneAt returns when the member counts as lost if its Node stays missing. No member is lost if
// the Node object is deleted and recreated for the same machine.
func (w *World) nodeGoneAt(m *Member) time.Time {
	return w.Watch.Deadline(m.Node.GoneSince, spec.NodeGoneTime)
}

// KeepsEnded reports whether the pod of a member was ended by its Node (evicted by the kubelet,
// shut down, or rejected), and onEviction Keep keeps the member.
func (w *World) KeepsEnded(m *Member) bool {
	return w.Set.Spec.Replacement.OnEviction == v1alpha1.EvictionKeeps && podstate.EndedByNode(m.Pod)
}

// blameTemplate reports whether the template may be the cause of a problem of the member: an in-place
// update is in progress, the member was updated and has not been Ready since, no member of the
// revision was ever Ready, or the member crashed and its revision is not proven. Such a member is not
// replaced, because a new one would fail in the same way, and the data of this one would be lost.
func blameTemplate(w *World, m *Member) bool {
	switch {
	case m.Patching():
		return true
	case m.CameBack() && !m.wasReady():
		return true
	case !w.EverReady(m.Revision()):
		return true
	}
	return crashedWithRevision(w, m)
}

// Backoff returns the additional delay before the member is replaced. It is 0 for a member that
// settled down or is the first replacement in its slot.
func Backoff(w *World, m *Member) time.Duration {
	n := m.Replacements()
	if n < 2 || SettledDown(w, m) {
		return 0
	}
	return spec.Doubled(spec.FirstBackoff, n-2, spec.MaxBackoff)
}

// SettledDown reports whether the member was Ready and is some minutes old. A later failure is then
// not a repetition of its predecessor's.
func SettledDown(w *World, m *Member) bool {
	start := m.Pod.Status.StartTime
	return m.wasReady() && start != nil && w.Now.Sub(start.Time) >= spec.SettlingTime
}

// Blamed reports whether the template of a member whose pod ended may be the cause, and not its Node.
func Blamed(f *Facts, m *Member) bool { return !m.OnBadNode() && blameTemplate(f.World, m) }
