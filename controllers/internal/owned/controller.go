package owned

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// By reports whether an object of that kind controls a child: its controller reference has the
// group, kind, name and UID of the owner, in whatever version of the group. The UID alone is not enough. Who may create pods can
// write it into a reference to a group that does not exist. Policies about owners of our kinds do
// not apply to such a reference, and the garbage collector keeps the pod.
func By(child, owner metav1.Object, kind schema.GroupVersionKind) bool {
	reference := metav1.GetControllerOfNoCopy(child)
	if reference == nil || reference.UID != owner.GetUID() || reference.Name != owner.GetName() || reference.Kind != kind.Kind {
		return false
	}
	group, err := schema.ParseGroupVersion(reference.APIVersion)
	return err == nil && group.Group == kind.Group
}
