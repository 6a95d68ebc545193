package replicatedstatefulset

import (
	"testing"
	"time"

	"github.com/stateful-operator/stateful-operator/controllers/internal/podexec"
)

// TestTimesFitTogether tests which times must be shorter than which, with the reasons.
func TestTimesFitTogether(t *testing.T) {
	for _, r := range []struct {
		shorter, longer time.Duration
		why             string
	}{
		{podexec.MaxDial, strayAfter, "a command that is accepted late counts as one that may reach the next container"},
		{maxPause, returnsWithin, "a member that returned is queried while the failover waits"},
		{maxPause, refusedFor, "status is retried before a refusal counts as final"},
		{answersWithin, unreadyAfter, "an unanswered status is reported before an unready pod"},
		{settleWithin, minPodAge, "a pod is not recreated for a start that status may still confirm"},
		{2 * evictionNoted, evictionFor, "repeated eviction requests are recorded before the previous one expires"},
		{evictionFor, evictionEvery, "an eviction request expires before one for another pod of the set is recorded"},
		{handoverPause, evictionFor, "a failed handover is retried before its eviction request expires"},
		{conflictRequeue, writeRequeue, "a conflict is retried before other writes"},
		{unresponsiveAfter * time.Second, answersWithin, "five queries fit into the time in which a member must answer"},
		{minInterval, defaultInterval, "the default is within the limits"},
		{defaultInterval, maxTime, "the default is within the limits"},
		{minTimeout, defaultTimeout, "the default is within the limits"},
		{defaultTimeout, maxTime, "the default is within the limits"},
		{defaultWindow, maxWindow, "the default is within the limits"},
		{maxPause, defaultWindow, "a failure is remembered until its start is retried"},
	} {
		if r.shorter >= r.longer {
			t.Errorf("%s is not shorter than %s: %s", r.shorter, r.longer, r.why)
		}
	}
}
