package record

import (
	"cmp"
	"fmt"
	"slices"
)

// Kinds of operations.
const (
	Append = "append"
	Read   = "read"
)

// Outcomes of an operation, as seen by the client.
const (
	// OK is an acknowledged operation.
	OK = "ok"
	// Refused is an operation that certainly had no effect.
	Refused = "refused"
	// Unknown is an operation that may have had an effect, or may still have it.
	Unknown = "unknown"
)

// Op is one operation of a client. The history has two lines for it. The first is written before the
// operation starts and has no outcome.
type Op struct {
	Client  string `json:"client"`
	Request string `json:"request"`
	Kind    string `json:"kind"`
	Value   string `json:"value,omitempty"` // of an append
	Call    int64  `json:"call"`            // by the monotonic clock
	Return  int64  `json:"return,omitempty"`
	Outcome string `json:"outcome,omitempty"`
	Error   string `json:"error,omitempty"` // the last one
	// Position is the position of an append among all appends, starting at 1. For a read it is the
	// number of appends.
	Position uint64 `json:"position,omitempty"`
	Digest   Digest `json:"digest,omitempty"` // of all appends, for a read
	Epoch    uint64 `json:"epoch,omitempty"`
	Index    uint64 `json:"index,omitempty"`
}

// Key identifies an operation among those of all clients.
type Key struct{ Client, Request string }

// Key returns the operation's key.
func (o Op) Key() Key { return Key{o.Client, o.Request} }

// Merge merges the two lines of each operation, in the order of their calls. The outcome is unknown if
// there is no second line.
func Merge(lines []Op) ([]Op, error) {
	var ops []Op
	at := map[Key]int{}
	for _, line := range lines {
		i, known := at[line.Key()]
		switch {
		case line.Outcome == "" && known:
			return nil, fmt.Errorf("client %s has used request %s twice", line.Client, line.Request)
		case line.Outcome == "":
			at[line.Key()] = len(ops)
			line.Outcome = Unknown
			ops = append(ops, line)
		case !known:
			return nil, fmt.Errorf("client %s has the end of request %s, and not its start", line.Client, line.Request)
		default:
			ops[i] = line
		}
	}
	slices.SortStableFunc(ops, func(a, b Op) int { return cmp.Compare(a.Call, b.Call) })
	return ops, nil
}

// ReadHistory reads the operations that a client wrote into a file.
func ReadHistory(path string) ([]Op, error) {
	lines, err := ReadLines[Op](path)
	if err != nil {
		return nil, err
	}
	return Merge(lines)
}
