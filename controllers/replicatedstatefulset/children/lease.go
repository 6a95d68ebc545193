package children

import (
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/fencing"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/application"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/spec"
)

// The Leases of members, and the rights on them. A Lease has the name of the pod, and outlives it.

// LeaseName returns the name of the Lease of a pod.
func LeaseName(pod string) string { return pod + v1alpha1.LeaseSuffix }

// PodOfLease returns the name of the pod of a Lease. It returns false for another Lease.
func PodOfLease(lease string) (pod string, ok bool) {
	return strings.CutSuffix(lease, v1alpha1.LeaseSuffix)
}

// RightsName returns the name of the Role, and of the RoleBinding.
func RightsName(set *v1alpha1.ReplicatedStatefulSet) string {
	return LeaseName(spec.StatefulSetName(set))
}

// leaseMeta returns the metadata of a Lease, or of the rights on the Leases.
func leaseMeta(set *v1alpha1.ReplicatedStatefulSet, name string) metav1.ObjectMeta {
	meta := childMeta(set, name)
	meta.Labels[v1alpha1.LabelLease] = set.Name
	return meta
}

// BuildLease builds the Lease of a pod, without a holder.
func BuildLease(set *v1alpha1.ReplicatedStatefulSet, pod *corev1.Pod, container string, epoch int64) *coordinationv1.Lease {
	seconds := LeaseDuration(pod, container) / time.Second
	return fencing.BuildLease(leaseMeta(set, LeaseName(pod.Name)), int32(seconds), epoch)
}

// BuildLeaseRole builds the Role that allows to renew the Leases of these pods.
func BuildLeaseRole(set *v1alpha1.ReplicatedStatefulSet, pods []string) *rbacv1.Role {
	leases := make([]string, 0, len(pods))
	for _, pod := range pods {
		leases = append(leases, LeaseName(pod))
	}
	return fencing.BuildRole(leaseMeta(set, RightsName(set)), leases...)
}

// BuildLeaseRoleBinding builds the RoleBinding of that Role to the service accounts of the pods.
func BuildLeaseRoleBinding(set *v1alpha1.ReplicatedStatefulSet, accounts []string) *rbacv1.RoleBinding {
	return fencing.BuildRoleBinding(leaseMeta(set, RightsName(set)), accounts)
}

// LeaseDuration returns the duration of the Lease that process 1 of a container of the pod renews. It is 0 if the
// pod has no Lease.
func LeaseDuration(pod *corev1.Pod, container string) time.Duration {
	if c := ContainerNamed(pod, container); c != nil {
		return application.LeaseDuration(c)
	}
	return 0
}

// AgentOf returns the path of the agent in a container with a Lease.
func AgentOf(pod *corev1.Pod, container string) string {
	if c := ContainerNamed(pod, container); c != nil && len(c.Command) > 0 {
		return c.Command[0]
	}
	return ""
}

// ContainerNamed returns the container of a pod. It returns nil if there is none.
func ContainerNamed(pod *corev1.Pod, name string) *corev1.Container {
	for i := range pod.Spec.Containers {
		if pod.Spec.Containers[i].Name == name {
			return &pod.Spec.Containers[i]
		}
	}
	return nil
}
