package simulate

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// statefulSets returns the StatefulSets whose pods change.
func (s *Simulation) statefulSets() []*appsv1.StatefulSet {
	return slices.DeleteFunc(Every[appsv1.StatefulSet](s.Cluster), func(set *appsv1.StatefulSet) bool {
		return s.isForeign(set.UID, set.Spec.Template.Labels)
	})
}

// createMember creates a pod of a StatefulSet.
func (s *Simulation) createMember(set *appsv1.StatefulSet, p *corev1.Pod) {
	if s.create(p) != "" {
		s.refused[set.UID] = s.refusalOf(set)
	}
}
