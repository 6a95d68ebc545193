package simulate

import (
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/children"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/facts"
)

// Kind simulates StatefulSingletons.
type Kind struct{}

var _ simulation.Kind = Kind{}

// The roles of members.
const (
	roleHolder  = "holder"
	roleWaiting = "waiting"
)

// New returns an empty object.
func (Kind) New() client.Object { return &v1.StatefulSingleton{} }

// Reads returns the lists that the operator and all others read for the object of that key.
func (Kind) Reads(key types.NamespacedName) []simulation.Listing {
	in := client.InNamespace(key.Namespace)
	named := func(name string) client.ListOption { return client.MatchingFields{metav1.ObjectNameField: name} }
	list := func(list client.ObjectList, options ...client.ListOption) simulation.Listing {
		return simulation.Listing{List: list, Options: options}
	}
	lease := named(children.LeaseName(key.Name))
	return []simulation.Listing{
		list(&v1.StatefulSingletonList{}, in),
		list(&corev1.PodList{}, in),
		list(&appsv1.DeploymentList{}, in),
		list(&appsv1.ReplicaSetList{}, in),
		list(&appsv1.StatefulSetList{}, in),
		list(&appsv1.ControllerRevisionList{}, in),
		list(&corev1.PersistentVolumeClaimList{}, in),
		list(&policyv1.PodDisruptionBudgetList{}, in),
		list(&coordinationv1.LeaseList{}, in, lease),
		list(&rbacv1.RoleList{}, in, lease),
		list(&rbacv1.RoleBindingList{}, in, lease),
		list(&corev1.ConfigMapList{}, in, named(v1.ConfigMapWrapper)),
		list(&corev1.NamespaceList{}, named(key.Namespace)),
		list(&corev1.NodeList{}),
	}
}

// Start starts an operator for the object of that key.
func (Kind) Start(c *simulation.Cluster, key types.NamespacedName) simulation.Operator {
	s := New(c, key)
	s.reports = true
	return s.Start("operator")
}

// Owns reports whether the object selects a pod, or the pod was created for it.
func (Kind) Owns(object client.Object, pod *corev1.Pod) bool {
	s, ok := object.(*v1.StatefulSingleton)
	return ok && owns(s, pod)
}

// Role returns holder for the pod that may run its program, waiting for a pod that waits at its gate, and else "".
func (Kind) Role(object client.Object, pod *corev1.Pod) string {
	s, ok := object.(*v1.StatefulSingleton)
	if !ok || !owns(s, pod) {
		return ""
	}
	holder := s.Status.Holder
	isHolder := holder != nil && holder.UID == pod.UID
	if isHolder || s.Status.ActivePod == pod.Name {
		return roleHolder
	}
	m := &facts.Member{Pod: pod}
	if m.Inspect(s); m.Gated && m.Lives() && !m.HasTurn() {
		return roleWaiting
	}
	return ""
}
