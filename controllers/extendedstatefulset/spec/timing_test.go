package spec_test

import (
	"testing"
	"time"

	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/spec"
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
		{"admission completes before the webhook timeout", spec.TrialTime + spec.ClaimsTrialTime, webhookTimeout - 1},
		{"missingGrace is at least the window in which edits are combined", configuration.Window, spec.MissingGrace},
		{"probation ends within the default canaryWatchTime", 2 * spec.MaxProbation, spec.DefaultCanaryWatch},
		{"default canaryWatchTime is at most the default updateWatchTime", spec.DefaultCanaryWatch, spec.DefaultUpdateWatch},
		{"default updateWatchTime is allowed", spec.DefaultUpdateWatch, spec.MaxWatch},
		{"a probe ends before the next one", spec.ProbeTimeout, spec.ProbePeriod},
		{"the pass after a write is at least as late as the one after a conflict", spec.RetrySoon, spec.AfterWrites},
		{"the cache wait for own writes is longer than the delay after a conflict", spec.RetrySoon, consistency.Patience},
	} {
		if row.less > row.limit {
			t.Errorf("%s: %s is more than %s", row.says, row.less, row.limit)
		}
	}
}
