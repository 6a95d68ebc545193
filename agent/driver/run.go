package driver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/stateful-operator/stateful-operator/agent/processes"
)

const (
	statusLimit   = 6 * time.Second // the min timeout of a command is 10 s
	readyLimit    = 4 * time.Second
	sequenceLimit = 9 * time.Minute
	stopLimit     = 9 * time.Minute
	leaveLimit    = 90 * time.Second

	// hardStop is the additional time after which a command that ignores its limit is ended.
	hardStop = time.Second

	// endLimit is the time in which other commands end after SIGKILL.
	endLimit = 5 * time.Second
)

// command is one command of a driver.
type command struct {
	limit   time.Duration // 0: the limit of starts
	changes bool
	run     func(ctx context.Context, d Driver, primaries []string, stdout io.Writer) error
}

var commands = map[string]command{
	"sequence": {limit: sequenceLimit, run: printSequence},
	"status":   {limit: statusLimit, run: status},
	"ready": {limit: readyLimit, run: func(ctx context.Context, d Driver, _ []string, _ io.Writer) error {
		return d.Ready(ctx)
	}},
	"seed": {changes: true, run: func(ctx context.Context, d Driver, _ []string, _ io.Writer) error {
		return d.Seed(ctx)
	}},
	"primary": {changes: true, run: func(ctx context.Context, d Driver, primaries []string, _ io.Writer) error {
		return d.Primary(ctx, primaries)
	}},
	"secondary": {changes: true, run: func(ctx context.Context, d Driver, primaries []string, _ io.Writer) error {
		return d.Secondary(ctx, primaries)
	}},
	"promote": {changes: true, run: func(ctx context.Context, d Driver, _ []string, _ io.Writer) error {
		return d.Promote(ctx)
	}},
	"demote": {changes: true, run: func(ctx context.Context, d Driver, _ []string, _ io.Writer) error {
		return d.Demote(ctx)
	}},
	"leave":     {limit: leaveLimit, changes: true, run: leave},
	copyCommand: {limit: copyLimit, changes: true, run: runCopy},
	"stop": {limit: stopLimit, changes: true, run: func(ctx context.Context, d Driver, _ []string, _ io.Writer) error {
		return d.Stop(ctx)
	}},
}

func leave(ctx context.Context, d Driver, primaries []string, _ io.Writer) error {
	leaver, ok := d.(Leaver)
	if !ok {
		return Errorf(Unimplemented, "this application has no list of members")
	}
	return leaver.Leave(ctx, primaries)
}

// IsCommand reports whether a driver has a command.
func IsCommand(name string) bool { _, found := commands[name]; return found }

// Options of Run.
type Options struct {
	Log    *Log
	Stdout io.Writer
	Stderr io.Writer
}

// Run runs a command and returns its exit code. It always returns soon after the limit of the command.
func Run(d Driver, name string, primaries []string, o Options) Code {
	c, found := commands[name]
	if !found {
		return Unimplemented
	}
	if c.limit == 0 {
		c.limit = d.StartLimit()
	}
	start := time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), c.limit)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- c.locked(ctx, d, name, primaries, o) }()

	var err error
	select {
	case err = <-done:
	case <-time.After(c.limit + hardStop):
		err = fmt.Errorf("no result after %s", c.limit)
	}
	code := CodeOf(err)
	if message := errorMessage(err); message != "" {
		o.Log.Printf("exit %d: %s", code, message)
		fmt.Fprintln(o.Stderr, message)
	} else if c.changes {
		o.Log.Printf("completed after %s", time.Since(start).Round(time.Millisecond))
	}
	return code
}

// errorMessage returns an empty text for a state that is not an error.
func errorMessage(err error) string {
	var state stateError
	if err == nil || errors.As(err, &state) {
		return ""
	}
	return err.Error()
}

// stateError is the result of status.
type stateError struct{}

func (stateError) Error() string { return "" }

func status(ctx context.Context, d Driver, _ []string, _ io.Writer) error {
	code, err := d.Status(ctx)
	if err != nil || code == Succeeded {
		return err
	}
	return &codedError{code: code, err: stateError{}}
}

func printSequence(ctx context.Context, d Driver, _ []string, stdout io.Writer) error {
	number, err := d.Sequence(ctx)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(stdout, number)
	return err
}

// lockFile is locked by the command that changes state. The operator runs one at a time, but the outcome
// of an earlier one may be unknown.
const lockFile = "command.lock"

func (c command) locked(ctx context.Context, d Driver, name string, primaries []string, o Options) error {
	if !c.changes {
		return c.run(ctx, d, primaries, o.Stdout)
	}
	switch name {
	case copyCommand:
		return c.run(ctx, d, primaries, o.Stdout) // secondary has the lock
	case "stop":
		if err := EndCommands(); err != nil {
			return err
		}
	case "promote": // a copy that waits for its former primary
		if !processes.Kill(endLimit, copies) {
			return errors.New("a copy in the background does not end")
		}
	}
	unlock, err := lock(filepath.Join(d.LockDir(), lockFile))
	if err != nil {
		return err
	}
	defer unlock()
	if copying, err := Copying(); copying || err != nil {
		return errors.Join(errors.New("a copy is being made in the background"), err)
	}
	o.Log.Printf("started")
	return c.run(ctx, d, primaries, o.Stdout)
}

func lock(path string) (unlock func(), err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, Errorf(NotConfigured, "lock: %w", err)
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		file.Close()
		return nil, fmt.Errorf("another command that changes state still runs (lock %s: %w)", path, err)
	}
	return func() { file.Close() }, nil
}

// ChangeRuns reports whether a command that changes state runs in this container. It may end the
// application.
func ChangeRuns() (bool, error) {
	found, err := commandsThat(func(name string) bool { return commands[name].changes })
	return len(found) > 0, err
}

// commandsThat returns the other processes that run a command for whose name a function returns true.
func commandsThat(match func(name string) bool) ([]processes.Process, error) {
	others, err := processes.Others()
	return slices.DeleteFunc(others, func(p processes.Process) bool {
		args := p.Arguments()
		return len(args) < 3 || !match(args[2])
	}), err
}

// EndCommands kills the other commands of this container, so that none starts the application later.
func EndCommands() error {
	if !processes.Kill(endLimit, processes.Others) {
		return errors.New("another command does not end")
	}
	return nil
}
