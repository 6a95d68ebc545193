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
		{"a kubelet has listed its containers again before the old pod is deleted", restsAfter, relist},
		{"a kubelet that has not missed a grant is not reminded of it", remindAfter, slowestGap},
		{"a pod that comes up has time to rest at its gate", newestPatience, restsAfter},
		{"a static pod is shown again before another starts", mirrorReturns, mirrorResync},
		{"a policy that is wrong is looked at more often than one that is right", guardInterval, guardRetry},
		{"an object looks at the guard when that has been looked at", guardReview, guardInterval},
		{"what another writer overtook is tried before an event counts as lost", afterActs, again},
		{"a Node that its kubelet makes again is not fenced", fenceAfter, 10 * afterActs},
		{"refused owners are looked for as long as a ReplicaSet backs off", ownerLooking, backOff},
		{"a new StatefulSet is not woken by the first look", ownerPatience, firstOwnerLook},
	} {
		if row.longer <= row.shorter {
			t.Errorf("%s: %s is not longer than %s", row.why, row.longer, row.shorter)
		}
	}
}
