package facts

import (
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/spec"
)

// Yes is the value of annotations that are either set or missing.
const Yes = "true"

// Restored is the value of AnnotationUpdated for a member that was created on claims given to the
// set.
const Restored = "Restore"

// RevisionOf returns the name of the revision that a pod was created from, or updated to in place.
func RevisionOf(pod *corev1.Pod) string { return pod.Labels[spec.LabelRevision] }

// The next methods return the state of the member's pod, as the functions of package podstate do.

func (m *Member) Name() string      { return m.Pod.Name }
func (m *Member) Revision() string  { return RevisionOf(m.Pod) }
func (m *Member) Ready() bool       { return podstate.Ready(m.Pod) }
func (m *Member) wasReady() bool    { return podstate.WasReady(m.Pod) }
func (m *Member) Scheduled() bool   { return podstate.Scheduled(m.Pod) }
func (m *Member) Terminating() bool { return podstate.Terminating(m.Pod) }
func (m *Member) Ended() bool       { return podstate.Ended(m.Pod) }

// evicted reports whether a user evicted the pod through the API, for example with kubectl drain.
func (m *Member) evicted() bool { return podstate.Evicted(m.Pod) }

// Replaces returns the name of the member whose slot this one fills; "" if the slot was empty.
func (m *Member) Replaces() string { return m.Pod.Annotations[v1alpha1.AnnotationReplaces] }

// Patching reports whether an in-place update of the member is in progress.
func (m *Member) Patching() bool { return m.Pod.Annotations[v1alpha1.AnnotationInPlace] != "" }

// Works reports whether the member is Ready with its own revision. A member in an in-place update
// may still run the previous one.
func (m *Member) Works() bool { return m.Ready() && !m.Patching() }

// DeleteFirst reports whether the user marked this member to be deleted first.
func (m *Member) DeleteFirst() bool { return m.Pod.Annotations[v1alpha1.AnnotationDeleteFirst] == Yes }

// OnBadNode reports whether the member's Node is gone, out of service or not Ready, no matter for how
// long.
func (m *Member) OnBadNode() bool { return m.Node.isBad() }

// since returns when a condition of the pod last changed its status.
func (m *Member) since(kind corev1.PodConditionType) time.Time {
	t, _ := podstate.Since(m.Pod, kind)
	return t
}

// StillReplacing reports whether the member fills the slot of a lost one and was never Ready.
func (m *Member) StillReplacing() bool { return m.Replaces() != "" && !m.wasReady() }

// Replacements returns the number of successive replacements in the member's slot.
func (m *Member) Replacements() int {
	n, err := strconv.Atoi(m.Pod.Annotations[v1alpha1.AnnotationReplacements])
	if err != nil {
		return 0
	}
	return max(n, 0)
}

// HasRun reports whether the member may have data: it was Ready, a container was started, or the
// pod was recreated for an existing member.
func (m *Member) HasRun() bool {
	if m.wasReady() || m.Pod.Annotations[v1alpha1.AnnotationUpdated] != "" {
		return true
	}
	return slices.ContainsFunc(slices.Concat(m.Pod.Status.InitContainerStatuses, m.Pod.Status.ContainerStatuses),
		func(s corev1.ContainerStatus) bool { return s.ContainerID != "" })
}

// taintEvicted reports whether the control plane evicts the pod from a lost Node, because of the taint
// of that Node. The pod stays terminating until the Node returns. Its replacement is subject to
// maxConcurrent, like that of any member of that Node. For evictions by users see evicted.
func (m *Member) taintEvicted() bool {
	return m.Terminating() && podstate.TaintEvicted(m.Pod) && m.OnBadNode()
}

// nodeLossReason returns the loss reason of a member that the control plane evicts from its Node.
func (m *Member) nodeLossReason() v1alpha1.LossReason {
	switch {
	case m.Node.Gone:
		return v1alpha1.LossNodeGone
	case m.Node.OutOfService:
		return v1alpha1.LossNodeOutOfService
	}
	return v1alpha1.LossNodeNotReady
}

// latest returns the later of two times.
func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// MayHaveData reports whether the member's claims may contain data. A pod that ended, or whose Node
// has a problem, may have run although its status shows no container: the kubelet may not have
// reported it.
func MayHaveData(m *Member) bool {
	unknown := m.Scheduled() && (m.Ended() || m.OnBadNode())
	return len(m.Claims) > 0 && (m.HasRun() || unknown)
}

// downSince returns since when the member is down: not Ready, on a Node with a problem, or being
// deleted. It returns the first of these times.
func downSince(m *Member) time.Time {
	var since time.Time
	note := func(at time.Time) {
		if !at.IsZero() && (since.IsZero() || at.Before(since)) {
			since = at
		}
	}
	if !m.Ready() {
		note(m.since(corev1.PodReady))
	}
	note(m.Node.NotReadySince)
	if m.Node.Gone {
		note(m.Node.GoneSince)
	}
	note(podstate.DeletedAt(m.Pod))
	return since
}

// CameBack reports whether the pod may have another template than the one that the member's data was
// written with: it was recreated for an update, or created on claims given to the set. A pod that was
// recreated after an eviction does not count.
func (m *Member) CameBack() bool {
	why := m.Pod.Annotations[v1alpha1.AnnotationUpdated]
	return why == string(v1alpha1.UpdatingUpdate) || why == Restored
}

// WasNeverReady reports whether a member was never Ready, including under an earlier pod. It is false
// for members that were recreated on their claims: their pods are young and not Ready too, but they
// have data, and must not be retired first.
func WasNeverReady(m *Member) bool {
	return !m.wasReady() && m.Pod.Annotations[v1alpha1.AnnotationUpdated] == ""
}

// NamesOf returns the names of members.
func NamesOf(members []*Member) []string {
	names := make([]string, 0, len(members))
	for _, m := range members {
		names = append(names, m.Name())
	}
	return names
}

// PodsOf returns the pods of members.
func PodsOf(members []*Member) []*corev1.Pod {
	pods := make([]*corev1.Pod, 0, len(members))
	for _, m := range members {
		pods = append(pods, m.Pod)
	}
	return pods
}
