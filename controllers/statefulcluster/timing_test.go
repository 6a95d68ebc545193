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
		{"one restart delays an update less than several", steadyTime, settlingTime},
		// The kubelet's longest backoff is 5 minutes. So a crashing container restarts within
		// settlingTime, and never looks as if it had settled down.
		{"a revision that crashes is not proven between two crashes", 2 * 5 * time.Minute, settlingTime},
		{"a member that is starting is not an outage", defaultStartupSeconds * time.Second, attentionTime},
		{"a member is replaced before it is reported as never replaced", defaultUnreadySeconds * time.Second, attentionTime},
		{"the second replacement waits less than the last", firstBackoff, maxBackoff},
		{"the backoff reaches its max before it stops doubling", maxBackoff, firstBackoff << maxDoublings},
		{"nodeLostSeconds is no longer than the first backoff of a slot", defaultNodeLostSeconds * time.Second, firstBackoff},
		{"a refused write is retried before the backoff of a slot has passed", firstRefusal, firstBackoff},
		{"the retry delay of refused writes reaches its max before it stops doubling", maxRefusal, firstRefusal << maxDoublings},
		{"refused writes are retried before unready members are reported", maxRefusal, attentionTime},
		{"the status is written more often than a refused write is retried", statusInterval, firstRefusal},
		{"foreign objects are checked more often than refused writes are retried at max delay", foreignInterval, maxRefusal},
	} {
		if r.less > r.orSame {
			t.Errorf("%s: %s is longer than %s", r.why, r.less, r.orSame)
		}
	}
	for times, want := range map[int]time.Duration{-1: firstBackoff, 0: firstBackoff, 1: time.Minute, 6: 32 * time.Minute, 7: maxBackoff, 1 << 40: maxBackoff} {
		if got := doubled(firstBackoff, times, maxBackoff); got != want {
			t.Errorf("the delay after %d doublings is %s, want %s", times, got, want)
		}
	}
}
