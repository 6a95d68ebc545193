// Package testimony says what programs did, from what they said themselves:
// when each ran, which ran at the same time, and for how long none did. The
// status of a pod has no part in it.
package testimony

import "github.com/stateful-operator/stateful-operator/test/faults/ledger/record"

// What a line tells.
const (
	// Start is a program's first instruction.
	Start = "START"
	// Stop is its last, where it ends by itself.
	Stop = "STOP"
	// Meets names in Text another run whose connection was still open when this
	// one started. It needs no clock.
	Meets = "MEETS"
	// Note is a word of a hook or of an init container, which are no runs.
	Note = "NOTE"
	// Cannot is a program that could not testify; Text says why.
	Cannot = "CANNOT"
)

// Line is one thing that is said.
type Line struct {
	At   int64    `json:"at"` // by the machine's monotonic clock, in nanoseconds
	What string   `json:"what"`
	Run  string   `json:"run,omitempty"` // each start of a program is a run
	Pod  string   `json:"pod,omitempty"`
	UID  string   `json:"uid,omitempty"` // the pod's
	Node string   `json:"node,omitempty"`
	PID  int      `json:"pid,omitempty"` // in its container
	Args []string `json:"args,omitempty"`
	Text string   `json:"text,omitempty"`
}

// The files in the folder that the runs of one application share.
const (
	// SocketFile is where an observer listens.
	SocketFile = "socket"
	// DiaryFile takes one line at a time, appended by anybody, where none does.
	DiaryFile = "diary"
)

// Read gives the whole lines of a diary, and how many bytes they are.
func Read(diary []byte) (lines []Line, size int, err error) { return record.Lines[Line](diary) }
