package simulate

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/observe"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/spec"
)

// Simplified controllers of Deployments and ReplicaSets: they create, delete and wait for pods in the same
// order as the real ones. The names of ReplicaSets and pods are shorter.

// ownedBy returns the reference to a controller.
func ownedBy(kind string, owner metav1.Object) []metav1.OwnerReference {
	return []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: kind, Name: owner.GetName(), UID: owner.GetUID(), Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true)}}
}

// OwnerMoves returns the moves of the controllers of Deployments, ReplicaSets and StatefulSets.
func (s *Simulation) OwnerMoves() (moves []Move) {
	for _, d := range Every[appsv1.Deployment](s.Cluster) {
		if s.isForeign(d.UID, d.Spec.Template.Labels) || d.DeletionTimestamp != nil || d.Spec.Paused {
			continue
		}
		if do := s.rollOut(d); do != nil {
			moves = append(moves, Move{"roll" + d.Name, do})
		}
	}
	for _, set := range Every[appsv1.ReplicaSet](s.Cluster) {
		if s.isForeign(set.UID, set.Spec.Template.Labels) || set.DeletionTimestamp != nil {
			continue
		}
		if do := s.replicate(set); do != nil {
			moves = append(moves, Move{replicateKey + set.Name, do})
		}
	}
	for _, set := range s.statefulSets() {
		for _, m := range s.sets.Moves(set) {
			moves = append(moves, Move(m))
		}
	}
	return moves
}

// replicas returns the wanted number of pods of a ReplicaSet.
func replicas(set *appsv1.ReplicaSet) int32 { return ptr.Deref(set.Spec.Replicas, 1) }

// isOf reports whether a ReplicaSet has the template of a Deployment.
func isOf(set *appsv1.ReplicaSet, template *corev1.PodTemplateSpec) bool {
	have := set.Spec.Template.DeepCopy()
	delete(have.Labels, appsv1.DefaultDeploymentUniqueLabelKey)
	return apiequality.Semantic.DeepEqual(have, template)
}

// setsOf returns the ReplicaSet with the template of a Deployment, or nil, and the other ones.
func (s *Simulation) setsOf(d *appsv1.Deployment) (current *appsv1.ReplicaSet, old []*appsv1.ReplicaSet) {
	for _, set := range Every[appsv1.ReplicaSet](s.Cluster) {
		switch {
		case !metav1.IsControlledBy(set, d) || set.DeletionTimestamp != nil:
		case current == nil && isOf(set, &d.Spec.Template):
			current = set
		default:
			old = append(old, set)
		}
	}
	return current, old
}

// rollOut returns the next step of the deployment controller.
func (s *Simulation) rollOut(d *appsv1.Deployment) func() {
	current, old := s.setsOf(d)
	newest := int64(0)
	for _, set := range old {
		newest = max(newest, observe.RevisionOf(set))
	}
	switch {
	case current == nil:
		return func() { s.createSet(d, old, newest+1) }
	case observe.RevisionOf(current) < newest:
		return s.number(current, newest+1)
	case observe.RevisionOf(d) != observe.RevisionOf(current):
		return s.number(d, observe.RevisionOf(current))
	case s.wantNew(d, current, old) != replicas(current):
		return s.scale(current, s.wantNew(d, current, old))
	}
	if len(old) == 0 {
		return nil
	}
	return s.scaleDown(d, current, old)
}

// createSet creates the ReplicaSet with the template of a Deployment.
func (s *Simulation) createSet(d *appsv1.Deployment, old []*appsv1.ReplicaSet, revision int64) {
	name, _ := s.freeName("ReplicaSet", len(old)+1, func(n int) string { return fmt.Sprintf("%s-%d", d.Name, n) })
	set := &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: d.Namespace, OwnerReferences: ownedBy("Deployment", d),
			Annotations: map[string]string{observe.RevisionAnnotation: strconv.FormatInt(revision, 10)}},
		Spec: appsv1.ReplicaSetSpec{Replicas: ptr.To(s.wantNew(d, nil, old)), Template: *d.Spec.Template.DeepCopy(), Selector: d.Spec.Selector.DeepCopy()}}
	set.Spec.Template.Labels = withHash(set.Spec.Template.Labels, name)
	set.Labels = maps.Clone(set.Spec.Template.Labels)
	if set.Spec.Selector != nil {
		set.Spec.Selector.MatchLabels = withHash(set.Spec.Selector.MatchLabels, name)
	}
	s.Put(set)
}

// withHash adds the label by which a Deployment distinguishes the pods of its ReplicaSets.
func withHash(labels map[string]string, hash string) map[string]string {
	labels = maps.Clone(labels)
	if labels == nil {
		labels = map[string]string{}
	}
	labels[appsv1.DefaultDeploymentUniqueLabelKey] = hash
	return labels
}

// number sets the revision of a Deployment or ReplicaSet.
func (s *Simulation) number(obj facts.Object, revision int64) func() {
	return func() {
		next := obj.DeepCopyObject().(client.Object)
		annotations := maps.Clone(next.GetAnnotations())
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[observe.RevisionAnnotation] = strconv.FormatInt(revision, 10)
		next.SetAnnotations(annotations)
		s.Put(next)
	}
}

// scale scales a ReplicaSet.
func (s *Simulation) scale(set *appsv1.ReplicaSet, replicas int32) func() {
	return func() {
		s.Say("    %s is scaled to %d", set.Name, replicas)
		Edit(s.Cluster, set, func(set *appsv1.ReplicaSet) { set.Spec.Replicas = &replicas })
	}
}

// wantNew returns how many pods the newest ReplicaSet may have now.
func (s *Simulation) wantNew(d *appsv1.Deployment, current *appsv1.ReplicaSet, old []*appsv1.ReplicaSet) int32 {
	want, recreates := ptr.Deref(d.Spec.Replicas, 1), d.Spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType
	var have, total int32
	if current != nil {
		have = replicas(current)
	}
	total = have
	for _, set := range old {
		total += replicas(set)
		if recreates && slices.ContainsFunc(s.podsOf(set), func(p *corev1.Pod) bool { return !podstate.Ended(p) }) {
			return have
		}
	}
	if have > want || recreates {
		return want
	}
	return min(want, have+max(want+maxSurge(d)-total, 0))
}

// scaleDown deletes old pods: first those that are not Ready, then others as long as enough
// are Ready.
func (s *Simulation) scaleDown(d *appsv1.Deployment, current *appsv1.ReplicaSet, old []*appsv1.ReplicaSet) func() {
	if d.Spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType {
		for _, set := range old {
			if replicas(set) > 0 {
				return s.scale(set, 0)
			}
		}
		return nil
	}
	total, available := replicas(current), s.ready(current)
	for _, set := range old {
		total, available = total+replicas(set), available+s.ready(set)
	}
	least := ptr.Deref(d.Spec.Replicas, 1) - maxUnavailable(d)
	room := total - least - (replicas(current) - s.ready(current))
	for _, set := range old {
		if unhealthy := replicas(set) - s.ready(set); room > 0 && unhealthy > 0 {
			return s.scale(set, replicas(set)-min(room, unhealthy))
		}
	}
	for _, set := range old {
		if more := available - least; more > 0 && replicas(set) > 0 {
			return s.scale(set, replicas(set)-min(more, replicas(set)))
		}
	}
	return nil
}

// scaled returns a number or a percentage of the replicas of a Deployment.
func scaled(value *intstr.IntOrString, d *appsv1.Deployment, roundUp bool) int32 {
	quarter := intstr.FromString("25%")
	if value == nil {
		value = &quarter
	}
	n, err := intstr.GetScaledValueFromIntOrPercent(value, int(ptr.Deref(d.Spec.Replicas, 1)), roundUp)
	if err != nil {
		return 0 // the API server rejects such a value
	}
	return int32(n)
}

// maxSurge returns how many pods a Deployment may have beyond its replicas.
func maxSurge(d *appsv1.Deployment) int32 {
	rolling := ptr.Deref(d.Spec.Strategy.RollingUpdate, appsv1.RollingUpdateDeployment{})
	return scaled(rolling.MaxSurge, d, true)
}

// maxUnavailable returns how many pods of a Deployment need not be Ready. It is 1 if both limits are 0.
func maxUnavailable(d *appsv1.Deployment) int32 {
	rolling := ptr.Deref(d.Spec.Strategy.RollingUpdate, appsv1.RollingUpdateDeployment{})
	most := scaled(rolling.MaxUnavailable, d, false)
	if most == 0 && maxSurge(d) == 0 {
		most = 1
	}
	return min(most, ptr.Deref(d.Spec.Replicas, 1))
}

// podsOf returns the pods of a controller.
func (s *Simulation) podsOf(owner metav1.Object) []*corev1.Pod {
	return slices.DeleteFunc(Every[corev1.Pod](s.Cluster), func(p *corev1.Pod) bool { return !metav1.IsControlledBy(p, owner) })
}

// ready returns the number of Ready pods of a ReplicaSet.
func (s *Simulation) ready(set *appsv1.ReplicaSet) (n int32) {
	for _, p := range s.podsOf(set) {
		if podstate.Ready(p) && !podstate.Terminating(p) {
			n++
		}
	}
	return n
}

// replicateKey is the prefix of the keys of the moves of the ReplicaSet controller.
const replicateKey = "replicate"

// replicate returns the next step of the ReplicaSet controller. It adopts its pods without
// a controller. It first deletes pods that are not Ready, and the youngest of them first.
func (s *Simulation) replicate(set *appsv1.ReplicaSet) func() {
	for _, p := range s.Pods() {
		if metav1.GetControllerOf(p) == nil && selects(set, p) && !podstate.Terminating(p) && !podstate.Ended(p) {
			return func() {
				s.Say("    %s adopts %s", set.Name, p.Name)
				Edit(s.Cluster, p, func(p *corev1.Pod) { p.OwnerReferences = append(p.OwnerReferences, ownedBy("ReplicaSet", set)...) })
			}
		}
	}
	pods := slices.DeleteFunc(s.podsOf(set), func(p *corev1.Pod) bool { return podstate.Terminating(p) || podstate.Ended(p) })
	switch missing := int(replicas(set)) - len(pods); {
	case missing > 0 && !s.isRefused(set):
		return func() { s.addPod(set) }
	case missing < 0:
		victim := slices.MinFunc(pods, func(a, b *corev1.Pod) int {
			return cmp.Or(rank(a)-rank(b), cmp.Compare(b.Name, a.Name))
		})
		return func() {
			s.Say("    %s deletes %s", set.Name, victim.Name)
			s.Delete(victim)
		}
	}
	return nil
}

// selects reports whether the selector of a ReplicaSet matches a pod.
func selects(set *appsv1.ReplicaSet, p *corev1.Pod) bool {
	selector, err := metav1.LabelSelectorAsSelector(set.Spec.Selector)
	return err == nil && selector.Matches(spec.LabelsOf(p))
}

// addPod creates a pod of a ReplicaSet. If the webhook rejects it, condition ReplicaFailure has the reason.
func (s *Simulation) addPod(set *appsv1.ReplicaSet) {
	name, at := s.freeName("Pod", s.letter+1, func(n int) string { return set.Name + "-" + letters(n) })
	template := set.Spec.Template.DeepCopy()
	p := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
	p.Name, p.Namespace, p.OwnerReferences = name, set.Namespace, ownedBy("ReplicaSet", set)
	refusal := s.create(p)
	if refusal == "" {
		s.letter = at
	}
	if failureOf(set) != refusal {
		Edit(s.Cluster, set, func(set *appsv1.ReplicaSet) { setFailure(set, refusal) })
	}
	if refusal != "" {
		s.refused[set.UID] = s.refusalOf(set)
	}
}

func isFailure(c appsv1.ReplicaSetCondition) bool { return c.Type == appsv1.ReplicaSetReplicaFailure }

// failureOf returns the message of condition ReplicaFailure; "" if there is none.
func failureOf(set *appsv1.ReplicaSet) string {
	if i := slices.IndexFunc(set.Status.Conditions, isFailure); i >= 0 {
		return set.Status.Conditions[i].Message
	}
	return ""
}

// setFailure sets condition ReplicaFailure, or removes it if there is no message.
func setFailure(set *appsv1.ReplicaSet, message string) {
	set.Status.Conditions = slices.DeleteFunc(set.Status.Conditions, isFailure)
	if message != "" {
		set.Status.Conditions = append(set.Status.Conditions, appsv1.ReplicaSetCondition{
			Type: appsv1.ReplicaSetReplicaFailure, Status: corev1.ConditionTrue, Reason: "FailedCreate", Message: message})
	}
}

// rank returns the order in which pods are deleted.
func rank(p *corev1.Pod) int {
	switch {
	case !podstate.Scheduled(p):
		return 0
	case !podstate.Ready(p):
		return 1
	}
	return 2
}
