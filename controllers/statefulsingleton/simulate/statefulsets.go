package simulate

import (
	"fmt"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
)

// revisionOf returns the revision of the template of a StatefulSet. When a set is first seen, its status has it.
func (s *Simulation) revisionOf(set *appsv1.StatefulSet) string {
	known := s.revisions[set.UID]
	if known == nil {
		known = map[string]corev1.PodTemplateSpec{set.Status.UpdateRevision: set.Spec.Template}
		s.revisions[set.UID] = known
	}
	for name, template := range known {
		if name != "" && apiequality.Semantic.DeepEqual(template, set.Spec.Template) {
			return name
		}
	}
	name := fmt.Sprintf("%s-%d", set.Name, len(known)+1)
	known[name] = set.Spec.Template
	return name
}

// order returns the next steps of the StatefulSet controller.
func (s *Simulation) order(set *appsv1.StatefulSet) (moves []Move) {
	if revision := s.revisionOf(set); set.Status.UpdateRevision != revision {
		return []Move{{"order" + set.Name, func() {
			Edit(s.Cluster, set, func(set *appsv1.StatefulSet) { set.Status.UpdateRevision = revision })
		}}}
	}
	moves, waits := s.fill(set)
	if waits {
		return moves
	}
	if moves = append(moves, s.trim(set)...); len(moves) > 0 {
		return moves
	}
	if set.Spec.UpdateStrategy.Type != appsv1.OnDeleteStatefulSetStrategyType {
		moves = append(moves, s.update(set)...)
	}
	return append(moves, s.count(set)...)
}

// first returns the ordinal of the first pod of a StatefulSet, and last that of its last one.
func first(set *appsv1.StatefulSet) int {
	return int(ptr.Deref(set.Spec.Ordinals, appsv1.StatefulSetOrdinals{}).Start)
}

func last(set *appsv1.StatefulSet) int { return first(set) + int(ptr.Deref(set.Spec.Replicas, 1)) - 1 }

// member returns the pod of a StatefulSet with that ordinal; nil if there is none.
func (s *Simulation) member(set *appsv1.StatefulSet, ordinal int) *corev1.Pod {
	return s.pod(memberName(set, ordinal))
}

func memberName(set *appsv1.StatefulSet, ordinal int) string {
	return fmt.Sprintf("%s-%d", set.Name, ordinal)
}

// isOrdered reports whether a StatefulSet waits for each pod before it continues with the next one.
func isOrdered(set *appsv1.StatefulSet) bool {
	return set.Spec.PodManagementPolicy != appsv1.ParallelPodManagement
}

// isHealthy reports whether a pod is Ready and stays.
func isHealthy(p *corev1.Pod) bool { return podstate.Ready(p) && !podstate.Terminating(p) }

// fill returns the moves that create missing pods and delete ended ones. It reports whether the set waits for a pod.
func (s *Simulation) fill(set *appsv1.StatefulSet) (moves []Move, waits bool) {
	for ordinal := first(set); ordinal <= last(set); ordinal++ {
		have := s.member(set, ordinal)
		if do := s.refill(set, ordinal, have); do != nil {
			moves = append(moves, Move{"order" + memberName(set, ordinal), do})
		}
		if isOrdered(set) && (have == nil || !isHealthy(have)) {
			return moves, true
		}
	}
	return moves, false
}

// refill returns the move that creates a missing pod, or deletes an ended one; nil if there is none.
func (s *Simulation) refill(set *appsv1.StatefulSet, ordinal int, have *corev1.Pod) func() {
	switch {
	case have == nil && !s.isRefused(set):
		return func() { s.addMember(set, ordinal) }
	case have != nil && podstate.Ended(have) && !podstate.Terminating(have):
		return s.removal(set, have)
	}
	return nil
}

// trim returns the moves that delete pods beyond the replicas, the last one first.
func (s *Simulation) trim(set *appsv1.StatefulSet) (moves []Move) {
	for ordinal := s.highest(set); ordinal > last(set); ordinal-- {
		have := s.member(set, ordinal)
		if have == nil {
			continue
		}
		if !podstate.Terminating(have) {
			moves = append(moves, Move{"order" + have.Name, s.removal(set, have)})
		}
		if isOrdered(set) {
			break
		}
	}
	return moves
}

// highest returns the highest ordinal of the pods of a StatefulSet.
func (s *Simulation) highest(set *appsv1.StatefulSet) int {
	most := last(set)
	for _, p := range s.podsOf(set) {
		if ordinal, err := strconv.Atoi(p.Name[min(len(set.Name)+1, len(p.Name)):]); err == nil {
			most = max(most, ordinal)
		}
	}
	return most
}

// update returns the move that deletes the last pod of another revision. It waits for each pod to be healthy.
func (s *Simulation) update(set *appsv1.StatefulSet) []Move {
	from := 0
	if rolling := set.Spec.UpdateStrategy.RollingUpdate; rolling != nil {
		from = int(ptr.Deref(rolling.Partition, 0))
	}
	for ordinal := last(set); ordinal >= max(from, first(set)); ordinal-- {
		have := s.member(set, ordinal)
		switch {
		case have == nil:
			return nil
		case have.Labels[appsv1.ControllerRevisionHashLabelKey] != set.Status.UpdateRevision && !podstate.Terminating(have):
			return []Move{{"order" + have.Name, s.removal(set, have)}}
		case !isHealthy(have):
			return nil
		}
	}
	return nil
}

// count returns the move that updates the number of pods in the status, once all exist.
func (s *Simulation) count(set *appsv1.StatefulSet) []Move {
	have := int32(len(s.podsOf(set)))
	if have != ptr.Deref(set.Spec.Replicas, 1) || have == set.Status.Replicas {
		return nil
	}
	return []Move{{"count" + set.Name, func() {
		Edit(s.Cluster, set, func(set *appsv1.StatefulSet) { set.Status.Replicas = have })
	}}}
}

func (s *Simulation) removal(set *appsv1.StatefulSet, p *corev1.Pod) func() {
	return func() {
		s.Say("    %s deletes %s", set.Name, p.Name)
		s.Delete(p)
	}
}

// addMember creates the pod of a StatefulSet with that ordinal.
func (s *Simulation) addMember(set *appsv1.StatefulSet, ordinal int) {
	name := memberName(set, ordinal)
	rejected := s.create(name, &set.Spec.Template, ownedBy("StatefulSet", set), func(p *corev1.Pod) {
		metav1.SetMetaDataLabel(&p.ObjectMeta, appsv1.ControllerRevisionHashLabelKey, set.Status.UpdateRevision)
		metav1.SetMetaDataLabel(&p.ObjectMeta, appsv1.StatefulSetPodNameLabel, name)
		metav1.SetMetaDataLabel(&p.ObjectMeta, appsv1.PodIndexLabel, strconv.Itoa(ordinal))
		p.Spec.Hostname, p.Spec.Subdomain = name, set.Spec.ServiceName
		for i := range set.Spec.VolumeClaimTemplates {
			claim := set.Spec.VolumeClaimTemplates[i].Name
			p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: claim, VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim + "-" + name}}})
		}
	})
	if rejected != "" {
		s.refused[set.UID] = s.refusalOf(set)
	}
}
