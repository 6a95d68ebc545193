package extendedstatefulset

import (
	"time"

	"github.com/stateful-operator/stateful-operator/controllers/internal/configuration"
)

// All durations of this kind. timing_test.go tests the relations between them.
const (
	// retrySoon is the delay after a conflict with another write.
	retrySoon = 50 * time.Millisecond
	// afterWrites is the delay after a pass that wrote something. It is a safety net in case the watch
	// event of the write is lost.
	afterWrites = 5 * time.Second

	// maxProbation is how long a pod of a new version must have been Ready to count as good if
	// minReadySeconds is not set. Without a readiness probe, a program is Ready as soon as it starts,
	// even if it crashes afterwards. Without this probation the old version would already be deleted
	// when the program crashes.
	maxProbation = 10 * time.Second
	// unassignedAge is the min age of a pod without a claim before it is deleted. While the webhook is
	// missing, the recreated pod has no claim either, so this limits the rate of deletions.
	unassignedAge = 15 * time.Second
	// consentRetry is the interval of checks whether the owner of a claim has given consent. Claims of
	// other owners are not in the cache, so there is no event.
	consentRetry = 15 * time.Second

	// lostJobTime is how long a recorded Job must be missing before its result is unknown. The watch
	// may lag behind.
	lostJobTime = 5 * time.Second
	// hinderedTime is how long a pod of the current version may wait for a Node or an image, or be
	// Ready between two crashes, before a condition reports that manual intervention is required.
	hinderedTime = 30 * time.Second
	// stopInterval is the min interval between two suspensions of a Job that is no longer needed. It
	// avoids a fight with another client that resumes the Job.
	stopInterval = time.Minute

	// budgetRetry is the interval of checks whether a PodDisruptionBudget of another owner still has
	// the required name. It may not be in the cache.
	budgetRetry = 15 * time.Second

	// missingGrace is how long the first version waits for configuration that is created together with
	// the object. Pods that start without it would be restarted as soon as it exists.
	missingGrace = configuration.Window

	// trialTime is the max duration of all dry runs of one admission request. claimsTrialTime is the
	// max duration of the claim lookup before them. Both keep the response within the API server's
	// webhook timeout.
	trialTime       = 3 * time.Second
	claimsTrialTime = time.Second
)

// Defaults of spec fields, used if the defaults of the schema are missing.
const (
	defaultCanaryWatch = 5 * time.Minute
	defaultUpdateWatch = 10 * time.Minute
	probePeriod        = 30 * time.Second
	probeTimeout       = 5 * time.Second
	// maxWatch is the max of canaryWatchTime and updateWatchTime.
	maxWatch = 720 * time.Hour
)
