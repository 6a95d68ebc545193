package simulate

import (
	"context"
	"fmt"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/children"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/observe"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
)

// statefulSet is the kind of a StatefulSet.
var statefulSet = appsv1.SchemeGroupVersion.WithKind("StatefulSet")

// statefulSets returns the StatefulSets whose pods get the label of the object, sorted by name. The object
// may no longer control them.
func (s *Simulation) statefulSets() []*appsv1.StatefulSet {
	return listed(s, &appsv1.StatefulSetList{}, func(l *appsv1.StatefulSetList) []appsv1.StatefulSet { return l.Items }, func(c *appsv1.StatefulSet) bool {
		return c.Spec.Template.Labels[v1alpha1.LabelSet] == s.Key.Name
	})
}

// listed returns the objects in the namespace of the object that a filter accepts, sorted by name.
func listed[L client.ObjectList, T any](s *Simulation, list L, items func(L) []T, accepts func(*T) bool) (found []*T) {
	_ = s.List(context.Background(), list, client.InNamespace(s.Key.Namespace)) // the simulated cluster never fails
	all := items(list)
	for i := range all {
		if accepts(&all[i]) {
			found = append(found, &all[i])
		}
	}
	return found
}

// statefulSetMoves returns the next steps of the StatefulSet controller with Parallel pod management.
func (s *Simulation) statefulSetMoves(set *appsv1.StatefulSet) (moves []func()) {
	sp := (&facts.Child{Set: set}).Span()
	step := func(act func()) { // adds a step that has no effect if the StatefulSet has changed
		moves = append(moves, func() {
			var is appsv1.StatefulSet
			if s.Get(context.Background(), client.ObjectKeyFromObject(set), &is) == nil && is.ResourceVersion == set.ResourceVersion {
				act()
			}
		})
	}
	if set.Status.ObservedGeneration != set.Generation {
		step(func() { s.observe(set) })
	}
	there := map[int32]*corev1.Pod{}
	for _, pod := range s.pods() {
		ordinal, ok := ordinalOf(set, pod)
		if !ok {
			continue
		}
		there[ordinal] = pod
		if !sp.Has(ordinal) && metav1.IsControlledBy(pod, set) && !podstate.Terminating(pod) {
			step(func() { s.deletePod(pod, "is deleted by its StatefulSet") })
		}
	}
	if set.DeletionTimestamp != nil {
		return moves
	}
	for o := range sp.Ordinals() {
		if there[o] == nil && s.mayCreate(set, o) {
			step(func() { s.CreatePod(set, o) })
		}
	}
	for _, pod := range s.outdated(set, sp, there) {
		step(func() { s.deletePod(pod, "is deleted by its StatefulSet, for its new template") })
	}
	return moves
}

// observe writes the status of a StatefulSet whose spec has changed.
func (s *Simulation) observe(set *appsv1.StatefulSet) {
	next := set.DeepCopy()
	next.Status.ObservedGeneration, next.Status.UpdateRevision = set.Generation, s.revisions.of(set)
	if next.Status.CurrentRevision == "" {
		next.Status.CurrentRevision = next.Status.UpdateRevision
	}
	s.Put(next)
}

func (s *Simulation) deletePod(pod *corev1.Pod, what string) {
	s.Say("    %s %s", pod.Name, what)
	s.Delete(pod)
}

// ordinalOf returns the ordinal of a pod with the name of a pod of a StatefulSet.
func ordinalOf(set *appsv1.StatefulSet, pod *corev1.Pod) (int32, bool) {
	if childOf(pod) != set.Name {
		return 0, false
	}
	n, err := strconv.ParseInt(pod.Name[len(set.Name)+1:], 10, 32)
	return int32(n), err == nil
}

// outdated returns the pods that the StatefulSet controller deletes now for the present template: from the
// highest ordinal down, as many as may be unavailable.
func (s *Simulation) outdated(set *appsv1.StatefulSet, sp children.Span, there map[int32]*corev1.Pod) (pods []*corev1.Pod) {
	if set.Spec.UpdateStrategy.Type == appsv1.OnDeleteStatefulSetStrategyType {
		return nil
	}
	revision, left := s.revisions.of(set), maxUnavailable(set)
	for o := sp.End() - 1; o >= firstUpdated(set) && left > 0; o-- {
		switch pod := there[o]; {
		case pod == nil || podstate.Terminating(pod):
			left--
		case pod.Labels[appsv1.ControllerRevisionHashLabelKey] != revision:
			left--
			pods = append(pods, pod)
		case !podstate.Ready(pod):
			left--
		}
	}
	return pods
}

// firstUpdated returns the first ordinal whose pod gets the present template.
func firstUpdated(set *appsv1.StatefulSet) int32 {
	start := (&facts.Child{Set: set}).Span().Start
	if rolling := set.Spec.UpdateStrategy.RollingUpdate; rolling != nil {
		return start + ptr.Deref(rolling.Partition, 0)
	}
	return start
}

// maxUnavailable returns how many pods may be unavailable while pods are replaced.
func maxUnavailable(set *appsv1.StatefulSet) int {
	rolling := set.Spec.UpdateStrategy.RollingUpdate
	if rolling == nil || rolling.MaxUnavailable == nil {
		return 1
	}
	n, err := intstr.GetScaledValueFromIntOrPercent(rolling.MaxUnavailable, int(ptr.Deref(set.Spec.Replicas, 1)), true)
	if err != nil {
		return 1
	}
	return max(1, n)
}

// mayCreate reports whether the creation of a pod may have a result other than before.
func (s *Simulation) mayCreate(set *appsv1.StatefulSet, ordinal int32) bool {
	pod := s.build(set, ordinal)
	if s.Get(context.Background(), client.ObjectKeyFromObject(pod), &corev1.Pod{}) == nil {
		return false // another pod has the name
	}
	was, refused := s.refusals[pod.Name]
	return !refused || s.admit(pod) != was
}

// CreatePod creates a pod like the StatefulSet controller, with the changes of the operator's webhook.
func (s *Simulation) CreatePod(set *appsv1.StatefulSet, ordinal int32) {
	pod := s.build(set, ordinal)
	if s.Get(context.Background(), client.ObjectKeyFromObject(pod), &corev1.Pod{}) == nil {
		return
	}
	delete(s.refusals, pod.Name)
	if why := s.admit(pod); why != "" {
		s.refusals[pod.Name] = why
		s.Say("    %s is refused: %s", pod.Name, why)
		return
	}
	pod.Status.Phase = corev1.PodPending
	s.Say("    %s is created", pod.Name)
	s.Put(pod)
}

// build returns the pod of an ordinal as the StatefulSet controller creates it.
func (s *Simulation) build(set *appsv1.StatefulSet, ordinal int32) *corev1.Pod {
	template, revision := s.revisions.template(set, ordinal)
	pod := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
	pod.Name, pod.Namespace = fmt.Sprintf("%s-%d", set.Name, ordinal), set.Namespace
	pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(set, statefulSet)}
	pod.Labels = children.Merged(pod.Labels, map[string]string{appsv1.PodIndexLabel: strconv.Itoa(int(ordinal)),
		appsv1.StatefulSetPodNameLabel: pod.Name, appsv1.ControllerRevisionHashLabelKey: revision})
	pod.Spec.Hostname, pod.Spec.Subdomain = pod.Name, set.Spec.ServiceName
	return pod
}

// admit applies the changes of the operator's pod webhook to a new pod. It returns the reason if the webhook
// denies the pod.
func (s *Simulation) admit(pod *corev1.Pod) string {
	incoming, why := Inject(pod)
	if why != "" {
		return "" // without changes, the pod waits for a claim that never exists
	}
	why, err := observe.Denial(context.Background(), s.Cluster, pod.Namespace, incoming)
	if err != nil {
		panic(err) // the simulated cluster never fails
	}
	return why
}
