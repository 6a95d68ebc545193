package extendedstatefulset

import (
	"testing"
	"time"

	"github.com/stateful-operator/stateful-operator/controllers/internal/configuration"
	"github.com/stateful-operator/stateful-operator/controllers/internal/consistency"
)

// webhookTimeout is timeoutSeconds of the validating webhook.
const webhookTimeout = 5 * time.Second

func TestTiming(t *testing.T) {
	for _, row := range []struct {
		says        string
		less, limit time.Duration
	}{
		{"admission completes before the webhook timeout", trialTime + claimsTrialTime, webhookTimeout - 1},
		{"missingGrace is at least the window in which edits are combined", configuration.Window, missingGrace},
		{"probation ends within the default canaryWatchTime", 2 * maxProbation, defaultCanaryWatch},
		{"default canaryWatchTime is at most the default updateWatchTime", defaultCanaryWatch, defaultUpdateWatch},
		{"default updateWatchTime is allowed", defaultUpdateWatch, maxWatch},
		{"a probe ends before the next one", probeTimeout, probePeriod},
		{"the pass after a write is at least as late as the one after a conflict", retrySoon, afterWrites},
		{"the cache wait for own writes is longer than the delay after a conflict", retrySoon, consistency.Patience},
	} {
		if row.less > row.limit {
			t.Errorf("%s: %s is more than %s", row.says, row.less, row.limit)
		}
	}
}
