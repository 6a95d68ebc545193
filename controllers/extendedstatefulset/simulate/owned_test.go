package simulate_test

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation/kubelet"
)

func TestADeletedSet(t *testing.T) {
	s := started(t, fixture.Volumes())
	s.Delete(setOf(t, s.Cluster))
	settle(t, s)
	for k, obj := range s.All {
		switch obj.(type) {
		case *corev1.Node, *corev1.PersistentVolumeClaim:
		default:
			t.Errorf("%s %s still exists", k.Kind, k.Name)
		}
	}
	var claims corev1.PersistentVolumeClaimList
	if err := s.List(t.Context(), &claims); err != nil || len(claims.Items) != 3 {
		t.Errorf("%d claims: %v", len(claims.Items), err)
	}
}

func TestTheEndOfAJob(t *testing.T) {
	for _, row := range []struct {
		name  string
		end   func(*batchv1.Job) batchv1.JobConditionType
		phase v1alpha1.Phase
	}{
		{"by default", nil, v1alpha1.PhaseStable},
		{"it fails", func(*batchv1.Job) batchv1.JobConditionType { return batchv1.JobFailed }, v1alpha1.PhaseAborted},
		{"it does not end", func(*batchv1.Job) batchv1.JobConditionType { return "" }, v1alpha1.PhaseAborted},
	} {
		set := fixture.Plain()
		set.Spec.UpdateStrategy.PreUpdateJob = fixture.Job("any")
		s := started(t, set)
		s.JobEnd = row.end
		edit(t, s.Cluster, image("two"))
		settle(t, s)
		if got := setOf(t, s.Cluster).Status.Phase; got != row.phase {
			t.Errorf("%s: the phase is %s, want %s", row.name, got, row.phase)
		}
	}
}

// TestAResumedJob checks that a Job with a condition about its suspension still ends.
func TestAResumedJob(t *testing.T) {
	set := fixture.Plain()
	set.Spec.UpdateStrategy.PreUpdateJob = fixture.Job(kubelet.BadImage)
	s := started(t, set)
	s.JobEnd = func(job *batchv1.Job) batchv1.JobConditionType {
		job.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobSuspended, Status: corev1.ConditionFalse}}
		s.Put(job)
		return batchv1.JobComplete
	}
	edit(t, s.Cluster, image("two"))
	settle(t, s)
	hasReady(t, s.Cluster, "shop-v2-0", "shop-v2-1", "shop-v2-2")
}
