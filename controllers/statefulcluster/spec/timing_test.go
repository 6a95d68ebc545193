package spec_test

import (
	"testing"
	"time"

	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/spec"
)

// The relations that must hold between the durations.
func TestTiming(t *testing.T) {
	for _, r := range []struct {
		why          string
		less, orSame time.Duration
	}{
		{"one restart delays an update less than several", spec.SteadyTime, spec.SettlingTime},
		// The kubelet's longest backoff is 5 minutes. So a crashing container restarts within
		// SettlingTime, and never looks as if it had settled down.
		{"a revision that crashes is not proven between two crashes", 2 * 5 * time.Minute, spec.SettlingTime},
		{"a member that is starting is not an outage", spec.DefaultStartupSeconds * time.Second, spec.AttentionTime},
		{"a member is replaced before it is reported as never replaced", spec.DefaultUnreadySeconds * time.Second, spec.AttentionTime},
		{"the second replacement waits less than the last", spec.FirstBackoff, spec.MaxBackoff},
		{"the backoff reaches its max before it stops doubling", spec.MaxBackoff, spec.FirstBackoff << spec.MaxDoublings},
		{"nodeLostSeconds is no longer than the first backoff of a slot", spec.DefaultNodeLostSeconds * time.Second, spec.FirstBackoff},
		{"a refused write is retried before the backoff of a slot has passed", spec.FirstRefusal, spec.FirstBackoff},
		{"the retry delay of refused writes reaches its max before it stops doubling", spec.MaxRefusal, spec.FirstRefusal << spec.MaxDoublings},
		{"refused writes are retried before unready members are reported", spec.MaxRefusal, spec.AttentionTime},
		{"the status is written more often than a refused write is retried", spec.StatusInterval, spec.FirstRefusal},
		{"foreign objects are checked more often than refused writes are retried at max delay", spec.ForeignInterval, spec.MaxRefusal},
	} {
		if r.less > r.orSame {
			t.Errorf("%s: %s is longer than %s", r.why, r.less, r.orSame)
		}
	}
	for times, want := range map[int]time.Duration{-1: spec.FirstBackoff, 0: spec.FirstBackoff, 1: time.Minute, 6: 32 * time.Minute, 7: spec.MaxBackoff, 1 << 40: spec.MaxBackoff} {
		if got := spec.Doubled(spec.FirstBackoff, times, spec.MaxBackoff); got != want {
			t.Errorf("the delay after %d doublings is %s, want %s", times, got, want)
		}
	}
}
