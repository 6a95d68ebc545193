package workloads

import (
	appsv1 "k8s.io/api/apps/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"

	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation/objects"
)

// report adds the step that stores the revision of the template and writes the status.
func (s *sync) report() {
	if apiequality.Semantic.DeepEqual(s.status(), s.set.Status) {
		return
	}
	s.step("status"+s.set.Name, func() {
		s.look(s.set).revise()
		next := objects.Clone(s.All[objects.KeyOf(s.set)].(*appsv1.StatefulSet))
		now := s.look(next)
		next.Status = now.status()
		s.Put(next)
		now.truncate()
	})
}

// status returns the status that the StatefulSet must have.
func (s *sync) status() appsv1.StatefulSetStatus {
	next := *s.set.Status.DeepCopy()
	next.ObservedGeneration, next.UpdateRevision = s.set.Generation, s.revision()
	if next.CurrentRevision == "" {
		next.CurrentRevision = next.UpdateRevision
	}
	next.Replicas = int32(len(s.pods))
	next.ReadyReplicas, next.AvailableReplicas, next.CurrentReplicas, next.UpdatedReplicas = 0, 0, 0, 0
	count := func(n *int32, is bool) {
		if is {
			*n++
		}
	}
	for _, p := range s.pods {
		isAvailable, _ := podstate.Available(p, minReady(s.set), s.Now)
		count(&next.ReadyReplicas, podstate.Ready(p))
		count(&next.AvailableReplicas, isAvailable)
		if !podstate.Terminating(p) {
			label := p.Labels[appsv1.ControllerRevisionHashLabelKey]
			count(&next.CurrentReplicas, label == next.CurrentRevision)
			count(&next.UpdatedReplicas, label == next.UpdateRevision)
		}
	}
	want := replicas(s.set)
	isRolling := s.set.Spec.UpdateStrategy.Type != appsv1.OnDeleteStatefulSetStrategyType
	if isRolling && next.UpdatedReplicas == want && next.ReadyReplicas == want && next.Replicas == want {
		next.CurrentReplicas, next.CurrentRevision = want, next.UpdateRevision
	}
	return next
}
