package galera

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/stateful-operator/stateful-operator/agent/driver"
)

// generation is the period between two seeds. All members of a generation have the same history.
type generation struct {
	Number   uint64
	Previous uint64 // the number of the generation before
	Begin    int64  // the last transaction of the generation before
	Start    driver.Start
}

const (
	// seqnoBits is the size of the number of a transaction in a sequence.
	seqnoBits = 44
	// maxGeneration is the highest number of a generation.
	maxGeneration = 1<<(64-seqnoBits) - 1
	// maxName is the max length of the name of a cluster in Galera.
	maxName = 32
)

// sequence returns the number of a copy of this generation.
func (g generation) sequence(transaction int64) uint64 {
	return g.Number<<seqnoBits | uint64(max(0, transaction))&(1<<seqnoBits-1)
}

// next returns the generation that begins with a start after a transaction of a copy of g. Starts from the
// same copy have different numbers, the later one the higher. A generation without transactions does not
// count as the one before.
func (g generation) next(start driver.Start, transaction int64) (generation, error) {
	steps := start.After(g.Start)
	if steps < 1 || uint64(steps) > maxGeneration-g.Number {
		return generation{}, fmt.Errorf("epoch %d cannot follow %d", start.Epoch, g.Number)
	}
	next := generation{Number: g.Number + uint64(steps), Previous: g.Number, Begin: transaction, Start: start}
	if transaction <= g.Begin {
		next.Previous = g.Previous
	}
	if name := next.String(); len(name) > maxName {
		return generation{}, fmt.Errorf("the name %s of the cluster is longer than %d", name, maxName)
	}
	return next, nil
}

// extends reports whether a copy of another generation, which ends with a transaction, has only transactions
// of this one.
func (g generation) extends(other generation, transaction int64) bool {
	if other == g {
		return true
	}
	return other.Number == g.Previous && transaction <= g.Begin
}

const (
	base      = 36
	separator = "."
)

// String returns the name of the cluster.
func (g generation) String() string {
	numbers := []int64{int64(g.Number), int64(g.Previous), g.Begin, g.Start.Created, g.Start.Epoch}
	texts := make([]string, len(numbers))
	for i, n := range numbers {
		texts[i] = strconv.FormatInt(n, base)
	}
	return strings.Join(texts, separator)
}

// MarshalText returns the name of the cluster.
func (g generation) MarshalText() ([]byte, error) { return []byte(g.String()), nil }

// UnmarshalText parses the name of a cluster.
func (g *generation) UnmarshalText(text []byte) error {
	texts := strings.Split(string(text), separator)
	var numbers [5]int64
	if len(texts) != len(numbers) {
		return fmt.Errorf("%q is not the name of a generation", text)
	}
	for i := range numbers {
		n, err := strconv.ParseInt(texts[i], base, 64)
		if err != nil || n < 0 {
			return fmt.Errorf("%q is not the name of a generation", text)
		}
		numbers[i] = n
	}
	*g = generation{uint64(numbers[0]), uint64(numbers[1]), numbers[2], driver.Start{Created: numbers[3], Epoch: numbers[4]}}
	return nil
}
