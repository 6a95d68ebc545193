package children

import (
	"fmt"
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
)

// WasChild reports whether an object without an owner was once a child of a set, according to its
// labels: it was restored, or the set was deleted with orphaned dependents.
func WasChild(object metav1.Object) bool {
	return metav1.GetControllerOf(object) == nil && object.GetLabels()[v1alpha1.LabelManaged] == v1alpha1.True
}

// WhoseIsIt returns a message for an object that has the name of a child and does not belong to the
// set: whose it is, with a remedy. described is its kind and name.
func WhoseIsIt(described, namespace string, child metav1.Object) string {
	deletion := fmt.Sprintf("kubectl -n %s delete %s", namespace, strings.ToLower(strings.Replace(described, " ", "/", 1)))
	if !WasChild(child) {
		switch child.(type) {
		case *coordinationv1.Lease, *rbacv1.Role, *rbacv1.RoleBinding:
			return fmt.Sprintf("%s was not created by the operator for this set, which needs the name; delete it: %s", described, deletion)
		}
		return described + " belongs to another object and is not changed; rename or delete it"
	}
	return fmt.Sprintf("%s has no owner, like an object restored from a backup, and is not changed. To have it recreated, delete it; claims are kept: %s",
		described, deletion)
}
