// Package driver runs the commands of a ReplicatedStatefulSet, as docs/commands.md defines them. A Driver
// implements them for one application.
package driver

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Driver implements the commands for an application. primaries are the DNS names of the current
// primaries.
//
// A command that changes state returns when its change is complete, and is idempotent. An error without
// a code fails with Failed.
type Driver interface {
	// Sequence returns the version of the data of this member.
	Sequence(ctx context.Context) (uint64, error)
	// Status returns the state of this member: Stopped, Secondary or Primary, or an error.
	Status(ctx context.Context) (Code, error)
	// Ready returns an error while clients cannot use this member.
	Ready(ctx context.Context) error

	// Seed starts the first member as primary.
	Seed(ctx context.Context) error
	// Primary starts a member as an additional primary.
	Primary(ctx context.Context, primaries []string) error
	// Secondary starts a member as a secondary.
	Secondary(ctx context.Context, primaries []string) error
	// Promote makes a running secondary primary.
	Promote(ctx context.Context) error
	// Demote makes a primary a secondary.
	Demote(ctx context.Context) error
	// Stop ends all processes of the application, with SIGKILL if necessary. It starts no process, and
	// must not rely on files that a command may be writing.
	Stop(ctx context.Context) error

	// Maintain is called by process 1 from time to time, also while a command runs. It applies changed
	// Secrets, and must not start or stop the application.
	Maintain(ctx context.Context) error
	// Crashed is called by process 1 when a process has ended. It reports whether that was the
	// application, and it was not stopped.
	Crashed(pid int) bool

	// LockDir returns a folder that is as old as the pod.
	LockDir() string
	// StartLimit returns the time after which a command that starts the application gives up.
	StartLimit() time.Duration
}

// Leaver is a Driver of an application with a list of members.
type Leaver interface {
	Driver
	// Leave makes the application forget this member, which is being removed. The application need not
	// run, and the data may be missing.
	Leave(ctx context.Context, primaries []string) error
}

// Start identifies a start as primary. A later start of the same set is greater, also if the object was
// deleted and created again on the same claims.
type Start struct {
	Created int64 // when the object was created, in seconds since 1970
	Epoch   int64 // status.epoch
}

// maxAfter limits the result of After for an object that was restored long before its first start.
const maxAfter = 1 << 16

// After returns by how much the epoch is greater than that of an earlier start. If the object was created
// again, epochs begin again: at 1, or at the current Unix time if it was restored from a backup.
func (s Start) After(former Start) int64 {
	switch {
	case s.Created == former.Created && s.Epoch > former.Epoch:
		return s.Epoch - former.Epoch
	case s.Epoch > s.Created:
		return min(s.Epoch-s.Created, maxAfter)
	}
	return s.Epoch
}

// StartFlag precedes the start in the arguments of a command.
const StartFlag = "--start="

// ParseStart parses the value of StartFlag: the time and the epoch, separated by a dot.
func ParseStart(text string) (Start, error) {
	created, epoch, _ := strings.Cut(text, ".")
	var s Start
	var err error
	if s.Created, err = strconv.ParseInt(created, 10, 64); err == nil {
		s.Epoch, err = strconv.ParseInt(epoch, 10, 64)
	}
	if err != nil || s.Created < 0 || s.Epoch < 0 {
		return Start{}, Errorf(NotConfigured, "%s%s is not TIME.EPOCH", StartFlag, text)
	}
	return s, nil
}

// Code is an exit code of a command. Codes are those of OCF.
type Code int

// Exit codes.
const (
	Succeeded Code = 0
	Secondary Code = 0

	Failed          Code = 1
	Unimplemented   Code = 3 // no such command
	NotInstalled    Code = 5 // manual intervention is required in this member
	NotConfigured   Code = 6 // the configuration of all members is incorrect
	Stopped         Code = 7
	Primary         Code = 8
	Degraded        Code = 190 // a secondary
	DegradedPrimary Code = 191
)

// codedError is an error with an exit code.
type codedError struct {
	code Code
	err  error
}

func (e *codedError) Error() string { return e.err.Error() }
func (e *codedError) Unwrap() error { return e.err }

// Errorf returns an error with which the command exits with a code.
func Errorf(code Code, format string, args ...any) error {
	return &codedError{code: code, err: fmt.Errorf(format, args...)}
}

// CodeOf returns the exit code for an error.
func CodeOf(err error) Code {
	var coded *codedError
	switch {
	case err == nil:
		return Succeeded
	case errors.As(err, &coded):
		return coded.code
	}
	return Failed
}
