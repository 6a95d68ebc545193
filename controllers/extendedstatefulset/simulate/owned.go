package simulate

import (
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/children"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/internal/owned"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation/objects"
)

// isRead reports whether an owner is in the cluster if it exists: the object itself, or one of its
// StatefulSets. Other owners were not read.
func (s *Simulation) isRead(owner metav1.OwnerReference) bool {
	if owned.IsStatefulSet(&owner, owner.Name) {
		_, _, ok := children.ParseChild(s.Key.Name, owner.Name)
		return ok
	}
	return owner.Kind == v1alpha1.Kind && owner.Name == s.Key.Name
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
