package kit

import (
	"context"
)

// Scenario is a user's action during which a leader is frozen.
type Scenario struct {
	Name, Kind string
	// Begin creates the initial objects. It returns run, which performs the action and waits for
	// its result, and judge, which checks the final state after the frozen leader has resumed.
	Begin Beginning
}

// Step is an action, including the wait for its result.
type Step = func(context.Context)

// Beginning prepares a scenario and returns its steps.
type Beginning = func(context.Context, *Cluster) (run, judge Step)
