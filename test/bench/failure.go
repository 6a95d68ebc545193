package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
)

// failure aborts a benchmark. Figures that are already reported stay, and deferred functions run. Only
// the benchmark's own goroutine may fail. Other goroutines return errors.
type failure struct{ error }

func fail(format string, args ...any) { panic(failure{fmt.Errorf(format, args...)}) }

// check aborts the benchmark if err is not nil.
func check(err error) {
	if err != nil {
		panic(failure{err})
	}
}

// must returns the value, or aborts the benchmark if err is not nil.
func must[T any](value T, err error) T {
	check(err)
	return value
}

// attempt returns the error with which do aborted, or nil.
func attempt(do func()) (err error) {
	defer func() {
		switch cause := recover().(type) {
		case nil:
		case failure:
			err = cause.error
		default:
			panic(cause) // a bug in this program
		}
	}()
	do()
	return nil
}

// within adds context to a failure of do.
func within(what string, do func()) {
	if err := attempt(do); err != nil {
		fail("%s: %w", what, err)
	}
}

// progressInterval is the max time without output.
const progressInterval = 5 * time.Second

// waitFor polls ask until it is done, and prints the state every few seconds.
func waitFor(ctx context.Context, timeout time.Duration, what string, ask func() (done bool, state string)) {
	began, said := time.Now(), time.Now()
	for {
		done, state := ask()
		if done {
			return
		}
		if time.Since(began) > timeout {
			fail("%s was not reached within %s: %s", what, timeout, state)
		}
		if time.Since(said) >= progressInterval {
			said = time.Now()
			step("waiting for %s since %s %s", what, time.Since(began).Round(time.Second), state)
		}
		pause(ctx, 50*time.Millisecond)
	}
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
		fail("interrupted")
	case <-time.After(d):
	}
}

// spread calls do for 0 to n-1 with the concurrency of the bare pool, and stops at the first error.
func spread(ctx context.Context, n int, do func(int) error) error {
	group, running := errgroup.WithContext(ctx)
	group.SetLimit(workers)
	for i := range n {
		group.Go(func() error {
			if err := running.Err(); err != nil {
				return err
			}
			return do(i)
		})
	}
	return group.Wait()
}

// inTurns calls do for each element. The order is different in every round, because the first one uses
// a younger API server.
func inTurns[T any](rounds int, all []T, do func(round, turn int, each T)) {
	for round := range rounds {
		for turn := range all {
			do(round+1, turn+1, all[(turn+round)%len(all)])
		}
	}
}

func output(ctx context.Context, args ...string) (string, error) {
	command := exec.CommandContext(ctx, args[0], args[1:]...)
	command.Env = append(os.Environ(), "CGO_ENABLED=0")
	command.Stderr = os.Stderr
	text, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w", strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(text)), nil
}
