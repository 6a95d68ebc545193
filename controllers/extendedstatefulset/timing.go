package extendedstatefulset

import (
	"time"

	"github.com/stateful-operator/stateful-operator/controllers/internal/configuration"
)

// Every duration of this kind. What has to hold between them is in timing_test.go.
const (
	// retrySoon is when a pass is made again that another write overtook.
	retrySoon = 50 * time.Millisecond
	// afterWrites is when a pass is made after one that wrote something, should the
	// event of that write get lost.
	afterWrites = 5 * time.Second

	// longestProbation is how long a pod of a new version must have been Ready before
	// it counts as good, where minReadySeconds says nothing. A program without a
	// readiness probe is Ready as soon as it starts, also one that crashes then: without
	// this the old version would be gone by the time that it does.
	longestProbation = 10 * time.Second
	// unassignedAge is how old a pod without a claim is before it is deleted. As long as
	// there is no webhook its successor has none either, so this bounds how often.
	unassignedAge = 15 * time.Second
	// consentRetry is how often to look whether the owner of a claim gives it: the
	// claims of others are not in the cache, so no event says so.
	consentRetry = 15 * time.Second

	// lostJobTime is how long a Job on record has to be missing before its result is
	// unknown: the watch may be behind.
	lostJobTime = 5 * time.Second
	// hinderedTime is how long a pod of the version that serves may wait for a node or an image,
	// or be Ready between two crashes, before a condition says that it needs a person.
	hinderedTime = 30 * time.Second
	// stopInterval is the minimum time between two suspensions of a Job that is no longer
	// needed: another client that resumes it is not fought.
	stopInterval = time.Minute

	// budgetRetry is how often to look whether a PodDisruptionBudget of another owner has
	// still the name of ours: it need not be in the cache.
	budgetRetry = 15 * time.Second

	// missingGrace is how long the first version waits for configuration that is made
	// together with the object: pods that start without it would be restarted with it.
	missingGrace = configuration.Window

	// trialTime is how long all trials of an admission together may take, and
	// claimsTrialTime how long the look for claims before them, so that the rest of the
	// answer comes before the API server stops waiting for it.
	trialTime       = 3 * time.Second
	claimsTrialTime = time.Second
)

// Times of a spec where the schema's defaults are missing.
const (
	defaultCanaryWatch = 5 * time.Minute
	defaultUpdateWatch = 10 * time.Minute
	probePeriod        = 30 * time.Second
	probeTimeout       = 5 * time.Second
	// longestWatch is the most that canaryWatchTime and updateWatchTime may be.
	longestWatch = 720 * time.Hour
)
