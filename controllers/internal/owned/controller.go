package owned

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// By reports whether an object of that kind controls a child: its controller reference has the
// group, kind, name and UID of the owner. The UID alone is not enough. Who may create pods can
// write it into a reference to a group that does not exist. Policies about owners of our kinds do
// not apply to such a reference, and the garbage collector keeps the pod.
func By(child, owner metav1.Object, kind schema.GroupVersionKind) bool {
	return Refers(metav1.GetControllerOfNoCopy(child), owner, kind)
}

// Refers reports whether a reference is to an object of that kind, in whatever version of its
// group. A nil reference is to none.
func Refers(reference *metav1.OwnerReference, owner metav1.Object, kind schema.GroupVersionKind) bool {
	if reference == nil || reference.UID != owner.GetUID() || reference.Name != owner.GetName() || reference.Kind != kind.Kind {
		return false
	}
	group, err := schema.ParseGroupVersion(reference.APIVersion)
	return err == nil && group.Group == kind.Group
}
