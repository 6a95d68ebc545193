package statefulsingleton

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
)

// Pods without an owner, or with an owner of an unknown kind, such as a Rollout or a
// CloneSet. Only the owner or a user knows whether such a pod replaces the running pod or
// is a standby. No pod is deleted for it unless spec.onTimeout is DeleteOld, and a
// condition reports that (docs/decisions/0040).

// noController is the value of family.unknown for a pod without a controller.
const noController = "none"

// unknownFamily returns the family of a pod whose controller is of another kind than the
// operator knows. The pods of a DaemonSet or Job do not replace each other.
func unknownFamily(pod *corev1.Pod, owner *metav1.OwnerReference) family {
	switch owner.Kind {
	case "DaemonSet", "Job":
		return family{}
	}
	return family{
		owner:    owner.UID,
		name:     owner.Kind + " " + owner.Name,
		unknown:  owner.Kind,
		revision: pod.Labels[appsv1.ControllerRevisionHashLabelKey],
	}
}

// unknownReplicaSet returns the family of the pods of a ReplicaSet that no Deployment
// controls. above is its controller; nil if it has none.
func unknownReplicaSet(set *appsv1.ReplicaSet, above *metav1.OwnerReference) family {
	f := family{
		owner:    set.UID,
		name:     "ReplicaSet " + set.Name,
		unknown:  "ReplicaSet",
		revision: string(set.UID),
		since:    set.CreationTimestamp.Time,
	}
	if above != nil {
		f.owner, f.name, f.unknown = above.UID, above.Kind+" "+above.Name, above.Kind
	}
	return f
}

// mayBeReplaced reports whether a pod at its gate may be the replacement of this one.
func (f *facts) mayBeReplaced(old *member) bool { return f.replacementFor(old) != nil }

// replacementFor returns the pod at its gate that may be the replacement of this one; nil
// if there is none.
func (f *facts) replacementFor(old *member) *member {
	for _, next := range f.waiting {
		if next.held() && next.mayReplace(old) {
			return next
		}
	}
	return nil
}

// mayReplace reports whether a pod of an unknown owner may be the replacement of an older
// one. Two pods that an owner created from one template are standbys of each other. A pod
// that was replaced before and was recreated replaces no other: the two programs would
// alternate forever.
func (m *member) mayReplace(old *member) bool {
	of := &m.family
	switch {
	case of.unknown == "", m.replaced:
		return false
	case of.owner != "" && of.owner == old.family.owner && of.revision == old.family.revision:
		return false
	}
	return old.cameAt().Before(m.cameAt())
}

// cameAt returns when the ReplicaSet of the pod was created, or the pod itself if that is
// unknown. A pod that an old ReplicaSet recreates is not new.
func (m *member) cameAt() time.Time {
	if m.family.since.IsZero() {
		return m.pod.CreationTimestamp.Time
	}
	return m.family.since
}

// notReplaced returns a pod of an unknown owner that has waited for long, and the running
// pod for which it waits; nil if there is none.
func (f *facts) notReplaced() (next, old *member) {
	old = f.active
	if old == nil || !old.lives() {
		return nil, nil
	}
	for _, m := range f.waiting {
		if m.held() && m.waitsForUnknown(old) && f.since(m.heldSince) >= unknownOwnerPatience {
			return m, old
		}
	}
	return nil, nil
}

// waitsForUnknown reports whether a pod of an unknown owner may be the replacement of an
// older one, or was itself replaced.
func (m *member) waitsForUnknown(old *member) bool {
	return m.mayReplace(old) || (m.replaced && !m.isLike(old))
}

// notReplacedText returns the message about a waiting pod whose owner is unknown, with the
// command that helps.
func (f *facts) notReplacedText(next, old *member) string {
	owner := fmt.Sprintf("it is owned by %s, and the operator does not support this kind of owner", next.family.name)
	switch next.family.unknown {
	case noController:
		owner = "no controller owns it"
	case "ReplicaSet":
		owner = fmt.Sprintf("it is owned by %s, which no Deployment owns", next.family.name)
	}
	text := fmt.Sprintf("pod %s waits at its gate for pod %s to stop, and the operator cannot determine whether it is a replacement or a standby: %s. "+
		"To hand over: kubectl -n %s delete pod %s. ", next.name(), old.name(), owner, old.pod.Namespace, old.name())
	if f.deletesOnTimeout() && f.madeUnder(old) {
		return text + "spec.onTimeout is DeleteOld, so the operator deletes it after maxTransitionTime"
	}
	return text + "If it is a standby, no action is needed"
}

// ownerUnknown sets condition RolloutHeld for pods whose owner is unknown.
func ownerUnknown(f *facts, c *metav1.Condition) {
	next, old := f.notReplaced()
	switch {
	case next == nil:
	case next.replaced:
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, v1.ReasonOwnersCompete, f.competeText(next, old)
	default:
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, v1.ReasonOwnerUnknown, f.notReplacedText(next, old)
	}
}

// Pods that onTimeout deleted for another one. An owner that wants both recreates its pod,
// which is then newer than the running one. So the owner and revision of the deleted pod
// are recorded before the deletion, and no pod is deleted for them again.

// maxReplaced is the max number of records. At this number, no pod is deleted for a pod of
// an unknown owner.
const maxReplaced = 16

// replacement returns the actions that record and then delete pods for those of unknown
// owners.
func replacement(f *facts, old []*member) []action.Chain {
	if len(old) == 0 {
		return nil
	}
	object := f.object.DeepCopy()
	object.Status.Replaced = keptReplaced(f)
	var names []string
	var deletes action.Chain
	for _, m := range old {
		owner, revision := m.lineage()
		entry := v1.ReplacedPod{Name: m.name(), Owner: owner, Revision: revision,
			For: f.replacementFor(m).name(), DeletedAt: metav1.NewTime(f.now)}
		others := slices.DeleteFunc(object.Status.Replaced, func(r v1.ReplacedPod) bool { return isOf(m, r) })
		if len(others) == maxReplaced {
			break
		}
		object.Status.Replaced = slices.Concat(others, []v1.ReplacedPod{entry})
		names = append(names, m.name())
		deletes = append(deletes, deletion(m, reasonTimeout, timeoutDetail)...)
	}
	if len(deletes) == 0 {
		return nil
	}
	noted := action.Action{Verb: action.PatchStatus, Object: object, From: f.object, Reason: reasonReplaced, Detail: strings.Join(names, ", ")}
	return []action.Chain{append(action.Chain{noted}, deletes...)}
}

// keptReplaced returns the records that are still valid.
func keptReplaced(f *facts) []v1.ReplacedPod {
	if f.object.Spec.OnTimeout != v1.TimeoutDeletesOld {
		return nil
	}
	var kept []v1.ReplacedPod
	for _, r := range f.object.Status.Replaced {
		exists := slices.ContainsFunc(f.pods, func(m *member) bool {
			return isOf(m, r) && !isForgotten(r, m.pod.CreationTimestamp.Time)
		})
		switch {
		case exists:
			r.MissingSince = nil
		case r.MissingSince == nil:
			r.MissingSince = ptr.To(metav1.NewTime(f.now))
		case isForgotten(r, f.now):
			continue
		}
		kept = append(kept, r)
	}
	return kept
}

// isForgotten reports whether a record was expired at that time, because no pod of it had
// existed for replacedIsKept.
func isForgotten(r v1.ReplacedPod, at time.Time) bool {
	return r.MissingSince != nil && at.Sub(r.MissingSince.Time) >= replacedIsKept
}

// wasReplaced reports whether no pod may be deleted for this one, because onTimeout deleted
// a pod of its owner and revision before, or because there are too many other records.
func wasReplaced(w *world, m *member) bool {
	if w.object == nil || !w.deletesOnTimeout() || m.family.unknown == "" {
		return false
	}
	counting := 0
	for _, r := range w.object.Status.Replaced {
		came := m.pod.CreationTimestamp.Time
		switch {
		case isForgotten(r, came):
		case isOf(m, r):
			return true
		default:
			counting++
		}
	}
	return counting >= maxReplaced
}

// lineage returns the owner of a pod, and a revision that is equal for all pods that the
// owner creates from one template.
func (m *member) lineage() (owner types.UID, revision string) {
	if m.family.owner == "" {
		return "", cmp.Or(m.pod.GenerateName, m.pod.Name)
	}
	return m.family.owner, m.family.revision
}

// isLike reports whether two pods have the same owner and revision.
func (m *member) isLike(other *member) bool {
	owner, revision := m.lineage()
	otherOwner, otherRevision := other.lineage()
	return owner == otherOwner && revision == otherRevision
}

// isOf reports whether a pod has the owner and revision of a record.
func isOf(m *member, r v1.ReplacedPod) bool {
	owner, revision := m.lineage()
	return owner == r.Owner && revision == r.Revision
}

// competeText returns the message about two competing pods, with the remedy.
func (f *facts) competeText(next, old *member) string {
	why := fmt.Sprintf("the operator has already replaced %d pods within an hour, which is the max", maxReplaced)
	known := f.object.Status.Replaced
	if i := slices.IndexFunc(known, func(r v1.ReplacedPod) bool { return isOf(next, r) }); i >= 0 {
		why = fmt.Sprintf("the operator deleted pod %s of the same owner and revision for pod %s at %s, and the owner recreated it, so both are wanted at the same time",
			known[i].Name, known[i].For, known[i].DeletedAt.UTC().Format(time.RFC3339))
	}
	return fmt.Sprintf("%s waits at its gate for %s to stop, and spec.onTimeout deletes no pod for it: %s; at most one may run. "+
		"Change the owners to want only one of them. To hand over once: kubectl -n %s delete pod %s",
		next.described(), old.described(), why, old.pod.Namespace, old.name())
}

// described returns the name of a pod with its owner and revision, for messages.
func (m *member) described() string {
	switch {
	case m.family.name == "":
		return fmt.Sprintf("pod %s without a controller", m.name())
	case m.pod.Labels[appsv1.ControllerRevisionHashLabelKey] != "":
		return fmt.Sprintf("pod %s of %s, revision %s,", m.name(), m.family.name, m.pod.Labels[appsv1.ControllerRevisionHashLabelKey])
	}
	return fmt.Sprintf("pod %s of %s", m.name(), m.family.name)
}
