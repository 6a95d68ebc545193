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

// Everything here is built from an object with its defaults (withDefaults) that
// validate finds no fault with.

// Names of the children.

func statefulSetName(set *v1alpha1.ReplicatedStatefulSet) string { return "rss-" + set.Name }

func serviceName(set *v1alpha1.ReplicatedStatefulSet) string { return set.Name + "-svc" }

func primaryServiceName(set *v1alpha1.ReplicatedStatefulSet) string { return set.Name + "-primary" }

func activeServiceName(set *v1alpha1.ReplicatedStatefulSet) string { return set.Name + "-active" }

// memberName is the name of the pod of that ordinal.
func memberName(set *v1alpha1.ReplicatedStatefulSet, ordinal int) string {
	return statefulSetName(set) + "-" + strconv.Itoa(ordinal)
}

// ordinalOf is the ordinal in the name of a pod; false for a name that no pod of
// the set can have.
func ordinalOf(set *v1alpha1.ReplicatedStatefulSet, pod string) (int, bool) {
	digits, ok := strings.CutPrefix(pod, statefulSetName(set)+"-")
	ordinal, err := strconv.Atoi(digits)
	if !ok || err != nil || ordinal < 0 || memberName(set, ordinal) != pod {
		return 0, false
	}
	return ordinal, true
}

// primariesWanted is how many members should be primary.
func primariesWanted(set *v1alpha1.ReplicatedStatefulSet) int32 {
	return min(ptr.Deref(set.Spec.Primaries, *set.Spec.Replicas), *set.Spec.Replicas)
}

// exclusive reports whether two running copies of one member could do harm: two
// primaries, or two programs on one claim. Pods then have a finalizer, which the
// StatefulSet's controller copies from the template, so that a pod is not gone,
// and no other of its name is made, before the kubelet has seen its containers
// stopped.
func exclusive(set *v1alpha1.ReplicatedStatefulSet) bool {
	return primariesWanted(set) <= 1 || primariesWanted(set) < *set.Spec.Replicas || len(set.Spec.Pod.VolumeClaimTemplates) > 0
}

// buildStatefulSet builds the StatefulSet with that many replicas, which are
// fewer or more than the spec's while members come or go in order.
//
// OnDelete: the operator says which pod is recreated, and when. Parallel: a
// member that does not come up holds up no other.
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
			RevisionHistoryLimit:                 ptr.To(int32(2)), // there is no rollback by them
			PersistentVolumeClaimRetentionPolicy: retention(appsv1.RetainPersistentVolumeClaimRetentionPolicyType),
		},
	}
}

// retention is what the StatefulSet does with the claims of members that it takes away. It
// never deletes any with itself: a person may delete it alone, and it is made again.
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

// hashes are those of what pods are recreated for beside the spec; "" where there is none.
type hashes struct {
	rules  string // of the ConfigMaps of spec.ruleSelector
	config string // of what spec.updateOnEnvChange follows
}

// buildTemplate builds the pod of every member: what the user says, and what
// inject.go puts into it.
func buildTemplate(set *v1alpha1.ReplicatedStatefulSet, of hashes) corev1.PodTemplateSpec {
	whole, pod, _ := withTemplate(set) // validate finds what is wrong with it
	spec := whole.Spec.DeepCopy()
	pod.InitContainers = spec.Pod.InitContainers
	pod.Containers = spec.Pod.Containers
	pod.Volumes = slices.Concat(spec.Pod.Volumes, ownVolumes(spec))
	pod.TerminationGracePeriodSeconds = spec.Pod.TerminationGracePeriodSeconds
	pod.SecurityContext = spec.Pod.SecurityContext
	pod.AutomountServiceAccountToken = spec.Pod.AutomountServiceAccountToken
	pod.ServiceAccountName = spec.ServiceAccountName
	pod.ImagePullSecrets = spec.ImagePullSecrets
	pod.NodeSelector = merged(spec.NodeSelector, spec.Pod.NodeSelector)
	pod.Tolerations = spec.Tolerations
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

// templateHash is over what a pod must be recreated for. What the tools of users
// write on the object itself (a chart's version, who applied it) reaches pods
// when they are made, and restarts none; nor does the finalizer, which can be put
// on pods that run.
func templateHash(set *v1alpha1.ReplicatedStatefulSet, spec *corev1.PodSpec, of hashes) string {
	all := map[string]any{
		"spec": spec, "labels": set.Spec.Pod.Labels, "annotations": set.Spec.Pod.Annotations, "rules": of.rules,
		"commands in": commandsIn(&set.Spec.Pod)}
	if of.config != "" { // pods without one are older than the field
		all["config"] = of.config
	}
	text, err := json.Marshal(all)
	if err != nil { // a spec that was read from JSON can be written as JSON
		panic(fmt.Sprintf("hashing the template of %s: %v", set.Name, err))
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}

// templateLabels say that nothing runs in a new pod, until the operator has seen
// otherwise.
func templateLabels(set *v1alpha1.ReplicatedStatefulSet) map[string]string {
	labels := merged(set.Labels, set.Spec.Pod.Labels, ownLabels(set))
	labels[v1alpha1.LabelActive] = v1alpha1.False
	labels[v1alpha1.LabelRole] = v1alpha1.RoleNone
	return labels
}

// templateAnnotations leave out those that speak of the object: what kubectl
// applied last, and what the operator is asked to do once.
func templateAnnotations(set *v1alpha1.ReplicatedStatefulSet) map[string]string {
	annotations := merged(set.Annotations)
	maps.DeleteFunc(annotations, func(key, _ string) bool {
		return strings.HasPrefix(key, "kubectl.kubernetes.io/") || strings.HasPrefix(key, v1alpha1.Prefix)
	})
	return merged(annotations, set.Spec.Pod.Annotations)
}

// merged puts maps together; of values for one key the last wins.
func merged(all ...map[string]string) map[string]string {
	result := map[string]string{}
	for _, one := range all {
		maps.Copy(result, one)
	}
	return result
}

// secondaryServiceName is the name of the Service of the secondaries.
func secondaryServiceName(set *v1alpha1.ReplicatedStatefulSet) string { return set.Name + "-secondary" }

// hasSecondaries reports whether a member of the set can be a secondary. A stopped set keeps
// what it had.
func hasSecondaries(set *v1alpha1.ReplicatedStatefulSet) bool {
	_, follow := set.Spec.Pod.Commands[v1alpha1.CommandSecondary]
	return follow && primariesWanted(set) < cmp.Or(*set.Spec.Replicas, set.Status.RestoreReplicas)
}

// buildServices builds the Services of all members, of the primaries, of those that run, and
// of the secondaries where there can be any. The first one's names are what commands are
// given, so it has members that are not Ready too.
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
				v1alpha1.LabelApp:  set.Name,
				v1alpha1.LabelRole: v1alpha1.RolePrimary,
			},
		),
		buildService(
			set,
			activeServiceName(set),
			map[string]string{v1alpha1.LabelApp: set.Name, v1alpha1.LabelActive: v1alpha1.True},
		),
	}
	if hasSecondaries(set) {
		services = append(services, buildService(
			set,
			secondaryServiceName(set),
			map[string]string{v1alpha1.LabelApp: set.Name, v1alpha1.LabelRole: v1alpha1.RoleSecondary},
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

// portsOf has what the API server would add, so that nothing differs from what it
// stores: a difference that a patch cannot end is one for ever.
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

// budgetName is the name of the budget of all members, or of those that are no primary.
func budgetName(set *v1alpha1.ReplicatedStatefulSet) string { return statefulSetName(set) }

// primaryBudgetName is the name of the budget of the primaries. No set has a dot in its name,
// so that no other's budget has this one.
func primaryBudgetName(set *v1alpha1.ReplicatedStatefulSet) string {
	return statefulSetName(set) + "." + v1alpha1.RolePrimary
}

// handsOver reports whether the primaries of a set are kept from eviction until another
// member has their role. Where none follows them, none can take it. A stopped set is what it
// was, and is to be again.
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

// buildBudget lets one member at a time be evicted, or as many as the set says.
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

// buildFollowersBudget keeps so many of the members available that are no primary. An evicted
// pod may be in one budget only, so the primaries are not in this one. A pod that is not Ready
// may always be evicted, since its claims stay (decision 0038).
func buildFollowersBudget(set *v1alpha1.ReplicatedStatefulSet, least int32) *policyv1.PodDisruptionBudget {
	budget := buildRoleBudget(set, budgetName(set), metav1.LabelSelectorOpNotIn, least)
	if len(set.Spec.Pod.VolumeClaimTemplates) > 0 { // else the data of a pod goes with it
		budget.Spec.UnhealthyPodEvictionPolicy = ptr.To(policyv1.AlwaysAllow)
	}
	return budget
}

// buildPrimaryBudget keeps so many of the primaries available. By a number of those that may
// be unavailable it would count all members.
func buildPrimaryBudget(set *v1alpha1.ReplicatedStatefulSet, least int32) *policyv1.PodDisruptionBudget {
	return buildRoleBudget(set, primaryBudgetName(set), metav1.LabelSelectorOpIn, least)
}

// buildRoleBudget keeps so many available of the members that are among the primaries, or
// are not.
func buildRoleBudget(set *v1alpha1.ReplicatedStatefulSet, name string, among metav1.LabelSelectorOperator, least int32) *policyv1.PodDisruptionBudget {
	budget := newBudget(set, name)
	budget.Spec.MinAvailable = ptr.To(intstr.FromInt32(least))
	budget.Spec.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{{
		Key: v1alpha1.LabelRole, Operator: among, Values: []string{v1alpha1.RolePrimary},
	}}
	return budget
}

// buildPod is a pod as the controller of a StatefulSet makes it.
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

// childMeta is what all children have: labels to find them by, and an owner with
// which they go.
func childMeta(set *v1alpha1.ReplicatedStatefulSet, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name: name, Namespace: set.Namespace, Labels: ownLabels(set),
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(
			set,
			v1alpha1.GroupVersion.WithKind("ReplicatedStatefulSet"),
		)},
	}
}

// ownLabels are on all children, and select the pods.
func ownLabels(set *v1alpha1.ReplicatedStatefulSet) map[string]string {
	return map[string]string{v1alpha1.LabelApp: set.Name, v1alpha1.LabelManaged: v1alpha1.True}
}

// Trial is members of a set without the set: its pods come up idle, and nothing
// starts anything in them. `make check-commands` tries the commands there.
type Trial struct {
	// Services are the headless one, that of the primaries, and that of all in
	// which the application runs; the last two go by the labels of the pods.
	Services    []*corev1.Service
	StatefulSet *appsv1.StatefulSet
	// Container is the name of the one in which commands run.
	Container string
	// Timeouts are those of the commands, by name.
	Timeouts map[string]time.Duration
}

// NewTrial builds that many members. It fails where the operator would not serve
// it.
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
	t.StatefulSet.Spec.Template.Finalizers = nil // nothing would take them off
	for name, command := range set.Spec.Pod.Commands {
		t.Timeouts[name] = timeoutOf(command)
	}
	return t, nil
}
