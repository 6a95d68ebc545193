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
		{podexec.MaxDial, strayAfter, "a command that is accepted late still counts as one that may reach the next container"},
		{maxPause, returnsWithin, "a member that came back is asked while it is waited for"},
		{maxPause, refusedFor, "status is tried again before a refusal counts for good"},
		{answersWithin, unreadyAfter, "a primary that does not answer is told of as such before its pod is"},
		{settleWithin, minPodAge, "a pod is not recreated for a start that status has not denied yet"},
		{2 * evictionNoted, evictionFor, "who asks for an eviction again and again is heard all the time"},
		{evictionFor, evictionEvery, "an eviction that was asked for is over before another pod of the set is noted"},
		{handoverPause, evictionFor, "a handover that failed is tried again for the same eviction"},
		{soon, afterActs, "what was overtaken is tried first"},
		{unresponsiveAfter * time.Second, answersWithin, "five questions fit into the time in which a member must answer"},
		{minInterval, defaultInterval, "the default can be chosen"},
		{defaultInterval, maxTime, "the default can be chosen"},
		{minTimeout, defaultTimeout, "the default can be chosen"},
		{defaultTimeout, maxTime, "the default can be chosen"},
		{defaultWindow, maxWindow, "the default can be chosen"},
		{maxPause, defaultWindow, "a failure is not forgotten before its start is tried again"},
	} {
		if r.shorter >= r.longer {
			t.Errorf("%s is not shorter than %s: %s", r.shorter, r.longer, r.why)
		}
	}
}
