package driver

import (
	"context"
	"errors"
	"time"

	"github.com/stateful-operator/stateful-operator/agent/pause"
)

// retryEvery is the interval in which a server is queried again. WaitUntil begins with shorter ones.
const retryEvery = 200 * time.Millisecond

// Pause waits before a retry. It returns false if the context ends.
func Pause(ctx context.Context) bool { return PauseFor(ctx, retryEvery) }

// PauseFor is Pause with another duration.
func PauseFor(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// WaitUntil returns when a check of a running server succeeds. It returns an error if the server ends.
func WaitUntil(ctx context.Context, running func() (bool, error), check func() error) error {
	next := pause.Growing(retryEvery)
	for {
		err := check()
		if err == nil {
			return nil
		}
		runs, runErr := running()
		if runErr != nil {
			return runErr
		}
		if !runs {
			return errors.New("the server has ended: see the log of the container")
		}
		if !PauseFor(ctx, next()) {
			return err
		}
	}
}
