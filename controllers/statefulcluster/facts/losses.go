package facts

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/spec"
)

// nodeLoss returns a loss whose evidence does not depend on the template: the Node, the end of the
// pod, or a missing claim.
func nodeLoss(w *World, m *Member) (Loss, bool) {
	late := Backoff(w, m)
	switch {
	case w.KeepsEnded(m):
		return Loss{}, false // restartEnded handles it
	case m.Node.Gone:
		return Loss{Member: m, Reason: v1alpha1.LossNodeGone, Due: latest(w.nodeGoneAt(m), m.since(corev1.PodScheduled).Add(late))}, true
	case m.Node.OutOfService:
		return Loss{Member: m, Reason: v1alpha1.LossNodeOutOfService, Due: m.since(corev1.PodScheduled).Add(late)}, true
	case m.Ended() && blameTemplate(w, m):
		return Loss{}, false // restartEnded handles it
	case m.Ended():
		return Loss{Member: m, Reason: v1alpha1.LossFailed, Due: m.Pod.CreationTimestamp.Add(late)}, true
	case m.HasRun() && len(MissingClaims(w, m)) > 0:
		return Loss{Member: m, Reason: v1alpha1.LossClaimGone, Due: m.Pod.CreationTimestamp.Add(late)}, true
	case !m.Node.NotReadySince.IsZero():
		// The backoff also applies to a replacement that was bound to a Node that was already lost.
		due := latest(w.nodeLostAt(m), m.since(corev1.PodScheduled).Add(late))
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

// blameTemplate reports whether unreadiness may be caused by the template: no member of the
// revision was ever Ready, the member was updated and has not been Ready since, or it crashed and
// its revision is not proven. A new member would fail the same way, and would cost the data of this
// one.
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

// Blamed reports whether a member ended because of its template and not because of its Node.
func Blamed(f *Facts, m *Member) bool { return !m.NodeLost() && blameTemplate(f.World, m) }
