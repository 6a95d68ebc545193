// Package simulate simulates ExtendedStatefulSets in a simulated cluster: the operator, and the controllers of
// Kubernetes that act on its objects.
package simulate

import (
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/children"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/observe"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation"
)

// Kind implements simulation.Kind for ExtendedStatefulSets.
type Kind struct{}

var (
	_ simulation.Kind     = Kind{}
	_ simulation.Approver = Kind{}
)

// New returns an empty ExtendedStatefulSet.
func (Kind) New() client.Object { return &v1alpha1.ExtendedStatefulSet{} }

// Reads returns the objects that the operator, the simulated controllers and kubelets read. Those that the operator
// reads by name are listed without a selector, because their names depend on the spec.
func (Kind) Reads(key types.NamespacedName) []simulation.Listing {
	inNamespace := []client.ListOption{client.InNamespace(key.Namespace)}
	labeled := observe.OfSet(&v1alpha1.ExtendedStatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}})
	return []simulation.Listing{
		{List: &corev1.NodeList{}},
		{List: &corev1.PodList{}, Options: labeled},
		{List: &corev1.PersistentVolumeClaimList{}, Options: inNamespace},
		{List: &corev1.ServiceList{}, Options: inNamespace},
		{List: &appsv1.StatefulSetList{}, Options: inNamespace},
		{List: &appsv1.ControllerRevisionList{}, Options: labeled},
		{List: &policyv1.PodDisruptionBudgetList{}, Options: inNamespace},
		{List: &batchv1.JobList{}, Options: labeled},
	}
}

// Start starts an operator for the object of that key.
func (Kind) Start(c *simulation.Cluster, key types.NamespacedName) simulation.Operator {
	return Start(c, key)
}

// Owns reports whether a pod is a pod of any version of the object.
func (Kind) Owns(object client.Object, pod *corev1.Pod) bool {
	if pod.Namespace != object.GetNamespace() || pod.Labels[v1alpha1.LabelSet] != object.GetName() {
		return false
	}
	owner := metav1.GetControllerOfNoCopy(pod)
	if owner != nil && owner.Kind != statefulSet.Kind {
		return false
	}
	_, _, ok := children.ParseChild(object.GetName(), childOf(pod))
	return ok
}

// Approve approves the revision whose good canaries wait for approval.
func (Kind) Approve(object client.Object) string {
	set, ok := object.(*v1alpha1.ExtendedStatefulSet)
	if !ok || !isWaitingForApproval(set) || set.Spec.ApprovedRevision == set.Status.UpdateRevision {
		return ""
	}
	set.Spec.ApprovedRevision = set.Status.UpdateRevision
	return set.Spec.ApprovedRevision
}

func isWaitingForApproval(set *v1alpha1.ExtendedStatefulSet) bool {
	return slices.ContainsFunc(set.Status.Conditions, func(c metav1.Condition) bool {
		return c.Status == metav1.ConditionTrue && c.Reason == v1alpha1.ReasonWaitingForApproval
	})
}

// Role returns "active" for a pod whose probes succeed, or without probes for a pod that the active Service
// selects. It returns "" for other pods.
func (Kind) Role(object client.Object, pod *corev1.Pod) string {
	set, ok := object.(*v1alpha1.ExtendedStatefulSet)
	switch {
	case !ok:
		return ""
	case len(set.Spec.ActivePassiveProbes) > 0:
		return pod.Labels[v1alpha1.LabelPodActive]
	case isServed(set, pod):
		return v1alpha1.PodActive
	}
	return ""
}

// isServed reports whether the active Service selects a pod. It uses the selector in the status, which in
// addition selects the first zone.
func isServed(set *v1alpha1.ExtendedStatefulSet, pod *corev1.Pod) bool {
	selector, err := labels.Parse(set.Status.Selector)
	if err != nil || set.Status.Selector == "" || set.Spec.Template.Spec.ServiceName == "" {
		return false
	}
	served := labels.NewSelector()
	requirements, _ := selector.Requirements()
	for _, r := range requirements {
		if r.Key() != v1alpha1.LabelZoneIndex {
			served = served.Add(r)
		}
	}
	return served.Matches(labels.Set(pod.Labels))
}

// childOf returns the part of the name of a pod that is the name of its StatefulSet.
func childOf(pod *corev1.Pod) string { return pod.Name[:max(0, strings.LastIndex(pod.Name, "-"))] }
