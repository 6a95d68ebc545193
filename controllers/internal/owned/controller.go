package owned

import (
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// By reports whether owner, an object of the given kind, controls child. The controller reference must
// have the group, kind, name and UID of the owner; the version of the group is ignored. The UID alone
// is not sufficient: a user who may create pods can write it into a reference to a group that does not
// exist. The policies for owners of the operator's kinds do not apply to such a reference, and the garbage
// collector does not delete the pod.
func By(child, owner metav1.Object, kind schema.GroupVersionKind) bool {
	return same(metav1.GetControllerOfNoCopy(child), &metav1.OwnerReference{
		APIVersion: kind.GroupVersion().String(), Kind: kind.Kind, Name: owner.GetName(), UID: owner.GetUID()})
}

// IsStatefulSet reports whether a reference, which may be nil, is to the StatefulSet with the given name.
func IsStatefulSet(owner *metav1.OwnerReference, name string) bool {
	return owner != nil && owner.Kind == "StatefulSet" && owner.APIVersion == appsv1.SchemeGroupVersion.String() && owner.Name == name
}

// Alike reports whether two objects have the same controller, or both have none.
func Alike(a, b metav1.Object) bool {
	of, and := metav1.GetControllerOfNoCopy(a), metav1.GetControllerOfNoCopy(b)
	if of == nil || and == nil {
		return of == and
	}
	return same(of, and)
}

// same reports whether two references refer to the same object. It ignores the version of the group.
func same(a, b *metav1.OwnerReference) bool {
	if a == nil || a.UID != b.UID || a.Name != b.Name || a.Kind != b.Kind {
		return false
	}
	one, err := schema.ParseGroupVersion(a.APIVersion)
	if err != nil {
		return false
	}
	other, err := schema.ParseGroupVersion(b.APIVersion)
	return err == nil && one.Group == other.Group
}
