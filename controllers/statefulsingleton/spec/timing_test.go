package spec_test

import (
	"testing"
	"time"

	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/observe"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/spec"
)

// TestTimesFitTogether checks the relations between times. Each row explains why one is
// longer than another.
func TestTimesFitTogether(t *testing.T) {
	const (
		guardKnows   = 15 * time.Millisecond // measured, see SettleAfter
		relist       = time.Second           // of a kubelet
		mirrorResync = 90 * time.Second      // of a kubelet, max
		slowestGap   = time.Second           // max accepted gap from exit to start
		backOff      = 16 * time.Minute      // of a ReplicaSet, max
	)
	var ownerLooking time.Duration
	for i := range observe.OwnerLooks {
		ownerLooking += min(spec.FirstOwnerLook<<i, spec.MaxOwnerLook)
	}
	for _, row := range []struct {
		why             string
		longer, shorter time.Duration
	}{
		{"every API server knows a new object before it starts a pod", spec.SettleAfter, 10 * guardKnows},
		{"a kubelet has relisted its containers before the old pod is deleted", spec.GateSteadyAfter, relist},
		{"a kubelet that observed a grant is not reminded of it", spec.RemindAfter, slowestGap},
		{"a starting pod has time to reach its gate", spec.NewestPatience, spec.GateSteadyAfter},
		{"a mirror pod is recreated before another pod starts", spec.MirrorReturns, mirrorResync},
		{"a wrong policy is checked more often than a correct one", spec.GuardInterval, spec.GuardRetry},
		{"an object is requeued after the guard has been checked", spec.GuardReview, spec.GuardInterval},
		{"a conflict is retried before an event counts as lost", spec.AfterActs, spec.Again},
		{"a Node that its kubelet recreates is not fenced", spec.FenceAfter, 10 * spec.AfterActs},
		{"refused owners are searched for at least as long as the backoff of a ReplicaSet", ownerLooking, backOff},
		{"the first search does not trigger a new StatefulSet", spec.OwnerPatience, spec.FirstOwnerLook},
	} {
		if row.longer <= row.shorter {
			t.Errorf("%s: %s is not longer than %s", row.why, row.longer, row.shorter)
		}
	}
}
