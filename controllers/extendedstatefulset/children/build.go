package children

import (
	"cmp"
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

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/spec"
	"github.com/stateful-operator/stateful-operator/controllers/internal/claim"
	"github.com/stateful-operator/stateful-operator/controllers/internal/revision"
)

// DigestOf returns the digest of a version's content. Fields that are changed in place are excluded:
// replicas, ordinals, and the requests and volumeAttributesClassName of claim templates.
func DigestOf(set *v1alpha1.ExtendedStatefulSet) (string, error) {
	spec := set.Spec.Template.Spec.DeepCopy()
	spec.Replicas, spec.Ordinals = nil, nil
	for i := range spec.VolumeClaimTemplates {
		spec.VolumeClaimTemplates[i].Spec.Resources.Requests = nil
		spec.VolumeClaimTemplates[i].Spec.VolumeAttributesClassName = nil
		spec.VolumeClaimTemplates[i].Status = corev1.PersistentVolumeClaimStatus{}
	}
	meta := &set.Spec.Template.ObjectMeta
	return revision.Digest(map[string]any{"labels": meta.Labels, "annotations": meta.Annotations, "spec": spec})
}

// Version has the properties of a version's StatefulSet in one zone that do not come from the spec of
// the ExtendedStatefulSet.
type Version struct {
	Number int64
	Digest string
	// Attempts is how many attempts were made to upgrade to the version.
	Attempts int32
	Config   ConfigStamp
}

// ConfigStamp identifies the content of the ConfigMaps and Secrets that a StatefulSet references, and
// has the reason of the event about it.
type ConfigStamp struct {
	// Hash is stored in the pod template, so a new hash restarts the pods. "" means none.
	Hash string
	// Record is stored in an annotation of the StatefulSet. It lists the content that Hash covers. ""
	// means none.
	Record string
	// Event is the reason of the event about the stamp; "" means no event.
	Event string
}

// BuildChild returns the StatefulSet of a version in a zone.
func BuildChild(set *v1alpha1.ExtendedStatefulSet, z Zone, v Version, s Span) *appsv1.StatefulSet {
	from := &set.Spec.Template
	child := &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{
			Name: ChildName(set.Name, z, v.Number), Namespace: set.Namespace,
			Labels: Merged(from.Labels, OwnLabels(set.Name, z, v.Number)),
			Annotations: Merged(from.Annotations, map[string]string{
				v1alpha1.AnnotationVersion: strconv.FormatInt(v.Number, 10), v1alpha1.AnnotationDigest: v.Digest}),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(set, v1alpha1.GroupVersion.WithKind(v1alpha1.Kind))},
		},
		Spec: *from.Spec.DeepCopy(),
	}
	if v.Config.Record != "" {
		child.Annotations[v1alpha1.AnnotationConfigRecord] = v.Config.Record
	}
	if v.Attempts > 0 {
		child.Annotations[v1alpha1.AnnotationAttempts] = strconv.Itoa(int(v.Attempts))
	}
	if zones := zonesJSON(set); zones != "" {
		child.Annotations[v1alpha1.AnnotationZones] = zones
	}
	spec := &child.Spec
	spec.Replicas, spec.Ordinals = ptr.To(s.Replicas), &appsv1.StatefulSetOrdinals{Start: s.Start}
	spec.PodManagementPolicy, spec.VolumeClaimTemplates, spec.PersistentVolumeClaimRetentionPolicy = appsv1.ParallelPodManagement, nil, nil
	if spec.Selector == nil {
		spec.Selector = &metav1.LabelSelector{}
	}
	spec.Selector.MatchLabels = Merged(spec.Selector.MatchLabels, map[string]string{
		v1alpha1.LabelSet: set.Name, v1alpha1.LabelVersion: strconv.FormatInt(v.Number, 10), v1alpha1.LabelStatefulSet: z.Stem(set.Name)})
	spec.Template = buildPod(set, z, v)
	return child
}

// buildPod returns the pod template of a version in a zone.
func buildPod(set *v1alpha1.ExtendedStatefulSet, z Zone, v Version) corev1.PodTemplateSpec {
	pod := *set.Spec.Template.Spec.Template.DeepCopy()
	pod.Labels = Merged(pod.Labels, OwnLabels(set.Name, z, v.Number))
	extra := map[string]string{}
	if zones := zonesJSON(set); zones != "" {
		extra[v1alpha1.AnnotationZones] = zones
	}
	if spec.HandoverOf(set) == v1alpha1.HandoverPerOrdinal {
		extra[v1alpha1.AnnotationHostnames] = v1alpha1.True
	}
	if v.Config.Hash != "" {
		extra[v1alpha1.AnnotationConfigHash] = v.Config.Hash
	}
	pod.Annotations = Merged(pod.Annotations, extra)
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			list[i].Env = withEnv(list[i].Env, environment(set, z))
		}
	}
	claim.Mount(
		&pod.Spec,
		set.Spec.Template.Spec.VolumeClaimTemplates,
		func(string) string { return set.Name + v1alpha1.UnassignedClaim },
	)
	if z.Index != NoZone {
		KeepInZone(&pod.Spec, set.Spec.ZoneNodeLabel, z.Name)
	}
	return pod
}

// zonesJSON returns the annotation value that lists the zones; "" without zones.
func zonesJSON(set *v1alpha1.ExtendedStatefulSet) string {
	if len(set.Spec.Zones) == 0 {
		return ""
	}
	raw, _ := json.Marshal(set.Spec.Zones) // strings cannot fail to marshal
	return string(raw)
}

// environment returns the variables that every container gets.
func environment(set *v1alpha1.ExtendedStatefulSet, z Zone) []corev1.EnvVar {
	var env []corev1.EnvVar
	if ptr.Deref(set.Spec.InjectReplicasEnv, true) {
		env = append(env, corev1.EnvVar{Name: v1alpha1.EnvReplicas, Value: strconv.Itoa(int(spec.ReplicasOf(set)))})
	}
	if z.Index == NoZone {
		return env
	}
	for _, name := range []string{v1alpha1.EnvKubeAZ, v1alpha1.EnvBoshAZ, v1alpha1.EnvOperatorAZ} {
		env = append(env, corev1.EnvVar{Name: name, Value: z.Name})
	}
	return append(env, corev1.EnvVar{Name: v1alpha1.EnvAZIndex, Value: strconv.Itoa(int(z.Index) + 1)})
}

// withEnv returns add followed by have, so that variables of the user can refer to variables of the
// operator. A variable in add replaces the user's variable of the same name.
func withEnv(have, add []corev1.EnvVar) []corev1.EnvVar {
	all := slices.Clone(add)
	for _, e := range have {
		if !slices.ContainsFunc(add, func(a corev1.EnvVar) bool { return a.Name == e.Name }) {
			all = append(all, e)
		}
	}
	return all
}

// KeepInZone adds the zone to every term of the required node affinity. Terms are alternatives, so with
// a separate term pods could match another term and leave the zone.
func KeepInZone(pod *corev1.PodSpec, label, name string) {
	if label == "" {
		label = corev1.LabelTopologyZone
	}
	if pod.Affinity == nil {
		pod.Affinity = &corev1.Affinity{}
	}
	if pod.Affinity.NodeAffinity == nil {
		pod.Affinity.NodeAffinity = &corev1.NodeAffinity{}
	}
	required := &pod.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	if *required == nil || len((*required).NodeSelectorTerms) == 0 {
		*required = &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{}}}
	}
	terms := (*required).NodeSelectorTerms
	for i := range terms {
		terms[i].MatchExpressions = append(terms[i].MatchExpressions,
			corev1.NodeSelectorRequirement{Key: label, Operator: corev1.NodeSelectorOpIn, Values: []string{name}})
	}
}

// BuildClaim returns the claim of a template for an ordinal. It has no owner, because it belongs to the
// user and is kept when the object is deleted.
func BuildClaim(set *v1alpha1.ExtendedStatefulSet, template *corev1.PersistentVolumeClaim, z Zone, ordinal int32) *corev1.PersistentVolumeClaim {
	labels := OwnLabels(set.Name, z, 0)
	delete(labels, v1alpha1.LabelVersion)
	labels[v1alpha1.LabelPodOrdinal] = strconv.Itoa(int(ordinal))
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: ClaimName(set.Name, template.Name, z, ordinal), Namespace: set.Namespace,
			Labels: Merged(template.Labels, labels), Annotations: maps.Clone(template.Annotations)},
		Spec: *template.Spec.DeepCopy(),
	}
}

// BuildTrialPod returns a pod like the StatefulSet controller would create for a StatefulSet, for dry
// runs against quotas and policies. It lacks the operator's label, so the operator's own webhook, which
// assigns claims, ignores it.
func BuildTrialPod(child *appsv1.StatefulSet) *corev1.Pod {
	from := child.Spec.Template.DeepCopy()
	pod := &corev1.Pod{ObjectMeta: from.ObjectMeta, Spec: from.Spec}
	pod.Name, pod.Namespace = child.Name+"-0", child.Namespace
	delete(pod.Labels, v1alpha1.LabelSet)
	return pod
}

// BuildServices returns the headless Service and the Service of the current version; none if the
// template has no serviceName.
func BuildServices(set *v1alpha1.ExtendedStatefulSet, serving map[string]string) []*corev1.Service {
	name := set.Spec.Template.Spec.ServiceName
	if name == "" {
		return nil
	}
	ports := servicePorts(&set.Spec.Template.Spec.Template.Spec)
	build := func(name string, selector map[string]string, headless bool) *corev1.Service {
		s := &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: set.Namespace, Labels: map[string]string{v1alpha1.LabelSet: set.Name},
				OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(set, v1alpha1.GroupVersion.WithKind(v1alpha1.Kind))}},
			Spec: corev1.ServiceSpec{Selector: selector, Ports: ports, PublishNotReadyAddresses: headless},
		}
		if headless || len(ports) == 0 {
			s.Spec.ClusterIP = corev1.ClusterIPNone
		}
		return s
	}
	return []*corev1.Service{
		build(name, map[string]string{v1alpha1.LabelSet: set.Name}, true),
		build(spec.ActiveService(set), serving, false),
	}
}

// BuildBudget returns the PodDisruptionBudget of a zone. It selects the serving pods of the zone, and
// sets how many of them must remain. maxUnavailable would count from the replicas of the StatefulSets,
// which are fewer while an ordinal moves. With claims, a pod that is not Ready may always be evicted,
// because its claims are kept (decision 0038).
func BuildBudget(set *v1alpha1.ExtendedStatefulSet, z Zone, serving map[string]string) *policyv1.PodDisruptionBudget {
	budget := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: z.Stem(set.Name), Namespace: set.Namespace, Labels: map[string]string{v1alpha1.LabelSet: set.Name},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(set, v1alpha1.GroupVersion.WithKind(v1alpha1.Kind))}},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: ptr.To(intstr.FromInt32(spec.MinAvailableOf(set.Spec.PodDisruptionBudget, spec.ReplicasOf(set)))),
			Selector:     &metav1.LabelSelector{MatchLabels: Merged(serving, map[string]string{v1alpha1.LabelStatefulSet: z.Stem(set.Name)})},
		},
	}
	if len(set.Spec.Template.Spec.VolumeClaimTemplates) > 0 { // without claims the data of an evicted pod is lost
		budget.Spec.UnhealthyPodEvictionPolicy = ptr.To(policyv1.AlwaysAllow)
	}
	return budget
}

// servicePorts returns the ports of the containers without duplicates.
func servicePorts(pod *corev1.PodSpec) []corev1.ServicePort {
	var ports []corev1.ServicePort
	type port struct {
		number   int32
		protocol corev1.Protocol
	}
	names, added := map[string]bool{}, map[port]bool{}
	for _, c := range pod.Containers {
		for _, p := range c.Ports {
			protocol := cmp.Or(p.Protocol, corev1.ProtocolTCP)
			if added[port{p.ContainerPort, protocol}] || len(ports) == spec.MaxPorts {
				continue
			}
			added[port{p.ContainerPort, protocol}] = true
			name := p.Name
			if name == "" || names[name] {
				name = fmt.Sprintf(
					"port-%d-%s",
					p.ContainerPort, map[corev1.Protocol]string{corev1.ProtocolUDP: "udp", corev1.ProtocolSCTP: "sctp"}[protocol],
				)
				name = strings.TrimRight(name, "-")
			}
			names[name] = true
			ports = append(ports, corev1.ServicePort{Name: name, Port: p.ContainerPort, Protocol: protocol})
		}
	}
	return ports
}
