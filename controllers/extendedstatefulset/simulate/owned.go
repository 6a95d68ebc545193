package simulate

import (
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/children"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation/objects"
)

// garbage returns the next steps of the garbage collector: it deletes objects whose owner was deleted.
func (s *Simulation) garbage() (moves []func()) {
	living := map[types.UID]bool{}
	for _, obj := range s.All {
		living[obj.GetUID()] = true
	}
	for _, key := range sortedKeys(s.All) {
		obj := s.All[key]
		owner := metav1.GetControllerOf(obj)
		if owner == nil || !s.isRead(owner) || living[owner.UID] || obj.GetDeletionTimestamp() != nil {
			continue
		}
		moves = append(moves, func() {
			if s.All[key] != nil {
				s.Say("    %s is garbage", obj.GetName())
				s.Delete(obj)
			}
		})
	}
	return moves
}

// isRead reports whether an owner is in the cluster if it exists: the object itself, or one of its
// StatefulSets. Other owners were not read.
func (s *Simulation) isRead(owner *metav1.OwnerReference) bool {
	if owner.Kind == statefulSet.Kind {
		_, _, ok := children.ParseChild(s.Key.Name, owner.Name)
		return ok
	}
	return owner.Kind == v1alpha1.Kind && owner.Name == s.Key.Name
}

func sortedKeys(all map[objects.Key]client.Object) []objects.Key {
	keys := make([]objects.Key, 0, len(all))
	for k := range all {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b objects.Key) int { return strings.Compare(a.Kind+a.Name, b.Kind+b.Name) })
	return keys
}

// jobMoves returns the next steps of the Job controller: Jobs that are not suspended end.
func (s *Simulation) jobMoves() (moves []func()) {
	jobs := listed(s, &batchv1.JobList{}, func(l *batchv1.JobList) []batchv1.Job { return l.Items }, func(j *batchv1.Job) bool {
		return j.Labels[v1alpha1.LabelSet] == s.Key.Name && !ptr.Deref(j.Spec.Suspend, false) && facts.EndOf(j) == ""
	})
	for _, job := range jobs {
		end := batchv1.JobComplete
		if s.JobEnd != nil {
			end = s.JobEnd(job)
		}
		if end == "" {
			continue
		}
		moves = append(moves, func() {
			now, ok := s.All[objects.KeyOf(job)].(*batchv1.Job)
			if !ok || ptr.Deref(now.Spec.Suspend, false) {
				return
			}
			s.Say("    Job %s is %s", job.Name, end)
			next := now.DeepCopy()
			next.Status.Conditions = append(next.Status.Conditions, batchv1.JobCondition{Type: end, Status: corev1.ConditionTrue})
			s.Put(next)
		})
	}
	return moves
}
