package spec

import (
	"time"

	"github.com/stateful-operator/stateful-operator/controllers/internal/configuration"
)

// All durations of this kind. timing_test.go tests the relations between them.
const (
	// RetrySoon is the delay after a conflict with another write.
	RetrySoon = 50 * time.Millisecond
	// AfterWrites is the delay after a pass that wrote something. It is a safety net in case the watch
	// event of the write is lost.
	AfterWrites = 5 * time.Second

	// MaxProbation is how long a pod of a new version must have been Ready to count as good if
	// minReadySeconds is not set. Without a readiness probe, a program is Ready as soon as it starts,
	// even if it crashes afterwards. Without this probation the old version would already be deleted
	// when the program crashes.
	MaxProbation = 10 * time.Second
	// UnassignedAge is the min age of a pod without a claim before it is deleted. While the webhook is
	// missing, the recreated pod has no claim either, so this limits the rate of deletions.
	UnassignedAge = 15 * time.Second
	// ConsentRetry is the interval of checks whether the owner of a claim has given consent. Claims of
	// other owners are not in the cache, so there is no event.
	ConsentRetry = 15 * time.Second

	// LostJobTime is how long a recorded Job must be missing before its result is unknown. The watch
	// may lag behind.
	LostJobTime = 5 * time.Second
	// HinderedTime is how long a pod of the current version may wait for a Node or an image, or be
	// Ready between two crashes, before a condition reports that manual intervention is required.
	HinderedTime = 30 * time.Second
	// StopInterval is the min interval between two suspensions of a Job that is no longer needed. It
	// avoids a fight with another client that resumes the Job.
	StopInterval = time.Minute

	// BudgetRetry is the interval of checks whether a PodDisruptionBudget of another owner still has
	// the required name. It may not be in the cache.
	BudgetRetry = 15 * time.Second

	// MissingGrace is how long the first version waits for configuration that is created together with
	// the object. Pods that start without it would be restarted as soon as it exists.
	MissingGrace = configuration.Window

	// TrialTime is the max duration of all dry runs of one admission request. ClaimsTrialTime is the
	// max duration of the claim lookup before them. Both keep the response within the API server's
	// webhook timeout.
	TrialTime       = 3 * time.Second
	ClaimsTrialTime = time.Second
)

// Defaults of spec fields, used if the defaults of the schema are missing.
const (
	DefaultCanaryWatch = 5 * time.Minute
	DefaultUpdateWatch = 10 * time.Minute
	ProbePeriod        = 30 * time.Second
	ProbeTimeout       = 5 * time.Second
	// MaxWatch is the max of canaryWatchTime and updateWatchTime.
	MaxWatch = 720 * time.Hour
)
