package simulation

// Move is a step that a client other than the operator could take now.
type Move struct {
	// Key identifies the step among all steps that are possible at the same time.
	Key string
	// Do takes the step. It has no effect if the step is outdated.
	Do func()
}

// Steps returns moves without their keys.
func Steps(moves []Move) []func() {
	steps := make([]func(), 0, len(moves))
	for _, m := range moves {
		steps = append(steps, m.Do)
	}
	return steps
}
