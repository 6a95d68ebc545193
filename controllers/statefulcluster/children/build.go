package children

import (
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/claim"
	"github.com/stateful-operator/stateful-operator/controllers/internal/owned"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/spec"
)

// BuildPod builds the pod of the member with that id.
func BuildPod(s spec.Settings, rev *appsv1.ControllerRevision, id string) *corev1.Pod {
	data, ok := DataOf(rev)
	if !ok {
		data = DataOfSpec(&s.Set.Spec)
	}
	pod := &corev1.Pod{ObjectMeta: *data.Template.ObjectMeta.DeepCopy(), Spec: *data.Template.Spec.DeepCopy()}
	pod.Name, pod.GenerateName, pod.Namespace = s.NameOf(id), "", s.Set.Namespace
	pod.Labels = TemplateLabels(s, data)
	maps.Copy(pod.Labels, MemberLabels(s, id))
	pod.Labels[spec.LabelRevision] = rev.Name
	if pod.Annotations == nil {
		pod.Annotations = map[string]string{}
	}
	pod.OwnerReferences = []metav1.OwnerReference{Owner(s)}
	if data.ServiceName != "" {
		pod.Spec.Hostname, pod.Spec.Subdomain = pod.Name, data.ServiceName
	}
	claim.Mount(&pod.Spec, s.Set.Spec.VolumeClaimTemplates, func(template string) string {
		return claim.Name(s.Set.Name, template, id)
	})
	return pod
}

// Controls reports whether the set is the controller of a child.
func Controls(set *v1alpha1.StatefulCluster, child metav1.Object) bool {
	return owned.By(child, set, v1alpha1.GroupVersion.WithKind("StatefulCluster"))
}

// BuildClaim builds the claim of the member with that id from a claim template.
func BuildClaim(s spec.Settings, t *corev1.PersistentVolumeClaim, id string) *corev1.PersistentVolumeClaim {
	c := t.DeepCopy()
	c.Name, c.GenerateName, c.Namespace = claim.Name(s.Set.Name, t.Name, id), "", s.Set.Namespace
	c.Status = corev1.PersistentVolumeClaimStatus{}
	if c.Labels == nil {
		c.Labels = map[string]string{}
	}
	if s.Set.Spec.Selector != nil {
		maps.Copy(c.Labels, s.Set.Spec.Selector.MatchLabels)
	}
	maps.Copy(c.Labels, MemberLabels(s, id))
	c.OwnerReferences = nil
	if s.DeletesClaims() {
		c.OwnerReferences = []metav1.OwnerReference{ClaimOwner(s)}
	}
	return c
}

// BuildBudget builds the PodDisruptionBudget, which allows maxConcurrent disruptions. The value is
// a number, because a budget rounds percentages up. It selects pods by the operator's label, so
// that a pod of another owner cannot use it up. With onEviction ReplaceFirst it allows no disruption,
// even while the set has more members than replicas: wanted is the number of members that the set
// should have now, and the operator decides which of them is retired.
func BuildBudget(s spec.Settings, wanted int) *policyv1.PodDisruptionBudget {
	budget := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: s.Set.Name, Namespace: s.Set.Namespace,
			Labels: ClusterLabels(s), OwnerReferences: []metav1.OwnerReference{Owner(s)}},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MaxUnavailable: ptr.To(intstr.FromInt32(int32(s.MaxConcurrent()))),
			Selector:       &metav1.LabelSelector{MatchLabels: map[string]string{v1alpha1.LabelClusterUID: string(s.Set.UID)}},
		},
	}
	if s.ReplacesFirst() {
		budget.Spec.MaxUnavailable, budget.Spec.MinAvailable = nil, ptr.To(intstr.FromInt32(int32(wanted)))
	}
	return budget
}

// TemplateLabels returns the labels of the template, or those of the selector if the template has
// none.
func TemplateLabels(s spec.Settings, data RevisionData) map[string]string {
	labels := maps.Clone(data.Template.Labels)
	if len(labels) == 0 && s.Set.Spec.Selector != nil {
		labels = maps.Clone(s.Set.Spec.Selector.MatchLabels)
	}
	if labels == nil {
		labels = map[string]string{}
	}
	return labels
}

// ClusterLabels returns the operator's labels on all children of the set.
func ClusterLabels(s spec.Settings) map[string]string {
	return map[string]string{v1alpha1.LabelCluster: s.Set.Name, v1alpha1.LabelClusterUID: string(s.Set.UID)}
}

// MemberLabels returns the operator's labels on the pod and the claims of the member with that id.
func MemberLabels(s spec.Settings, id string) map[string]string {
	labels := ClusterLabels(s)
	labels[v1alpha1.LabelMember] = id
	return labels
}

// Owner returns the owner reference of the children of the set, except claims.
func Owner(s spec.Settings) metav1.OwnerReference {
	return *metav1.NewControllerRef(s.Set, v1alpha1.GroupVersion.WithKind("StatefulCluster"))
}

// ClaimOwner returns the owner reference that makes the garbage collector delete the claim with the
// set. It is not a controller reference and does not block the deletion of the set.
func ClaimOwner(s spec.Settings) metav1.OwnerReference {
	ref := Owner(s)
	ref.Controller, ref.BlockOwnerDeletion = nil, nil
	return ref
}
