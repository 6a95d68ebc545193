package facts

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
)

// SetController replaces the controller of a pod; nil removes it.
func SetController(pod *corev1.Pod, owner *metav1.OwnerReference) {
	pod.OwnerReferences = slices.DeleteFunc(pod.OwnerReferences, func(o metav1.OwnerReference) bool {
		return ptr.Deref(o.Controller, false)
	})
	if owner != nil {
		pod.OwnerReferences = append(pod.OwnerReferences, *owner)
	}
}

// Detached reports whether the operator detached the pod from its ReplicaSet.
func (m *Member) Detached() bool { return DetachedFrom(m.Pod) != "" }

// DetachedFrom returns the name of the ReplicaSet that a pod was detached from; "" if it
// was not. An annotation that was copied from another pod is ignored.
func DetachedFrom(pod *corev1.Pod) string {
	uid, set, _ := strings.Cut(pod.Annotations[v1.AnnotationDetached], " ")
	owner := metav1.GetControllerOf(pod)
	switch {
	case uid != string(pod.UID),
		owner == nil,
		owner.Kind != "Deployment":
		return ""
	}
	return set
}

// ReturnTo prepares a copy of a detached pod for adoption by its ReplicaSet, which adopts
// matching pods without a controller. It returns false if no ReplicaSet would adopt the
// pod.
func (m *Member) ReturnTo(pod *corev1.Pod) bool {
	if !m.Detached() || !m.Family.Adopts {
		return false
	}
	SetController(pod, nil)
	delete(pod.Annotations, v1.AnnotationDetached)
	return true
}

// Follows reports whether both pods have the same owner, and only this one has the newest
// revision of it.
func (f *Family) Follows(old *Family) bool {
	return f.Owner == old.Owner && !f.Outdated && old.Outdated
}

// NoController is the value of Family.Unknown for a pod without a controller.
const NoController = "none"

// UnknownFamily returns the family of a pod whose controller is of another kind than the
// operator knows. The pods of a DaemonSet or Job do not replace each other.
func UnknownFamily(pod *corev1.Pod, owner *metav1.OwnerReference) Family {
	switch owner.Kind {
	case "DaemonSet", "Job":
		return Family{}
	}
	return Family{
		Owner:    owner.UID,
		Name:     owner.Kind + " " + owner.Name,
		Unknown:  owner.Kind,
		Revision: pod.Labels[appsv1.ControllerRevisionHashLabelKey],
	}
}

// UnknownReplicaSet returns the family of the pods of a ReplicaSet that no Deployment
// controls. above is its controller; nil if it has none.
func UnknownReplicaSet(set *appsv1.ReplicaSet, above *metav1.OwnerReference) Family {
	f := Family{
		Owner:    set.UID,
		Name:     "ReplicaSet " + set.Name,
		Unknown:  "ReplicaSet",
		Revision: string(set.UID),
		Since:    set.CreationTimestamp.Time,
	}
	if above != nil {
		f.Owner, f.Name, f.Unknown = above.UID, above.Kind+" "+above.Name, above.Kind
	}
	return f
}

// Lineage returns the owner of a pod, and a revision that is equal for all pods that the
// owner creates from one template. A pod without an owner has its own name as the revision,
// without the random suffix.
func (m *Member) Lineage() (owner types.UID, revision string) {
	if m.Family.Owner == "" {
		return "", cmp.Or(m.Pod.GenerateName, m.Pod.Name)
	}
	return m.Family.Owner, m.Family.Revision
}

// isLike reports whether two pods have the same owner and revision.
func (m *Member) isLike(other *Member) bool {
	owner, revision := m.Lineage()
	otherOwner, otherRevision := other.Lineage()
	return owner == otherOwner && revision == otherRevision
}

// Described returns the name of a pod with its owner and revision, for messages.
func (m *Member) Described() string {
	switch {
	case m.Family.Name == "":
		return fmt.Sprintf("pod %s without a controller", m.Name())
	case m.Pod.Labels[appsv1.ControllerRevisionHashLabelKey] != "":
		return fmt.Sprintf("pod %s of %s, revision %s,", m.Name(), m.Family.Name, m.Pod.Labels[appsv1.ControllerRevisionHashLabelKey])
	}
	return fmt.Sprintf("pod %s of %s", m.Name(), m.Family.Name)
}
