package extendedstatefulset

import (
	"testing"
	"time"

	"github.com/stateful-operator/stateful-operator/controllers/internal/consistency"
)

// webhookTimeout is timeoutSeconds of the validating webhook.
const webhookTimeout = 5 * time.Second

func TestTiming(t *testing.T) {
	for _, row := range []struct {
		says        string
		less, limit time.Duration
	}{
		{"an admission is answered before the API server stops waiting", trialTime + claimsTrialTime, webhookTimeout - 1},
		{"one that waits for a restart asks before it is forgotten, also if it misses a time or two", 3 * slotRetry, slotForgotten},
		{"one that waits is not forgotten for long after it is gone", slotForgotten, slotLimit},
		{"a place is held for no longer than its namespace is remembered", slotLimit, slotMemory},
		{"edits are gathered for less than a restart may take", configWindow, slotRetry},
		{"the first version waits for its configuration at least as long as edits are gathered", configWindow, missingGrace},
		{"a probation ends within the canaryWatchTime that is the default", 2 * longestProbation, defaultCanaryWatch},
		{"canaries are a part of the upgrade", defaultCanaryWatch, defaultUpdateWatch},
		{"updateWatchTime may be its default", defaultUpdateWatch, longestWatch},
		{"refusals are read less often each time", refusalsFirst, refusalsAgain},
		{"and not more seldom than they are said", refusalsAgain, refusalsSeldom},
		{"a probe is answered before it is asked again", probeTimeout, probePeriod},
		{"a pass after a write comes no sooner than one that was overtaken", retrySoon, afterWrites},
		{"own writes are waited for in the cache for longer than an overtaken pass", retrySoon, consistency.Patience},
	} {
		if row.less > row.limit {
			t.Errorf("%s: %s is more than %s", row.says, row.less, row.limit)
		}
	}
}
