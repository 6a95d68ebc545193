package statefulcluster

import (
	"testing"
	"time"
)

// The relations that must hold between the durations.
func TestTiming(t *testing.T) {
	for _, r := range []struct {
		why          string
		less, orSame time.Duration
	}{
		{"one restart is forgiven sooner than many", steadyTime, settlingTime},
		// The kubelet's longest backoff is 5 minutes. So a crashing container restarts within
		// settlingTime, and never looks as if it had settled down.
		{"a revision that crashes is not proven between two crashes", 2 * 5 * time.Minute, settlingTime},
		{"a member that is starting is not an outage", defaultStartupSeconds * time.Second, attentionTime},
		{"a member is replaced before it is reported as never replaced", defaultUnreadySeconds * time.Second, attentionTime},
		{"the second replacement waits less than the last", firstBackoff, maxBackoff},
		{"a back-off reaches its limit before it stops doubling", maxBackoff, firstBackoff << maxDoublings},
		{"a lost node is believed before another replacement in the same slot is tried", defaultNodeLostSeconds * time.Second, firstBackoff},
		{"a refused write is tried again before its replacement's back-off is over", firstRefusal, firstBackoff},
		{"refusals reach their limit before they stop doubling", maxRefusal, firstRefusal << maxDoublings},
		{"what was refused is tried again before attention is asked for", maxRefusal, attentionTime},
		{"the status is written more often than a refused write is tried", statusInterval, firstRefusal},
		{"what is in the way is looked for more often than refused writes are tried at last", foreignInterval, maxRefusal},
	} {
		if r.less > r.orSame {
			t.Errorf("%s: %s is longer than %s", r.why, r.less, r.orSame)
		}
	}
	for times, want := range map[int]time.Duration{-1: firstBackoff, 0: firstBackoff, 1: time.Minute, 6: 32 * time.Minute, 7: maxBackoff, 1 << 40: maxBackoff} {
		if got := doubled(firstBackoff, times, maxBackoff); got != want {
			t.Errorf("after %d doublings it waits %s, want %s", times, got, want)
		}
	}
}
