package postgresql

import (
	"context"
	"os"
	"time"

	"github.com/stateful-operator/stateful-operator/agent/driver"
)

const (
	// strandedEvery is the interval in which a standby that does not replicate asks the primary why.
	strandedEvery = 15 * time.Second
	strandedFile  = "stranded"
)

// Status returns the state of the server. If it does not answer, it is queried again until the time is
// over: it may be starting, or ending.
func (s *Server) Status(ctx context.Context) (driver.Code, error) {
	for {
		copying, err := driver.Copying()
		if err != nil {
			return driver.Failed, err
		}
		if copying {
			return driver.Degraded, nil
		}
		running, err := servers.Running()
		if err != nil {
			return driver.Failed, err
		}
		if !running {
			return driver.Stopped, nil
		}
		if err := s.checkNoMark(); err != nil {
			return driver.Failed, err
		}
		recovering, err := s.inRecovery(ctx)
		if err == nil && !recovering {
			return driver.Primary, nil
		}
		if err == nil {
			return s.standbyStatus(ctx)
		}
		if !driver.Pause(ctx) {
			return driver.Failed, err
		}
	}
}

// standbyStatus returns an error for a standby that cannot continue with the log of the current primary,
// so that it is stopped and copied again. It must be certain: without a primary, a standby waits.
func (s *Server) standbyStatus(ctx context.Context) (driver.Code, error) {
	streaming, err := s.streaming(ctx)
	if err != nil || streaming || !s.strandedDue() {
		return driver.Secondary, nil //nolint:nilerr // without an answer, it is not certain
	}
	reason, err := s.stranded(ctx, s.config.PrimaryHost)
	if err == nil && reason != "" {
		return driver.Failed, driver.Errorf(driver.Failed, "this standby must be copied again: %s", reason)
	}
	return driver.Secondary, nil
}

func (s *Server) strandedDue() bool {
	path := s.Private.Path(strandedFile)
	if info, err := os.Stat(path); err == nil && time.Since(info.ModTime()).Abs() < strandedEvery {
		return false
	}
	return os.WriteFile(path, nil, 0o600) == nil
}

func (s *Server) streaming(ctx context.Context) (streaming bool, err error) {
	err = s.askLocal(ctx, "select exists (select from pg_stat_wal_receiver where status = 'streaming')", &streaming)
	return streaming, err
}
