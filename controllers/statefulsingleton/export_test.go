package statefulsingleton

import "github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/children"

// Identifiers that the tests in package statefulsingleton_test need.
var (
	// SetupWithClock is Setup with a different clock, so that a test can control when an
	// object has settled, a handover times out, and a missing Node counts as off.
	SetupWithClock = setup
	// BuildGuard builds the policy and its binding.
	BuildGuard = children.BuildGuard
)
