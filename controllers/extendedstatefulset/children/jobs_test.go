package children_test

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/utils/ptr"

	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/children"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/fixture"
)

// TestW19AJobIsStartedWithoutATimeToLive verifies W19: a policy sets a TTL on Jobs.
func TestW19AJobIsStartedWithoutATimeToLive(t *testing.T) {
	s := fixture.BeforeUpdate(func(j *batchv1.Job) { j.Spec.TTLSecondsAfterFinished = ptr.To(int32(0)) })
	_, p := fixture.Decided(s.W)
	if j, ok := p.Steps[0][0][0].Object.(*batchv1.Job); !ok || j.Spec.TTLSecondsAfterFinished != nil {
		t.Errorf("got actions %v", p.Steps.Strings())
	}
}

// TestAJobStaysUntilItIsLookedAt verifies that a Job is created without a TTL. Otherwise the TTL
// controller could delete it before its result is recorded, and a missing Job counts as failed.
func TestAJobStaysUntilItIsLookedAt(t *testing.T) {
	from := fixture.Job("fine")
	from.Spec.TTLSecondsAfterFinished, from.Spec.Suspend = ptr.To(int32(0)), ptr.To(false)
	if j := children.BuildJob(fixture.FakeSet(1), from, children.PreJob, 2, 1); j.Spec.TTLSecondsAfterFinished != nil || !*j.Spec.Suspend {
		t.Errorf("got ttlSecondsAfterFinished %v, suspend %v", j.Spec.TTLSecondsAfterFinished, *j.Spec.Suspend)
	}
}
