// Package simulate runs the passes of StatefulClusters in a simulated cluster.
package simulate

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/children"
)

// Kind simulates StatefulClusters.
type Kind struct{}

var _ simulation.Kind = Kind{}

// New returns an empty StatefulCluster.
func (Kind) New() client.Object { return &v1alpha1.StatefulCluster{} }

// Reads returns the children of a set, all claims and budgets of its namespace, because a template can mount any
// claim and any budget can select its pods, and all Nodes.
func (Kind) Reads(key types.NamespacedName) []simulation.Listing {
	within := client.InNamespace(key.Namespace)
	ours := []client.ListOption{within, client.MatchingLabels{v1alpha1.LabelCluster: key.Name}}
	return []simulation.Listing{
		{List: &corev1.PodList{}, Options: ours},
		{List: &corev1.PersistentVolumeClaimList{}, Options: []client.ListOption{within}},
		{List: &appsv1.ControllerRevisionList{}, Options: ours},
		{List: &policyv1.PodDisruptionBudgetList{}, Options: []client.ListOption{within}},
		{List: &corev1.NodeList{}},
	}
}

// Start starts an operator for the set of that key.
func (Kind) Start(c *simulation.Cluster, key types.NamespacedName) simulation.Operator {
	return New(c, key, Hooks{})
}

// Owns reports whether the set is the controller of a pod.
func (Kind) Owns(object client.Object, pod *corev1.Pod) bool {
	return children.Controls(object.(*v1alpha1.StatefulCluster), pod)
}

// Role returns "", because all members are equal.
func (Kind) Role(client.Object, *corev1.Pod) string { return "" }
