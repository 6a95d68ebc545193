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
		{"an admission is answered before the API server stops waiting", trialTime + claimsTrialTime, webhookTimeout - 1},
		{"the first version waits for its configuration at least as long as edits are gathered", configuration.Window, missingGrace},
		{"a probation ends within the canaryWatchTime that is the default", 2 * maxProbation, defaultCanaryWatch},
		{"canaries are a part of the upgrade", defaultCanaryWatch, defaultUpdateWatch},
		{"updateWatchTime may be its default", defaultUpdateWatch, maxWatch},
		{"a probe is answered before it is asked again", probeTimeout, probePeriod},
		{"a pass after a write comes no sooner than one that was overtaken", retrySoon, afterWrites},
		{"own writes are waited for in the cache for longer than an overtaken pass", retrySoon, consistency.Patience},
	} {
		if row.less > row.limit {
			t.Errorf("%s: %s is more than %s", row.says, row.less, row.limit)
		}
	}
}
