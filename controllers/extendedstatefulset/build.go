package extendedstatefulset

import (
	"cmp"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/claim"
	"github.com/stateful-operator/stateful-operator/controllers/internal/owned"
	"github.com/stateful-operator/stateful-operator/controllers/internal/revision"
)

// zone is one of spec.zones with its index. A set without zones has a single zone without a name.
type zone struct {
	name  string // "" without zones
	index int32  // noZone without zones
}

// noZone is the zone index of a set without zones.
const noZone = -1

// stem returns the name of the zone's StatefulSets without the version.
func (z zone) stem(set string) string {
	if z.index == noZone {
		return set
	}
	return fmt.Sprintf("%s-z%d", set, z.index)
}

func childName(set string, z zone, version int64) string {
	return fmt.Sprintf("%s-v%d", z.stem(set), version)
}

// claimName returns the name of a claim. The webhook puts the same name into pods.
func claimName(set, template string, z zone, ordinal int32) string {
	return claim.Name(template, z.stem(set), strconv.Itoa(int(ordinal)))
}

// digestOf returns the digest of a version's content. Fields that are changed in place are excluded:
// replicas, ordinals, and the requests and volumeAttributesClassName of claim templates.
func digestOf(set *v1alpha1.ExtendedStatefulSet) (string, error) {
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

// replicasOf returns the number of pods in each zone. Admission sets missing replicas; this default
// covers objects that bypassed admission. The result is limited to maxReplicas, so that no loop runs
// longer; a set with more replicas is invalid and gets no changes.
func replicasOf(set *v1alpha1.ExtendedStatefulSet) int32 {
	return min(max(0, ptr.Deref(set.Spec.Template.Spec.Replicas, smallestLegal(set.Spec.Scaling))), maxReplicas)
}

// handoverOf returns the handover of an upgrade that begins now.
func handoverOf(set *v1alpha1.ExtendedStatefulSet) v1alpha1.Handover {
	switch h := set.Spec.UpdateStrategy.Handover; {
	case h == v1alpha1.HandoverCoexist || h == v1alpha1.HandoverPerOrdinal:
		return h
	case len(set.Spec.Template.Spec.VolumeClaimTemplates) > 0:
		return v1alpha1.HandoverPerOrdinal
	}
	return v1alpha1.HandoverCoexist
}

// span is a range of ordinals of a StatefulSet.
type span struct{ start, replicas int32 }

// end returns the ordinal after the last.
func (s span) end() int32 { return s.start + min(s.replicas, math.MaxInt32-s.start) }

// ordinals returns the ordinals one by one. It returns at most maxReplicas, even if another client
// gave the StatefulSet more.
func (s span) ordinals() iter.Seq[int32] {
	return func(yield func(int32) bool) {
		for i := range min(s.end()-s.start, maxReplicas) {
			if !yield(s.start + i) {
				return
			}
		}
	}
}

func (s span) has(ordinal int32) bool { return s.start <= ordinal && ordinal < s.end() }

// version has the properties of a StatefulSet that do not come from the spec.
type version struct {
	number   int64
	digest   string
	attempts int32
	config   configStamp
}

// configStamp identifies the content of the ConfigMaps and Secrets that a StatefulSet references. hash
// is stored in the pod template, record in an annotation of the StatefulSet. record lists the content
// that hash covers. "" means none.
type configStamp struct {
	hash, record string
	// event is the reason of the event about the stamp; "" means no event.
	event string
}

// buildChild returns the StatefulSet of a version in a zone.
func buildChild(set *v1alpha1.ExtendedStatefulSet, z zone, v version, s span) *appsv1.StatefulSet {
	from := &set.Spec.Template
	child := &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{
			Name: childName(set.Name, z, v.number), Namespace: set.Namespace,
			Labels: merged(from.Labels, ownLabels(set.Name, z, v.number)),
			Annotations: merged(from.Annotations, map[string]string{
				v1alpha1.AnnotationVersion: strconv.FormatInt(v.number, 10), v1alpha1.AnnotationDigest: v.digest}),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(set, v1alpha1.GroupVersion.WithKind(v1alpha1.Kind))},
		},
		Spec: *from.Spec.DeepCopy(),
	}
	if v.config.record != "" {
		child.Annotations[v1alpha1.AnnotationConfigRecord] = v.config.record
	}
	if v.attempts > 0 {
		child.Annotations[v1alpha1.AnnotationAttempts] = strconv.Itoa(int(v.attempts))
	}
	if zones := zonesJSON(set); zones != "" {
		child.Annotations[v1alpha1.AnnotationZones] = zones
	}
	spec := &child.Spec
	spec.Replicas, spec.Ordinals = ptr.To(s.replicas), &appsv1.StatefulSetOrdinals{Start: s.start}
	spec.PodManagementPolicy, spec.VolumeClaimTemplates, spec.PersistentVolumeClaimRetentionPolicy = appsv1.ParallelPodManagement, nil, nil
	if spec.Selector == nil {
		spec.Selector = &metav1.LabelSelector{}
	}
	spec.Selector.MatchLabels = merged(spec.Selector.MatchLabels, map[string]string{
		v1alpha1.LabelSet: set.Name, v1alpha1.LabelVersion: strconv.FormatInt(v.number, 10), v1alpha1.LabelStatefulSet: z.stem(set.Name)})
	spec.Template = buildPod(set, z, v)
	return child
}

// buildPod returns the pod template of a version in a zone.
func buildPod(set *v1alpha1.ExtendedStatefulSet, z zone, v version) corev1.PodTemplateSpec {
	pod := *set.Spec.Template.Spec.Template.DeepCopy()
	pod.Labels = merged(pod.Labels, ownLabels(set.Name, z, v.number))
	extra := map[string]string{}
	if zones := zonesJSON(set); zones != "" {
		extra[v1alpha1.AnnotationZones] = zones
	}
	if handoverOf(set) == v1alpha1.HandoverPerOrdinal {
		extra[v1alpha1.AnnotationHostnames] = v1alpha1.True
	}
	if v.config.hash != "" {
		extra[v1alpha1.AnnotationConfigHash] = v.config.hash
	}
	pod.Annotations = merged(pod.Annotations, extra)
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
	if z.index != noZone {
		keepInZone(&pod.Spec, set.Spec.ZoneNodeLabel, z.name)
	}
	return pod
}

// ownLabels returns the operator's labels for StatefulSets and their pods.
func ownLabels(set string, z zone, number int64) map[string]string {
	labels := map[string]string{
		v1alpha1.LabelSet: set, v1alpha1.LabelVersion: strconv.FormatInt(number, 10),
		v1alpha1.LabelStatefulSet: z.stem(set), v1alpha1.LabelZoneIndex: strconv.Itoa(int(max(0, z.index))),
	}
	if z.index != noZone {
		labels[v1alpha1.LabelZoneName] = z.name
	}
	return labels
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
func environment(set *v1alpha1.ExtendedStatefulSet, z zone) []corev1.EnvVar {
	var env []corev1.EnvVar
	if ptr.Deref(set.Spec.InjectReplicasEnv, true) {
		env = append(env, corev1.EnvVar{Name: v1alpha1.EnvReplicas, Value: strconv.Itoa(int(replicasOf(set)))})
	}
	if z.index == noZone {
		return env
	}
	for _, name := range []string{v1alpha1.EnvKubeAZ, v1alpha1.EnvBoshAZ, v1alpha1.EnvOperatorAZ} {
		env = append(env, corev1.EnvVar{Name: name, Value: z.name})
	}
	return append(env, corev1.EnvVar{Name: v1alpha1.EnvAZIndex, Value: strconv.Itoa(int(z.index) + 1)})
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

// keepInZone adds the zone to every term of the required node affinity. Terms are alternatives, so with
// a separate term pods could match another term and leave the zone.
func keepInZone(pod *corev1.PodSpec, label, name string) {
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

// buildClaim returns the claim of a template for an ordinal. It has no owner, because it belongs to the
// user and is kept when the object is deleted.
func buildClaim(set *v1alpha1.ExtendedStatefulSet, template *corev1.PersistentVolumeClaim, z zone, ordinal int32) *corev1.PersistentVolumeClaim {
	labels := ownLabels(set.Name, z, 0)
	delete(labels, v1alpha1.LabelVersion)
	labels[v1alpha1.LabelPodOrdinal] = strconv.Itoa(int(ordinal))
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: claimName(set.Name, template.Name, z, ordinal), Namespace: set.Namespace,
			Labels: merged(template.Labels, labels), Annotations: maps.Clone(template.Annotations)},
		Spec: *template.Spec.DeepCopy(),
	}
}

// buildTrialPod returns a pod like the StatefulSet controller would create for a StatefulSet, for dry
// runs against quotas and policies. It lacks the operator's label, so the operator's own webhook, which
// assigns claims, ignores it.
func buildTrialPod(child *appsv1.StatefulSet) *corev1.Pod {
	from := child.Spec.Template.DeepCopy()
	pod := &corev1.Pod{ObjectMeta: from.ObjectMeta, Spec: from.Spec}
	pod.Name, pod.Namespace = child.Name+"-0", child.Namespace
	delete(pod.Labels, v1alpha1.LabelSet)
	return pod
}

// buildServices returns the headless Service and the Service of the current version; none if the
// template has no serviceName.
func buildServices(set *v1alpha1.ExtendedStatefulSet, serving map[string]string) []*corev1.Service {
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
		build(activeService(set), serving, false),
	}
}

// buildBudget returns the PodDisruptionBudget of a zone. It selects the serving pods of the zone, and
// sets how many of them must remain. maxUnavailable would count from the replicas of the StatefulSets,
// which are fewer while an ordinal moves. With claims, a pod that is not Ready may always be evicted,
// because its claims are kept (decision 0038).
func buildBudget(set *v1alpha1.ExtendedStatefulSet, z zone, serving map[string]string) *policyv1.PodDisruptionBudget {
	budget := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: z.stem(set.Name), Namespace: set.Namespace, Labels: map[string]string{v1alpha1.LabelSet: set.Name},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(set, v1alpha1.GroupVersion.WithKind(v1alpha1.Kind))}},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: ptr.To(intstr.FromInt32(minAvailableOf(set.Spec.PodDisruptionBudget, replicasOf(set)))),
			Selector:     &metav1.LabelSelector{MatchLabels: merged(serving, map[string]string{v1alpha1.LabelStatefulSet: z.stem(set.Name)})},
		},
	}
	if len(set.Spec.Template.Spec.VolumeClaimTemplates) > 0 { // without claims the data of an evicted pod is lost
		budget.Spec.UnhealthyPodEvictionPolicy = ptr.To(policyv1.AlwaysAllow)
	}
	return budget
}

// minAvailableOf returns minAvailable of a budget as a number.
func minAvailableOf(budget *v1alpha1.DisruptionBudget, replicas int32) int32 {
	if least := budget.MinAvailable; least != nil {
		return partOf(*least, replicas)
	}
	return max(0, replicas-partOf(ptr.Deref(budget.MaxUnavailable, intstr.FromInt32(0)), replicas))
}

// partOf returns a number, or a percentage of whole, rounded up as in a PodDisruptionBudget. Admission
// denies values that cannot be parsed.
func partOf(v intstr.IntOrString, whole int32) int32 {
	n, err := intstr.GetScaledValueFromIntOrPercent(&v, int(whole), true)
	if err != nil {
		return 0
	}
	return int32(min(max(0, n), maxReplicas))
}

// activeService returns the name of the Service that selects the serving pods.
func activeService(set *v1alpha1.ExtendedStatefulSet) string { return set.Name + "-active" }

// servicePorts returns the ports of the containers without duplicates.
func servicePorts(pod *corev1.PodSpec) []corev1.ServicePort {
	var ports []corev1.ServicePort
	type port struct {
		number   int32
		protocol corev1.Protocol
	}
	names, known := map[string]bool{}, map[port]bool{}
	for _, c := range pod.Containers {
		for _, p := range c.Ports {
			protocol := cmp.Or(p.Protocol, corev1.ProtocolTCP)
			if known[port{p.ContainerPort, protocol}] || len(ports) == maxPorts {
				continue
			}
			known[port{p.ContainerPort, protocol}] = true
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

// Name parts of the Jobs of an upgrade.
const (
	preJob    = "pre"
	canaryJob = "canary"
	postJob   = "post"
)

func jobName(set, which string, number int64, attempt int32) string {
	return fmt.Sprintf("%s-%s-v%d-%d", set, which, number, attempt)
}

// buildJob returns a Job of an upgrade. It is created suspended, and is resumed once its UID is in the
// status.
func buildJob(set *v1alpha1.ExtendedStatefulSet, from *v1alpha1.UpdateJob, which string, number int64, attempt int32) *batchv1.Job {
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{
			Name: jobName(set.Name, which, number, attempt), Namespace: set.Namespace,
			Labels:          merged(from.Labels, jobLabels(set, number)),
			Annotations:     maps.Clone(from.Annotations),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(set, v1alpha1.GroupVersion.WithKind(v1alpha1.Kind))},
		},
		Spec: *from.Spec.DeepCopy(),
	}
	job.Spec.Suspend, job.Spec.TTLSecondsAfterFinished = ptr.To(true), nil
	return job
}

// controls reports whether a set is the controller owner of a child.
func controls(set *v1alpha1.ExtendedStatefulSet, child metav1.Object) bool {
	return owned.By(child, set, v1alpha1.GroupVersion.WithKind(v1alpha1.Kind))
}

// jobLabels returns the labels by which the operator finds the Jobs of a version.
func jobLabels(set *v1alpha1.ExtendedStatefulSet, number int64) map[string]string {
	return map[string]string{v1alpha1.LabelSet: set.Name, v1alpha1.LabelVersion: strconv.FormatInt(number, 10)}
}

// merged returns a new map with both; add takes precedence.
func merged(base, add map[string]string) map[string]string {
	all := make(map[string]string, len(base)+len(add))
	maps.Copy(all, base)
	maps.Copy(all, add)
	return all
}
