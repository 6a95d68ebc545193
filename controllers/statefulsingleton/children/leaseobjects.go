package children

import (
	"cmp"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
)

// leaseMeta returns the metadata of the Lease, and of the rights on it.
func leaseMeta(s *v1.StatefulSingleton) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: LeaseName(s.Name), Namespace: s.Namespace,
		Labels:          Merged(ownLabels(), map[string]string{v1.LabelSingleton: s.Name}),
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(s, v1.GroupVersion.WithKind("StatefulSingleton"))}}
}

// BuildLease builds the Lease of an object, without a holder.
func BuildLease(s *v1.StatefulSingleton) *coordinationv1.Lease {
	return &coordinationv1.Lease{ObjectMeta: leaseMeta(s), Spec: coordinationv1.LeaseSpec{
		LeaseDurationSeconds: s.Spec.Fencing.LeaseDurationSeconds, LeaseTransitions: ptr.To(int32(0))}}
}

// BuildLeaseRole builds the Role that allows to renew the Lease.
func BuildLeaseRole(s *v1.StatefulSingleton) *rbacv1.Role {
	return &rbacv1.Role{ObjectMeta: leaseMeta(s), Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{coordinationv1.GroupName}, Resources: []string{"leases"}, ResourceNames: []string{LeaseName(s.Name)},
		Verbs: []string{"get", "watch", "update", "patch"}}}}
}

// BuildLeaseRoleBinding builds the RoleBinding of that Role to the service accounts of the pods.
func BuildLeaseRoleBinding(s *v1.StatefulSingleton, accounts []string) *rbacv1.RoleBinding {
	binding := &rbacv1.RoleBinding{ObjectMeta: leaseMeta(s),
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: LeaseName(s.Name)}}
	for _, name := range accounts {
		binding.Subjects = append(binding.Subjects, rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: s.Namespace, Name: name})
	}
	return binding
}

// AccountOf returns the name of the service account of a pod.
func AccountOf(pod *corev1.Pod) string { return cmp.Or(pod.Spec.ServiceAccountName, "default") }
