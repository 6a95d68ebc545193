package children

import (
	coordinationv1 "k8s.io/api/coordination/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/fencing"
)

// leaseMeta returns the metadata of the Lease, and of the rights on it.
func leaseMeta(s *v1.StatefulSingleton) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: LeaseName(s.Name), Namespace: s.Namespace,
		Labels:          Merged(ownLabels(), map[string]string{v1.LabelSingleton: s.Name}),
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(s, v1.GroupVersion.WithKind("StatefulSingleton"))}}
}

// BuildLease builds the Lease of an object, without a holder.
func BuildLease(s *v1.StatefulSingleton) *coordinationv1.Lease {
	return fencing.BuildLease(leaseMeta(s), *s.Spec.Fencing.LeaseDurationSeconds, 0)
}

// BuildLeaseRole builds the Role that allows to renew the Lease.
func BuildLeaseRole(s *v1.StatefulSingleton) *rbacv1.Role {
	return fencing.BuildRole(leaseMeta(s), LeaseName(s.Name))
}

// BuildLeaseRoleBinding builds the RoleBinding of that Role to the service accounts of the pods.
func BuildLeaseRoleBinding(s *v1.StatefulSingleton, accounts []string) *rbacv1.RoleBinding {
	return fencing.BuildRoleBinding(leaseMeta(s), accounts)
}
