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

// zone is one of spec.zones with its index, or, without zones, the only one.
type zone struct {
	name  string // "" without zones
	index int32  // noZone without zones
}

// noZone is the index of the only zone without zones.
const noZone = -1

// stem is the name of the zone's StatefulSets without their version.
func (z zone) stem(set string) string {
	if z.index == noZone {
		return set
	}
	return fmt.Sprintf("%s-z%d", set, z.index)
}

func childName(set string, z zone, version int64) string {
	return fmt.Sprintf("%s-v%d", z.stem(set), version)
}

// claimName is the name that the webhook gives a pod too.
func claimName(set, template string, z zone, ordinal int32) string {
	return claim.Name(template, z.stem(set), strconv.Itoa(int(ordinal)))
}

// digestOf tells the contents of versions apart: the template without what is
// changed in place.
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

// replicasOf is how many pods a zone gets. Admission fills absent replicas
// in; this holds for what slipped past. More than there may be are never worked
// through; nothing is done for a set that asks for them.
func replicasOf(set *v1alpha1.ExtendedStatefulSet) int32 {
	return min(max(0, ptr.Deref(set.Spec.Template.Spec.Replicas, smallestLegal(set.Spec.Scaling))), mostReplicas)
}

// handoverOf is how an upgrade that begins now would take over.
func handoverOf(set *v1alpha1.ExtendedStatefulSet) v1alpha1.Handover {
	switch h := set.Spec.UpdateStrategy.Handover; {
	case h == v1alpha1.HandoverCoexist || h == v1alpha1.HandoverPerOrdinal:
		return h
	case len(set.Spec.Template.Spec.VolumeClaimTemplates) > 0:
		return v1alpha1.HandoverPerOrdinal
	}
	return v1alpha1.HandoverCoexist
}

// span is the ordinals that a StatefulSet has: from start, that many.
type span struct{ start, replicas int32 }

// end is the ordinal after the last.
func (s span) end() int32 { return s.start + min(s.replicas, math.MaxInt32-s.start) }

// ordinals are those that are looked at one by one: not more than there may be,
// whatever another client gave a StatefulSet.
func (s span) ordinals() iter.Seq[int32] {
	return func(yield func(int32) bool) {
		for i := range min(s.end()-s.start, mostReplicas) {
			if !yield(s.start + i) {
				return
			}
		}
	}
}

func (s span) has(ordinal int32) bool { return s.start <= ordinal && ordinal < s.end() }

// version is what a StatefulSet is made of beside the spec.
type version struct {
	number   int64
	digest   string
	attempts int32
	config   configStamp
}

// configStamp is what a StatefulSet carries of the ConfigMaps and Secrets that it
// references: a hash, in its pod template, and a record of what the hash stands
// for, on itself. "" is none.
type configStamp struct {
	hash, record string
	// event is the reason of the event that tells of the stamp; "" for none.
	event string
}

// buildChild is the StatefulSet of a version in a zone.
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

// buildPod is the pod template of a version in a zone.
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

// ownLabels are the operator's on StatefulSets and their pods.
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

// zonesJSON is the annotation that lists the zones; "" without zones.
func zonesJSON(set *v1alpha1.ExtendedStatefulSet) string {
	if len(set.Spec.Zones) == 0 {
		return ""
	}
	raw, _ := json.Marshal(set.Spec.Zones) // strings never fail
	return string(raw)
}

// environment is what every container gets.
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

// withEnv puts variables in front, so that the user's can refer to them, and in
// the place of the user's of the same name.
func withEnv(have, add []corev1.EnvVar) []corev1.EnvVar {
	all := slices.Clone(add)
	for _, e := range have {
		if !slices.ContainsFunc(add, func(a corev1.EnvVar) bool { return a.Name == e.Name }) {
			all = append(all, e)
		}
	}
	return all
}

// keepInZone adds the zone to every term of the required node affinity. Terms
// are alternatives: one of its own would let pods leave the zone by another.
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

// buildClaim is the claim of a template for an ordinal. It has no owner: it is
// the user's, and outlives the object.
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

// buildTrialPod is what the StatefulSet controller would make of a StatefulSet, as far
// as quotas, policies and the like look at it. Without our label our own webhook leaves
// it alone, which gives out claims.
func buildTrialPod(child *appsv1.StatefulSet) *corev1.Pod {
	from := child.Spec.Template.DeepCopy()
	pod := &corev1.Pod{ObjectMeta: from.ObjectMeta, Spec: from.Spec}
	pod.Name, pod.Namespace = child.Name+"-0", child.Namespace
	delete(pod.Labels, v1alpha1.LabelSet)
	return pod
}

// buildServices are the headless Service and the one of the version that serves;
// none if the template names no Service.
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

// buildBudget is the PodDisruptionBudget of a zone. Of the pods of the zone it selects those
// that serve, and it says how many of them an eviction must leave: maxUnavailable would
// count from what the StatefulSets are to have, and while an ordinal moves that is less. A pod
// that is not Ready may always be evicted if it has claims, since they stay (decision 0038).
func buildBudget(set *v1alpha1.ExtendedStatefulSet, z zone, serving map[string]string) *policyv1.PodDisruptionBudget {
	budget := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: z.stem(set.Name), Namespace: set.Namespace, Labels: map[string]string{v1alpha1.LabelSet: set.Name},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(set, v1alpha1.GroupVersion.WithKind(v1alpha1.Kind))}},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: ptr.To(intstr.FromInt32(leastAvailable(set.Spec.PodDisruptionBudget, replicasOf(set)))),
			Selector:     &metav1.LabelSelector{MatchLabels: merged(serving, map[string]string{v1alpha1.LabelStatefulSet: z.stem(set.Name)})},
		},
	}
	if len(set.Spec.Template.Spec.VolumeClaimTemplates) > 0 { // else the data of a pod goes with it
		budget.Spec.UnhealthyPodEvictionPolicy = ptr.To(policyv1.AlwaysAllow)
	}
	return budget
}

// leastAvailable is how many of so many pods a budget keeps.
func leastAvailable(budget *v1alpha1.DisruptionBudget, replicas int32) int32 {
	if least := budget.MinAvailable; least != nil {
		return partOf(*least, replicas)
	}
	return max(0, replicas-partOf(ptr.Deref(budget.MaxUnavailable, intstr.FromInt32(0)), replicas))
}

// partOf is a number, or that part of a whole, rounded up as in a PodDisruptionBudget. What
// cannot be read, admission refuses.
func partOf(v intstr.IntOrString, whole int32) int32 {
	n, err := intstr.GetScaledValueFromIntOrPercent(&v, int(whole), true)
	if err != nil {
		return 0
	}
	return int32(min(max(0, n), mostReplicas))
}

// activeService is the name of the Service that selects what serves.
func activeService(set *v1alpha1.ExtendedStatefulSet) string { return set.Name + "-active" }

// servicePorts are the ports of the containers, each once.
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
			if known[port{p.ContainerPort, protocol}] || len(ports) == mostPorts {
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

// The jobs of an upgrade, as they are named.
const (
	preJob    = "pre"
	canaryJob = "canary"
	postJob   = "post"
)

func jobName(set, which string, number int64, attempt int32) string {
	return fmt.Sprintf("%s-%s-v%d-%d", set, which, number, attempt)
}

// buildJob is a job of an upgrade. It is made suspended, and let go once its UID
// is in the status.
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

// controls reports whether a set controls a child.
func controls(set *v1alpha1.ExtendedStatefulSet, child metav1.Object) bool {
	return owned.By(child, set, v1alpha1.GroupVersion.WithKind(v1alpha1.Kind))
}

// jobLabels returns the labels by which the operator finds the jobs of a version.
func jobLabels(set *v1alpha1.ExtendedStatefulSet, number int64) map[string]string {
	return map[string]string{v1alpha1.LabelSet: set.Name, v1alpha1.LabelVersion: strconv.FormatInt(number, 10)}
}

// merged is a new map with both; add wins.
func merged(base, add map[string]string) map[string]string {
	all := make(map[string]string, len(base)+len(add))
	maps.Copy(all, base)
	maps.Copy(all, add)
	return all
}
