package simulate

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/observe"
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

// CreatePod creates a pod like the StatefulSet controller, with the changes of the operator's webhook.
func (s *Simulation) CreatePod(set *appsv1.StatefulSet, ordinal int32) {
	s.sets.CreatePod(set, int(ordinal))
}

// create creates a pod, unless the operator's webhook denies it.
func (s *Simulation) create(_ *appsv1.StatefulSet, pod *corev1.Pod) {
	delete(s.refusals, pod.Name)
	if why := s.admit(pod); why != "" {
		s.refusals[pod.Name] = why
		s.Say("    %s is refused: %s", pod.Name, why)
		return
	}
	s.Say("    %s is created", pod.Name)
	s.Put(pod)
}

// isRefused reports whether the result of the creation of a pod would be the same as before.
func (s *Simulation) isRefused(_ *appsv1.StatefulSet, pod *corev1.Pod) bool {
	was, refused := s.refusals[pod.Name]
	return refused && s.admit(pod) == was
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
