package replicated

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// RS-43: even a soak with few runs, which is a part of every test, kills the operator.
func TestEachSoakKillsTheOperator(t *testing.T) {
	for seed := range uint64(200) {
		deck := draw(rand.New(rand.NewPCG(seed, 56)), faults, 9)
		if len(deck) != 9 || !slices.ContainsFunc(deck, killsOperator) {
			t.Fatalf("seed %d: none of %d faults kills the operator", seed, len(deck))
		}
	}
}
