package statefulsingleton

import (
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
)

// Pods of an owner that the operator does not know, such as a Rollout or a CloneSet, or of
// none. Whether such a pod is to replace the one that runs or to stand by, only the owner
// or a person can say: nothing is deleted for it unless spec.onTimeout is DeleteOld. A
// condition says so (docs/decisions/0040).

// noController is what family.unknown says of a pod without a controller.
const noController = "none"

// unknownFamily returns the family of a pod whose controller is not one of those that the
// operator knows. The pods of a DaemonSet or Job take turns: none replaces another.
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
// controls; above is nil if nothing does.
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

// mayBeReplaced reports whether a pod at its gate may be meant to replace this one.
func (f *facts) mayBeReplaced(old *member) bool {
	return slices.ContainsFunc(f.waiting, func(next *member) bool {
		return next.held() && next.mayReplace(old)
	})
}

// mayReplace reports whether a pod of an unknown owner may be meant to replace an older one.
// Of two pods that an owner created from one template, one stands by for the other.
func (m *member) mayReplace(old *member) bool {
	of := &m.family
	switch {
	case of.unknown == "":
		return false
	case of.owner != "" && of.owner == old.family.owner && of.revision == old.family.revision:
		return false
	}
	return old.cameAt().Before(m.cameAt())
}

// cameAt is when the owner of a pod came, or the pod itself if that is not known. A pod that
// an old ReplicaSet recreates is not new.
func (m *member) cameAt() time.Time {
	if m.family.since.IsZero() {
		return m.pod.CreationTimestamp.Time
	}
	return m.family.since
}

// notReplaced returns a pod that has waited long for one that runs, and that one, where the
// owner of the first is unknown; nil if there is none.
func (f *facts) notReplaced() (next, old *member) {
	old = f.active
	if old == nil || !old.lives() {
		return nil, nil
	}
	for _, m := range f.waiting {
		if m.held() && m.mayReplace(old) && f.since(m.heldSince) >= unknownOwnerPatience {
			return m, old
		}
	}
	return nil, nil
}

// notReplacedText says why a pod waits whose owner is unknown, and which command helps.
func (f *facts) notReplacedText(next, old *member) string {
	owner := fmt.Sprintf("it is created by %s, and the operator does not know this kind of owner", next.family.name)
	switch next.family.unknown {
	case noController:
		owner = "no controller owns it"
	case "ReplicaSet":
		owner = fmt.Sprintf("it is created by %s, which no Deployment owns", next.family.name)
	}
	text := fmt.Sprintf("pod %s waits at its gate for pod %s to stop, and nothing tells whether it is to replace that pod or to stand by: %s. "+
		"To hand over: kubectl -n %s delete pod %s. ", next.name(), old.name(), owner, old.pod.Namespace, old.name())
	if f.deletesOnTimeout() && f.madeUnder(old) {
		return text + "spec.onTimeout is DeleteOld, and does it after maxTransitionTime"
	}
	return text + "If it stands by, nothing has to be done"
}

// ownerUnknown is what condition RolloutHeld says of pods whose owner is unknown.
func ownerUnknown(f *facts, c *metav1.Condition) {
	if next, old := f.notReplaced(); next != nil {
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, v1.ReasonOwnerUnknown, f.notReplacedText(next, old)
	}
}
