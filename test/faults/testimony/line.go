// Package testimony analyzes the run logs of programs: when each ran, which ran at the same time, and
// for how long none ran. It does not use the status of pods.
package testimony

import "github.com/stateful-operator/stateful-operator/test/faults/ledger/record"

// Kinds of lines.
const (
	// Start is written first by a program.
	Start = "START"
	// Stop is written last, unless the program is killed.
	Stop = "STOP"
	// Meets has in Text another run whose connection was still open when this one started. It needs no
	// clock.
	Meets = "MEETS"
	// Note is a line of a hook or an init container, which are not runs.
	Note = "NOTE"
	// Cannot is written by a program that could not reach its observer. Text has the reason.
	Cannot = "CANNOT"
)

// Line is a line of a run log.
type Line struct {
	At   int64    `json:"at"` // by the machine's monotonic clock, in nanoseconds
	What string   `json:"what"`
	Run  string   `json:"run,omitempty"` // each start of a program is a run
	Pod  string   `json:"pod,omitempty"`
	UID  string   `json:"uid,omitempty"` // of the pod
	Node string   `json:"node,omitempty"`
	PID  int      `json:"pid,omitempty"` // in its container
	Args []string `json:"args,omitempty"`
	Text string   `json:"text,omitempty"`
}

// Files in the folder that the runs of one application share.
const (
	// SocketFile is the socket of an observer.
	SocketFile = "socket"
	// DiaryFile is used if there is no observer. Every run appends one line at a time.
	DiaryFile = "diary"
)

// Read returns the complete lines of a diary and their size in bytes.
func Read(diary []byte) (lines []Line, size int, err error) { return record.Lines[Line](diary) }
