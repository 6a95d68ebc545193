package fencing

import (
	"fmt"

	coordinationv1 "k8s.io/api/coordination/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// MaxEpoch is the highest epoch that process 1 of a member can show in its name. It is never reached: a Lease would
// have to be assigned each second for 31 years.
const MaxEpoch = 999_999_999

// BuildLease returns a Lease without a holder.
func BuildLease(meta metav1.ObjectMeta, seconds int32, epoch int64) *coordinationv1.Lease {
	return &coordinationv1.Lease{ObjectMeta: meta, Spec: coordinationv1.LeaseSpec{
		LeaseDurationSeconds: ptr.To(seconds), LeaseTransitions: ptr.To(int32(epoch))}}
}

// BuildRole returns a Role that allows to renew these Leases.
func BuildRole(meta metav1.ObjectMeta, leases ...string) *rbacv1.Role {
	return &rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{coordinationv1.GroupName}, Resources: []string{"leases"}, ResourceNames: leases,
		Verbs: []string{"get", "watch", "update", "patch"}}}}
}

// BuildRoleBinding returns a RoleBinding of the Role of the same name to service accounts of the namespace.
func BuildRoleBinding(meta metav1.ObjectMeta, accounts []string) *rbacv1.RoleBinding {
	binding := &rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: roleOfName(meta.Name)}
	for _, name := range accounts {
		binding.Subjects = append(binding.Subjects, rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: meta.Namespace, Name: name})
	}
	return binding
}

func roleOfName(name string) rbacv1.RoleRef {
	return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name}
}

// BindsAnotherRole reports whether a RoleBinding, which may be nil, grants another Role than the one of the same name.
// The API server does not allow to change that.
func BindsAnotherRole(binding *rbacv1.RoleBinding) bool {
	return binding != nil && binding.RoleRef != roleOfName(binding.Name)
}

// HolderOf returns the identity of the holder of a Lease; "" if there is none, or no Lease.
func HolderOf(lease *coordinationv1.Lease) string {
	if lease == nil {
		return ""
	}
	return ptr.Deref(lease.Spec.HolderIdentity, "")
}

// EpochOf returns the number of times that a Lease was assigned; 0 without a Lease.
func EpochOf(lease *coordinationv1.Lease) int64 {
	if lease == nil {
		return 0
	}
	return int64(ptr.Deref(lease.Spec.LeaseTransitions, 0))
}

// SameHolder returns a check of a response of the API server: no admission webhook has changed the holder or the
// epoch.
func SameHolder(want *coordinationv1.Lease) func(metav1.Object) error {
	return func(answer metav1.Object) error {
		have, ok := answer.(*coordinationv1.Lease)
		if !ok || HolderOf(have) != HolderOf(want) || EpochOf(have) != EpochOf(want) {
			return fmt.Errorf("the holder of Lease %s was changed", want.Name)
		}
		return nil
	}
}

// NotPermitted returns the message about a missing right of the controllers, in the namespace of the operator.
func NotPermitted(err error, namespace string) string {
	return fmt.Sprintf("fencing by a Lease is not permitted: %v. An administrator permits it by: kubectl create clusterrolebinding stateful-operator-fencing "+
		"--clusterrole=stateful-operator-fencing-role --serviceaccount=%s:stateful-operator-controller-manager", err, namespace)
}
