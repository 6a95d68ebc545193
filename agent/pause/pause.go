// Package pause has the pauses between the attempts of one operation.
package pause

import "time"

// first is the first pause.
const first = 10 * time.Millisecond

// Growing returns a function that returns the next pause. The first one is 10 ms. Each further one is twice as
// long, up to longest. So an operation that takes milliseconds is not slowed down, and one that takes minutes is
// checked rarely.
func Growing(longest time.Duration) func() time.Duration {
	next := first
	return func() time.Duration {
		now := min(next, longest)
		next = min(2*next, longest)
		return now
	}
}
