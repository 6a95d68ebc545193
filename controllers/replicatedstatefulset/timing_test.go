package replicatedstatefulset

import (
	"testing"
	"time"

	"github.com/stateful-operator/stateful-operator/controllers/internal/podexec"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/spec"
)

// TestTimesFitTogether tests which times must be shorter than which, with the reasons.
func TestTimesFitTogether(t *testing.T) {
	for _, r := range []struct {
		shorter, longer time.Duration
		why             string
	}{
		{podexec.MaxDial, spec.StrayAfter, "a command that is accepted late counts as one that may reach the next container"},
		{spec.MaxPause, spec.ReturnsWithin, "a member that returned is queried while the failover waits"},
		{spec.MaxPause, spec.RefusedFor, "status is retried before a refusal counts as final"},
		{spec.AnswersWithin, spec.UnreadyAfter, "an unanswered status is reported before an unready pod"},
		{spec.SettleWithin, spec.MinPodAge, "a pod is not recreated for a start that status may still confirm"},
		{2 * spec.EvictionNoted, spec.EvictionFor, "repeated eviction requests are recorded before the previous one expires"},
		{spec.EvictionFor, spec.EvictionEvery, "an eviction request expires before one for another pod of the set is recorded"},
		{spec.HandoverPause, spec.EvictionFor, "a failed handover is retried before its eviction request expires"},
		{spec.ConflictRequeue, spec.WriteRequeue, "a conflict is retried before other writes"},
		{spec.UnresponsiveAfter * time.Second, spec.AnswersWithin, "five queries fit into the time in which a member must answer"},
		{spec.MinInterval, spec.DefaultInterval, "the default is within the limits"},
		{spec.DefaultInterval, spec.MaxTime, "the default is within the limits"},
		{spec.MinTimeout, spec.DefaultTimeout, "the default is within the limits"},
		{spec.DefaultTimeout, spec.MaxTime, "the default is within the limits"},
		{spec.DefaultWindow, spec.MaxWindow, "the default is within the limits"},
		{spec.MaxPause, spec.DefaultWindow, "a failure is remembered until its start is retried"},
	} {
		if r.shorter >= r.longer {
			t.Errorf("%s is not shorter than %s: %s", r.shorter, r.longer, r.why)
		}
	}
}
