package statefulsingleton

import (
	"testing"
	"time"
)

// TestTimesFitTogether checks the relations between times. Each row explains why one is
// longer than another.
func TestTimesFitTogether(t *testing.T) {
	const (
		guardKnows   = 15 * time.Millisecond // measured, see settleAfter
		relist       = time.Second           // of a kubelet
		mirrorResync = 90 * time.Second      // of a kubelet, max
		slowestGap   = time.Second           // max accepted gap from exit to start
		backOff      = 16 * time.Minute      // of a ReplicaSet, max
	)
	var ownerLooking time.Duration
	for i := range ownerLooks {
		ownerLooking += min(firstOwnerLook<<i, maxOwnerLook)
	}
	for _, row := range []struct {
		why             string
		longer, shorter time.Duration
	}{
		{"every API server knows a new object before it starts a pod", settleAfter, 10 * guardKnows},
		{"a kubelet has relisted its containers before the old pod is deleted", restsAfter, relist},
		{"a kubelet that observed a grant is not reminded of it", remindAfter, slowestGap},
		{"a starting pod has time to reach its gate", newestPatience, restsAfter},
		{"a mirror pod is recreated before another pod starts", mirrorReturns, mirrorResync},
		{"a wrong policy is checked more often than a correct one", guardInterval, guardRetry},
		{"an object is requeued after the guard has been checked", guardReview, guardInterval},
		{"a conflict is retried before an event counts as lost", afterActs, again},
		{"a Node that its kubelet recreates is not fenced", fenceAfter, 10 * afterActs},
		{"refused owners are searched for at least as long as the backoff of a ReplicaSet", ownerLooking, backOff},
		{"the first search does not trigger a new StatefulSet", ownerPatience, firstOwnerLook},
	} {
		if row.longer <= row.shorter {
			t.Errorf("%s: %s is not longer than %s", row.why, row.longer, row.shorter)
		}
	}
}
