package promises

import "context"

// scenario is a user's action during which a leader is frozen.
type scenario struct {
	Name, Kind string
	// Begin creates the initial objects. It returns run, which performs the action and waits for
	// its result, and judge, which checks the final state after the frozen leader has resumed.
	Begin beginning
}

// step is an action, including the wait for its result.
type step = func(context.Context)

// beginning prepares a scenario and returns its steps.
type beginning = func(context.Context, *Cluster) (run, judge step)
