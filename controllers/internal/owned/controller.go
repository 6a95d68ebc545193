package owned

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// By reports whether owner, an object of the given kind, controls child. The controller reference must
// have the group, kind, name and UID of the owner; the version of the group is ignored. The UID alone
// is not sufficient: a user who can create pods can write it into a reference to a group that does not
// exist. Policies about owners of our kinds do not apply to such a reference, and the garbage collector
// keeps the pod.
func By(child, owner metav1.Object, kind schema.GroupVersionKind) bool {
	reference := metav1.GetControllerOfNoCopy(child)
	if reference == nil || reference.UID != owner.GetUID() || reference.Name != owner.GetName() || reference.Kind != kind.Kind {
		return false
	}
	group, err := schema.ParseGroupVersion(reference.APIVersion)
	return err == nil && group.Group == kind.Group
}
