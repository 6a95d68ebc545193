package replicatedstatefulset

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
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
)

// All builders take a valid object with defaults (see withDefaults and validate).

func statefulSetName(set *v1alpha1.ReplicatedStatefulSet) string { return "rss-" + set.Name }

func serviceName(set *v1alpha1.ReplicatedStatefulSet) string { return set.Name + "-svc" }

func primaryServiceName(set *v1alpha1.ReplicatedStatefulSet) string { return set.Name + "-primary" }

func activeServiceName(set *v1alpha1.ReplicatedStatefulSet) string { return set.Name + "-active" }

// memberName returns the name of the pod with the ordinal.
func memberName(set *v1alpha1.ReplicatedStatefulSet, ordinal int) string {
	return statefulSetName(set) + "-" + strconv.Itoa(ordinal)
}

// ordinalOf returns the ordinal in the name of a pod. It returns false for a name that no pod of
// the set can have.
func ordinalOf(set *v1alpha1.ReplicatedStatefulSet, pod string) (int, bool) {
	digits, ok := strings.CutPrefix(pod, statefulSetName(set)+"-")
	ordinal, err := strconv.Atoi(digits)
	if !ok || err != nil || ordinal < 0 || memberName(set, ordinal) != pod {
		return 0, false
	}
	return ordinal, true
}

// primariesWanted returns how many members should be primary.
func primariesWanted(set *v1alpha1.ReplicatedStatefulSet) int32 {
	return min(ptr.Deref(set.Spec.Primaries, *set.Spec.Replicas), *set.Spec.Replicas)
}

// exclusive reports whether two running copies of one member could do harm: two primaries, or two
// programs on one claim. Then pods have a finalizer, which the StatefulSet controller copies from
// the template. So a pod is not gone, and not replaced under its name, before the kubelet has
// reported its containers as stopped.
func exclusive(set *v1alpha1.ReplicatedStatefulSet) bool {
	return primariesWanted(set) <= 1 || primariesWanted(set) < *set.Spec.Replicas || len(set.Spec.Pod.VolumeClaimTemplates) > 0
}

// buildStatefulSet builds the StatefulSet with the number of replicas, which differs from the spec
// while members are added or removed in order.
//
// With OnDelete, the operator determines which pod is recreated, and when. With Parallel, a member
// that does not come up does not block others.
func buildStatefulSet(set *v1alpha1.ReplicatedStatefulSet, replicas int32, of hashes) *appsv1.StatefulSet {
	return &appsv1.StatefulSet{
		ObjectMeta: childMeta(set, statefulSetName(set)),
		Spec: appsv1.StatefulSetSpec{
			Replicas:                             &replicas,
			Selector:                             &metav1.LabelSelector{MatchLabels: ownLabels(set)},
			Template:                             buildTemplate(set, of),
			VolumeClaimTemplates:                 buildClaimTemplates(set),
			ServiceName:                          serviceName(set),
			PodManagementPolicy:                  appsv1.ParallelPodManagement,
			UpdateStrategy:                       appsv1.StatefulSetUpdateStrategy{Type: appsv1.OnDeleteStatefulSetStrategyType},
			RevisionHistoryLimit:                 ptr.To(int32(2)), // they are not used for rollbacks
			PersistentVolumeClaimRetentionPolicy: retention(appsv1.RetainPersistentVolumeClaimRetentionPolicyType),
		},
	}
}

// retention returns a claim retention policy. WhenDeleted is always Retain, because a user may
// delete only the StatefulSet, and it is then recreated.
func retention(whenScaled appsv1.PersistentVolumeClaimRetentionPolicyType) *appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy {
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

// hashes are the hashes outside the spec that pods are recreated for. They are "" if there is none.
type hashes struct {
	rules  string // of the ConfigMaps of spec.ruleSelector
	config string // of what spec.updateOnEnvChange follows
}

// buildTemplate builds the pod template of all members: the user's fields and the additions in
// inject.go.
func buildTemplate(set *v1alpha1.ReplicatedStatefulSet, of hashes) corev1.PodTemplateSpec {
	whole, pod, _ := withTemplate(set) // validate returns its errors
	setSpec := whole.Spec.DeepCopy()
	pod.InitContainers = setSpec.Pod.InitContainers
	pod.Containers = setSpec.Pod.Containers
	pod.Volumes = slices.Concat(setSpec.Pod.Volumes, ownVolumes(setSpec))
	pod.TerminationGracePeriodSeconds = setSpec.Pod.TerminationGracePeriodSeconds
	pod.SecurityContext = setSpec.Pod.SecurityContext
	pod.AutomountServiceAccountToken = setSpec.Pod.AutomountServiceAccountToken
	pod.ServiceAccountName = setSpec.ServiceAccountName
	pod.ImagePullSecrets = setSpec.ImagePullSecrets
	pod.NodeSelector = merged(setSpec.NodeSelector, setSpec.Pod.NodeSelector)
	pod.Tolerations = setSpec.Tolerations
	pod.Affinity = affinity(whole)
	injectContainers(whole, &pod)
	template := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{
			Labels:      templateLabels(whole),
			Annotations: templateAnnotations(whole),
		},
		Spec: pod,
	}
	if of.rules != "" {
		template.Annotations[v1alpha1.AnnotationRules] = of.rules
	}
	if of.config != "" {
		template.Annotations[v1alpha1.AnnotationConfigHash] = of.config
	}
	template.Annotations[v1alpha1.AnnotationContainer] = commandsIn(&set.Spec.Pod)
	template.Annotations[v1alpha1.AnnotationTemplate] = templateHash(whole, &template.Spec, of)
	if exclusive(set) {
		template.Finalizers = []string{v1alpha1.FinalizerMember}
	}
	return template
}

// templateHash returns the hash of everything that a pod must be recreated for. Metadata that tools
// write on the object itself (a chart's version, the applying manager) reaches pods when they are
// created, but restarts none. Neither does the finalizer, which can be added to running pods.
func templateHash(set *v1alpha1.ReplicatedStatefulSet, podSpec *corev1.PodSpec, of hashes) string {
	all := map[string]any{
		"spec": podSpec, "labels": set.Spec.Pod.Labels, "annotations": set.Spec.Pod.Annotations, "rules": of.rules,
		"commands in": commandsIn(&set.Spec.Pod)}
	if of.config != "" { // pods without one are older than the field
		all["config"] = of.config
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
	labels := merged(set.Labels, set.Spec.Pod.Labels, ownLabels(set))
	labels[v1alpha1.LabelActive] = v1alpha1.False
	labels[v1alpha1.LabelRole] = v1alpha1.RoleNone
	return labels
}

// templateAnnotations returns the annotations of pods. It omits annotations that apply to the
// object only: the last applied configuration, and one-time orders.
func templateAnnotations(set *v1alpha1.ReplicatedStatefulSet) map[string]string {
	annotations := merged(set.Annotations)
	maps.DeleteFunc(annotations, func(key, _ string) bool {
		return strings.HasPrefix(key, "kubectl.kubernetes.io/") || strings.HasPrefix(key, v1alpha1.Prefix)
	})
	return merged(annotations, set.Spec.Pod.Annotations)
}

// merged merges maps. For equal keys the last map wins.
func merged(all ...map[string]string) map[string]string {
	result := map[string]string{}
	for _, one := range all {
		maps.Copy(result, one)
	}
	return result
}

// secondaryServiceName returns the name of the Service of the secondaries.
func secondaryServiceName(set *v1alpha1.ReplicatedStatefulSet) string { return set.Name + "-secondary" }

// hasSecondaries reports whether a member of the set can be a secondary. A stopped set uses its
// former number of members.
func hasSecondaries(set *v1alpha1.ReplicatedStatefulSet) bool {
	_, follow := set.Spec.Pod.Commands[v1alpha1.CommandSecondary]
	return follow && primariesWanted(set) < cmp.Or(*set.Spec.Replicas, set.Status.RestoreReplicas)
}

// buildServices builds the Services of all members, of the primaries, of the running members, and
// of the secondaries if there can be any. The first one includes unready members, because its DNS
// names are passed to commands.
func buildServices(set *v1alpha1.ReplicatedStatefulSet) []*corev1.Service {
	all := buildService(set, serviceName(set), ownLabels(set))
	all.Spec.ClusterIP = corev1.ClusterIPNone
	all.Spec.PublishNotReadyAddresses = true
	services := []*corev1.Service{
		all,
		buildService(
			set,
			primaryServiceName(set),
			map[string]string{
				v1alpha1.LabelApp:     set.Name,
				v1alpha1.LabelManaged: v1alpha1.True,
				v1alpha1.LabelRole:    v1alpha1.RolePrimary,
			},
		),
		buildService(
			set,
			activeServiceName(set),
			map[string]string{v1alpha1.LabelApp: set.Name, v1alpha1.LabelManaged: v1alpha1.True, v1alpha1.LabelActive: v1alpha1.True},
		),
	}
	if hasSecondaries(set) {
		services = append(services, buildService(
			set,
			secondaryServiceName(set),
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
			Ports:    portsOf(set),
		},
	}
}

// portsOf returns the ports with the defaults that the API server would set. Otherwise they would
// always differ from the stored ones, and each pass would send a patch.
func portsOf(set *v1alpha1.ReplicatedStatefulSet) []corev1.ServicePort {
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

// budgetName returns the name of the budget of all members, or of those that are not primary.
func budgetName(set *v1alpha1.ReplicatedStatefulSet) string { return statefulSetName(set) }

// primaryBudgetName returns the name of the budget of the primaries. Names of sets contain no dot,
// so no other budget can have this name.
func primaryBudgetName(set *v1alpha1.ReplicatedStatefulSet) string {
	return statefulSetName(set) + "." + v1alpha1.RolePrimary
}

// handsOver reports whether primaries are protected from eviction until another member has their
// role. Without followers, no member can take it. A stopped set uses its former number of members.
func handsOver(set *v1alpha1.ReplicatedStatefulSet) bool {
	if set.Spec.EvictionPolicy == v1alpha1.EvictionAllow || set.Spec.Primaries == nil {
		return false
	}
	if _, follow := set.Spec.Pod.Commands[v1alpha1.CommandSecondary]; !follow {
		return false
	}
	return *set.Spec.Primaries < cmp.Or(*set.Spec.Replicas, set.Status.RestoreReplicas)
}

// hasBudgets reports whether a set has budgets at all.
func hasBudgets(set *v1alpha1.ReplicatedStatefulSet) bool {
	return set.Spec.PodDisruptionBudget == nil || !set.Spec.PodDisruptionBudget.Disabled
}

// buildBudget builds a budget that allows the eviction of one member at a time, or as many as the
// set specifies.
func buildBudget(set *v1alpha1.ReplicatedStatefulSet) *policyv1.PodDisruptionBudget {
	budget := newBudget(set, budgetName(set))
	budget.Spec.UnhealthyPodEvictionPolicy = ptr.To(policyv1.IfHealthyBudget) // a primary may be among them
	said := ptr.Deref(set.Spec.PodDisruptionBudget, v1alpha1.BudgetPolicy{})
	if said.MinAvailable != nil {
		budget.Spec.MinAvailable = ptr.To(intstr.FromInt32(*said.MinAvailable))
	} else {
		budget.Spec.MaxUnavailable = ptr.To(intstr.FromInt32(ptr.Deref(said.MaxUnavailable, 1)))
	}
	return budget
}

// buildFollowersBudget builds the budget that keeps at least that many of the members that are not
// primary available. A pod with two budgets cannot be evicted, so this budget excludes the
// primaries. A pod that is not Ready may always be evicted if its claims stay (decision 0038).
func buildFollowersBudget(set *v1alpha1.ReplicatedStatefulSet, least int32) *policyv1.PodDisruptionBudget {
	budget := buildRoleBudget(set, budgetName(set), metav1.LabelSelectorOpNotIn, least)
	if len(set.Spec.Pod.VolumeClaimTemplates) > 0 { // otherwise the data is deleted with the pod
		budget.Spec.UnhealthyPodEvictionPolicy = ptr.To(policyv1.AlwaysAllow)
	}
	return budget
}

// buildPrimaryBudget builds the budget that keeps at least that many primaries available. It cannot
// use maxUnavailable, which would count all members.
func buildPrimaryBudget(set *v1alpha1.ReplicatedStatefulSet, least int32) *policyv1.PodDisruptionBudget {
	return buildRoleBudget(set, primaryBudgetName(set), metav1.LabelSelectorOpIn, least)
}

// buildRoleBudget builds a budget that keeps at least that many of the selected members available:
// the primaries, or all others.
func buildRoleBudget(set *v1alpha1.ReplicatedStatefulSet, name string, among metav1.LabelSelectorOperator, least int32) *policyv1.PodDisruptionBudget {
	budget := newBudget(set, name)
	budget.Spec.MinAvailable = ptr.To(intstr.FromInt32(least))
	budget.Spec.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{{
		Key: v1alpha1.LabelRole, Operator: among, Values: []string{v1alpha1.RolePrimary},
	}}
	return budget
}

// buildPod builds a pod as the StatefulSet controller creates it.
func buildPod(stateful *appsv1.StatefulSet, ordinal int) *corev1.Pod {
	template := stateful.Spec.Template.DeepCopy()
	pod := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
	pod.Name, pod.Namespace = fmt.Sprintf("%s-%d", stateful.Name, ordinal), stateful.Namespace
	pod.Labels = merged(pod.Labels, map[string]string{
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

func newBudget(set *v1alpha1.ReplicatedStatefulSet, name string) *policyv1.PodDisruptionBudget {
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: childMeta(set, name),
		Spec:       policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: ownLabels(set)}},
	}
}

// childMeta returns the common metadata of children: the labels that select them, and the owner
// with which they are garbage collected.
func childMeta(set *v1alpha1.ReplicatedStatefulSet, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name: name, Namespace: set.Namespace, Labels: ownLabels(set),
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(
			set,
			v1alpha1.GroupVersion.WithKind("ReplicatedStatefulSet"),
		)},
	}
}

// ownLabels returns the labels of all children, which also select the pods.
func ownLabels(set *v1alpha1.ReplicatedStatefulSet) map[string]string {
	return map[string]string{v1alpha1.LabelApp: set.Name, v1alpha1.LabelManaged: v1alpha1.True}
}

// Trial contains members of a set without the set. Its pods come up idle, and the operator runs no
// command in them. `make check-commands` tests the commands there.
type Trial struct {
	// Services are the headless one, and those of the primaries and of the active members. The last
	// two select pods by labels.
	Services    []*corev1.Service
	StatefulSet *appsv1.StatefulSet
	// Container is the name of the container in which commands run.
	Container string
	// Timeouts are the timeouts of the commands, by name.
	Timeouts map[string]time.Duration
}

// NewTrial builds that many members. It returns an error if the operator would not serve the set.
func NewTrial(set *v1alpha1.ReplicatedStatefulSet, members int32) (Trial, error) {
	set = withDefaults(set)
	if errs := validate(set); len(errs) > 0 {
		return Trial{}, errs.ToAggregate()
	}
	t := Trial{Services: buildServices(set), StatefulSet: buildStatefulSet(set, members, hashes{}),
		Container: set.Spec.Pod.Containers[commandContainer(&set.Spec.Pod)].Name, Timeouts: map[string]time.Duration{}}
	t.StatefulSet.OwnerReferences = nil
	for _, service := range t.Services {
		service.OwnerReferences = nil
	}
	t.StatefulSet.Spec.Template.Finalizers = nil // no controller would remove them
	for name, command := range set.Spec.Pod.Commands {
		t.Timeouts[name] = timeoutOf(command)
	}
	return t, nil
}
