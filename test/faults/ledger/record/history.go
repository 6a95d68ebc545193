package record

import (
	"cmp"
	"fmt"
	"slices"
)

// What a client asks for.
const (
	Append = "append"
	Read   = "read"
)

// What a client knows of an operation's outcome.
const (
	// OK is an operation that was answered.
	OK = "ok"
	// Refused is one that had no effect, for sure.
	Refused = "refused"
	// Unknown is one that may have had its effect, or may have it yet.
	Unknown = "unknown"
)

// Op is one operation of a client. Its history has two lines of it: the first
// is written before the operation begins and has no outcome.
type Op struct {
	Client  string `json:"client"`
	Request string `json:"request"`
	Kind    string `json:"kind"`
	Value   string `json:"value,omitempty"` // of an append
	Call    int64  `json:"call"`            // by the monotonic clock
	Return  int64  `json:"return,omitempty"`
	Outcome string `json:"outcome,omitempty"`
	Error   string `json:"error,omitempty"` // the last one
	// Position is where an append stands among all appends, counted from 1.
	// For a read it is how many there are.
	Position uint64 `json:"position,omitempty"`
	Digest   Digest `json:"digest,omitempty"` // of all appends, for a read
	Epoch    uint64 `json:"epoch,omitempty"`
	Index    uint64 `json:"index,omitempty"`
}

// Key names an operation among those of all clients.
type Key struct{ Client, Request string }

// Key is the operation's name.
func (o Op) Key() Key { return Key{o.Client, o.Request} }

// Merge makes one operation of its two lines, in the order of their calls. The
// outcome of one that has no second line is unknown.
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
			return nil, fmt.Errorf("client %s tells the end of request %s, and not its beginning", line.Client, line.Request)
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
