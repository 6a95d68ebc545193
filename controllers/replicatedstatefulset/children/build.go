package children

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/spec"
)

// All builders take a valid object with defaults (see spec.WithDefaults and spec.Validate).

// BuildStatefulSet builds the StatefulSet with the number of replicas, which differs from the spec
// while members are added or removed in order.
//
// With OnDelete, the operator determines which pod is recreated, and when. With Parallel, a member
// that does not come up does not block others.
func BuildStatefulSet(set *v1alpha1.ReplicatedStatefulSet, replicas int32, of Hashes) *appsv1.StatefulSet {
	return &appsv1.StatefulSet{
		ObjectMeta: childMeta(set, spec.StatefulSetName(set)),
		Spec: appsv1.StatefulSetSpec{
			Replicas:                             &replicas,
			Selector:                             &metav1.LabelSelector{MatchLabels: spec.OwnLabels(set)},
			Template:                             BuildTemplate(set, of),
			VolumeClaimTemplates:                 buildClaimTemplates(set),
			ServiceName:                          spec.ServiceName(set),
			PodManagementPolicy:                  appsv1.ParallelPodManagement,
			UpdateStrategy:                       appsv1.StatefulSetUpdateStrategy{Type: appsv1.OnDeleteStatefulSetStrategyType},
			RevisionHistoryLimit:                 ptr.To(int32(2)), // they are not used for rollbacks
			PersistentVolumeClaimRetentionPolicy: Retention(appsv1.RetainPersistentVolumeClaimRetentionPolicyType),
		},
	}
}

// Retention returns a claim retention policy. WhenDeleted is always Retain, because a user may
// delete only the StatefulSet, and it is then recreated.
func Retention(whenScaled appsv1.PersistentVolumeClaimRetentionPolicyType) *appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy {
	return &appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{
		WhenDeleted: appsv1.RetainPersistentVolumeClaimRetentionPolicyType,
		WhenScaled:  whenScaled,
	}
}

func buildClaimTemplates(set *v1alpha1.ReplicatedStatefulSet) []corev1.PersistentVolumeClaim {
	var claims []corev1.PersistentVolumeClaim
	for i := range set.Spec.Pod.VolumeClaimTemplates {
		c := set.Spec.Pod.VolumeClaimTemplates[i].DeepCopy()
		c.Status = corev1.PersistentVolumeClaimStatus{}
		claims = append(claims, *c)
	}
	return claims
}

// Hashes are the hashes outside the spec that pods are recreated for. They are "" if there is none.
type Hashes struct {
	Rules  string // of the ConfigMaps of spec.ruleSelector
	Config string // of what spec.updateOnEnvChange follows
}

// BuildTemplate builds the pod template of all members: the user's fields and the additions in
// inject.go.
func BuildTemplate(set *v1alpha1.ReplicatedStatefulSet, of Hashes) corev1.PodTemplateSpec {
	whole, pod, _ := spec.WithTemplate(set) // spec.Validate has rejected a set for which it returns errors
	setSpec := whole.Spec.DeepCopy()
	pod.InitContainers = setSpec.Pod.InitContainers
	pod.Containers = setSpec.Pod.Containers
	pod.Volumes = slices.Concat(setSpec.Pod.Volumes, spec.OwnVolumes(setSpec))
	pod.TerminationGracePeriodSeconds = setSpec.Pod.TerminationGracePeriodSeconds
	pod.SecurityContext = setSpec.Pod.SecurityContext
	pod.AutomountServiceAccountToken = setSpec.Pod.AutomountServiceAccountToken
	pod.ServiceAccountName = setSpec.ServiceAccountName
	pod.ImagePullSecrets = setSpec.ImagePullSecrets
	pod.NodeSelector = spec.Merged(setSpec.NodeSelector, setSpec.Pod.NodeSelector)
	pod.Tolerations = setSpec.Tolerations
	pod.Affinity = Affinity(whole)
	injectContainers(whole, &pod)
	template := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{
			Labels:      templateLabels(whole),
			Annotations: templateAnnotations(whole),
		},
		Spec: pod,
	}
	if of.Rules != "" {
		template.Annotations[v1alpha1.AnnotationRules] = of.Rules
	}
	if of.Config != "" {
		template.Annotations[v1alpha1.AnnotationConfigHash] = of.Config
	}
	template.Annotations[v1alpha1.AnnotationContainer] = spec.CommandsIn(&set.Spec.Pod)
	template.Annotations[v1alpha1.AnnotationTemplate] = TemplateHash(whole, &template.Spec, of)
	if spec.NeedsFinalizer(set) {
		template.Finalizers = []string{v1alpha1.FinalizerMember}
	}
	return template
}

// TemplateHash returns the hash of everything that a pod must be recreated for. Metadata that tools
// write on the object itself (a chart's version, the applying manager) reaches pods when they are
// created, but restarts none. Neither does the finalizer, which can be added to running pods.
func TemplateHash(set *v1alpha1.ReplicatedStatefulSet, podSpec *corev1.PodSpec, of Hashes) string {
	all := map[string]any{
		"spec": podSpec, "labels": set.Spec.Pod.Labels, "annotations": set.Spec.Pod.Annotations, "rules": of.Rules,
		"commands in": spec.CommandsIn(&set.Spec.Pod)}
	if of.Config != "" { // pods without one are older than the field
		all["config"] = of.Config
	}
	text, err := json.Marshal(all)
	if err != nil { // a spec that was unmarshaled from JSON can be marshaled
		panic(fmt.Sprintf("hashing the template of %s: %v", set.Name, err))
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}

// templateLabels returns the labels of a new pod: nothing runs in it until the operator observes
// otherwise.
func templateLabels(set *v1alpha1.ReplicatedStatefulSet) map[string]string {
	labels := spec.Merged(set.Labels, set.Spec.Pod.Labels, spec.OwnLabels(set))
	labels[v1alpha1.LabelActive] = v1alpha1.False
	labels[v1alpha1.LabelRole] = v1alpha1.RoleNone
	return labels
}

// templateAnnotations returns the annotations of pods. It omits annotations that apply to the
// object only: the last applied configuration, and one-time orders.
func templateAnnotations(set *v1alpha1.ReplicatedStatefulSet) map[string]string {
	annotations := spec.Merged(set.Annotations)
	maps.DeleteFunc(annotations, func(key, _ string) bool {
		return strings.HasPrefix(key, "kubectl.kubernetes.io/") || strings.HasPrefix(key, v1alpha1.Prefix)
	})
	return spec.Merged(annotations, set.Spec.Pod.Annotations)
}

// BuildServices builds the Services of all members, of the primaries, of the running members, and
// of the secondaries if there can be any. The first one includes unready members, because its DNS
// names are passed to commands.
func BuildServices(set *v1alpha1.ReplicatedStatefulSet) []*corev1.Service {
	all := buildService(set, spec.ServiceName(set), spec.OwnLabels(set))
	all.Spec.ClusterIP = corev1.ClusterIPNone
	all.Spec.PublishNotReadyAddresses = true
	services := []*corev1.Service{
		all,
		buildService(
			set,
			set.PrimaryServiceName(),
			map[string]string{
				v1alpha1.LabelApp:     set.Name,
				v1alpha1.LabelManaged: v1alpha1.True,
				v1alpha1.LabelRole:    v1alpha1.RolePrimary,
			},
		),
		buildService(
			set,
			spec.ActiveServiceName(set),
			map[string]string{v1alpha1.LabelApp: set.Name, v1alpha1.LabelManaged: v1alpha1.True, v1alpha1.LabelActive: v1alpha1.True},
		),
	}
	if spec.HasSecondaries(set) {
		services = append(services, buildService(
			set,
			spec.SecondaryServiceName(set),
			map[string]string{v1alpha1.LabelApp: set.Name, v1alpha1.LabelManaged: v1alpha1.True, v1alpha1.LabelRole: v1alpha1.RoleSecondary},
		))
	}
	return services
}

func buildService(set *v1alpha1.ReplicatedStatefulSet, name string, selector map[string]string) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: childMeta(set, name),
		Spec: corev1.ServiceSpec{
			Type:     corev1.ServiceTypeClusterIP,
			Selector: selector,
			Ports:    PortsOf(set),
		},
	}
}

// PortsOf returns the ports with the defaults that the API server would set. Otherwise they would
// always differ from the stored ones, and each pass would send a patch.
func PortsOf(set *v1alpha1.ReplicatedStatefulSet) []corev1.ServicePort {
	ports := slices.Clone(set.Spec.ServicePorts)
	for i := range ports {
		port := &ports[i]
		port.Protocol = cmp.Or(port.Protocol, corev1.ProtocolTCP)
		if port.TargetPort == (intstr.IntOrString{}) || port.TargetPort == intstr.FromString("") {
			port.TargetPort = intstr.FromInt32(port.Port)
		}
	}
	return ports
}

// BuildBudget builds a budget that allows the eviction of one member at a time, or as many as the
// set specifies.
func BuildBudget(set *v1alpha1.ReplicatedStatefulSet) *policyv1.PodDisruptionBudget {
	budget := NewBudget(set, spec.BudgetName(set))
	budget.Spec.UnhealthyPodEvictionPolicy = ptr.To(policyv1.IfHealthyBudget) // an unready member may be primary
	limits := ptr.Deref(set.Spec.PodDisruptionBudget, v1alpha1.BudgetPolicy{})
	if limits.MinAvailable != nil {
		budget.Spec.MinAvailable = ptr.To(intstr.FromInt32(*limits.MinAvailable))
	} else {
		budget.Spec.MaxUnavailable = ptr.To(intstr.FromInt32(ptr.Deref(limits.MaxUnavailable, 1)))
	}
	return budget
}

// BuildFollowersBudget builds the budget that keeps at least that many of the members that are not
// primary available. It excludes the primaries, because the eviction API refuses the eviction of a
// pod with two budgets. A pod that is not Ready may always be evicted if its claims stay (decision
// 0038).
func BuildFollowersBudget(set *v1alpha1.ReplicatedStatefulSet, least int32) *policyv1.PodDisruptionBudget {
	budget := buildRoleBudget(set, spec.BudgetName(set), metav1.LabelSelectorOpNotIn, least)
	if len(set.Spec.Pod.VolumeClaimTemplates) > 0 { // otherwise the data is deleted with the pod
		budget.Spec.UnhealthyPodEvictionPolicy = ptr.To(policyv1.AlwaysAllow)
	}
	return budget
}

// BuildPrimaryBudget builds the budget that keeps at least that many primaries available. It cannot
// use maxUnavailable, which would count all members.
func BuildPrimaryBudget(set *v1alpha1.ReplicatedStatefulSet, least int32) *policyv1.PodDisruptionBudget {
	return buildRoleBudget(set, spec.PrimaryBudgetName(set), metav1.LabelSelectorOpIn, least)
}

// buildRoleBudget builds a budget that keeps at least that many of the selected members available:
// the primaries, or all others.
func buildRoleBudget(set *v1alpha1.ReplicatedStatefulSet, name string, among metav1.LabelSelectorOperator, least int32) *policyv1.PodDisruptionBudget {
	budget := NewBudget(set, name)
	budget.Spec.MinAvailable = ptr.To(intstr.FromInt32(least))
	budget.Spec.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{{
		Key: v1alpha1.LabelRole, Operator: among, Values: []string{v1alpha1.RolePrimary},
	}}
	return budget
}

// BuildPod builds a pod as the StatefulSet controller creates it.
func BuildPod(stateful *appsv1.StatefulSet, ordinal int) *corev1.Pod {
	template := stateful.Spec.Template.DeepCopy()
	pod := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
	pod.Name, pod.Namespace = fmt.Sprintf("%s-%d", stateful.Name, ordinal), stateful.Namespace
	pod.Labels = spec.Merged(pod.Labels, map[string]string{
		appsv1.StatefulSetPodNameLabel: pod.Name,
		appsv1.PodIndexLabel:           strconv.Itoa(ordinal),
	})
	pod.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: "apps/v1", Kind: "StatefulSet", Name: stateful.Name, UID: stateful.UID, Controller: ptr.To(true),
	}}
	pod.Spec.Hostname, pod.Spec.Subdomain = pod.Name, stateful.Spec.ServiceName
	for i := range stateful.Spec.VolumeClaimTemplates {
		claim := stateful.Spec.VolumeClaimTemplates[i].Name
		pod.Spec.Volumes = slices.DeleteFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == claim })
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: claim, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim + "-" + pod.Name},
		}})
	}
	return pod
}

// NewBudget returns a budget of all members without a limit.
func NewBudget(set *v1alpha1.ReplicatedStatefulSet, name string) *policyv1.PodDisruptionBudget {
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: childMeta(set, name),
		Spec:       policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: spec.OwnLabels(set)}},
	}
}

// childMeta returns the common metadata of children: the labels that select them, and the owner
// with which they are garbage collected.
func childMeta(set *v1alpha1.ReplicatedStatefulSet, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name: name, Namespace: set.Namespace, Labels: spec.OwnLabels(set),
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(
			set,
			v1alpha1.GroupVersion.WithKind("ReplicatedStatefulSet"),
		)},
	}
}
