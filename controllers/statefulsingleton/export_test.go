package statefulsingleton

// What the tests in statefulsingleton_test need of the inside.
var (
	// SetupWithClock is Setup with another clock: an object settles, a handover
	// times out and a Node's absence counts when the test says so.
	SetupWithClock = setup
	// BuildGuard builds the policy and its binding.
	BuildGuard = buildGuard
)
