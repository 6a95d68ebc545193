package redis

import (
	"context"
	"errors"

	"github.com/stateful-operator/stateful-operator/agent/driver"
)

var errLoading = errors.New("the server reads its data")

// Status returns the state of the server. If it does not answer, or reads its data as primary, it is
// queried again until the time is over.
func (s *Server) Status(ctx context.Context) (driver.Code, error) {
	client := s.local()
	defer client.Close()
	for {
		running, err := servers.Running()
		if err != nil {
			return driver.Failed, err
		}
		if !running {
			return driver.Stopped, nil
		}
		found, err := inspect(ctx, client)
		switch {
		case err == nil && found.copying:
			return driver.Degraded, nil
		case err == nil && !found.primary:
			return driver.Secondary, nil
		case err == nil && !found.loading && !s.pending():
			return driver.Primary, nil
		case err == nil && !found.loading:
			return driver.Failed, errors.New("the start as primary is not complete")
		case err == nil:
			err = errLoading
		}
		if !driver.Pause(ctx) {
			return driver.Failed, err
		}
	}
}
