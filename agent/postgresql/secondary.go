package postgresql

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/stateful-operator/stateful-operator/agent/driver"
	"github.com/stateful-operator/stateful-operator/agent/postgresql/settings"
)

const (
	// askAgain is the interval in which a standby that does not replicate is examined.
	askAgain = 5 * time.Second
	// progressLimit is the time in which a standby that has started must replay or receive records.
	progressLimit = time.Minute
)

// Secondary starts a standby of the primary. Its copy is kept if possible, rewound if it has records that
// the primary does not have, and otherwise copied again.
func (s *Server) Secondary(ctx context.Context, primaries []string) error {
	if err := endWriters(); err != nil {
		return err
	}
	running, err := servers.Running()
	if err != nil {
		return err
	}
	if running {
		return s.checkStandby(ctx)
	}
	copies := func() bool {
		mark, err := s.mark()
		return err == nil && mark == beingCopied
	}
	return driver.CopyInBackground(Name, primaries, s.Private.Path(copyError), s.log, copies)
}

// copyError is the file with the error of a copy in the background.
const copyError = "copy-error"

// Copy starts a standby, as Secondary does.
func (s *Server) Copy(ctx context.Context, primaries []string) error {
	host, err := s.SourceOf(primaries)
	if err != nil {
		return err
	}
	if err := s.prepare(ctx, host); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, s.StartLimit()) // only the copy itself can take longer
	defer cancel()
	if err := s.launch(ctx, asStandby); err != nil {
		return err
	}
	return s.undoStart(s.waitUntilStreaming(ctx, host))
}

func (s *Server) checkStandby(ctx context.Context) error {
	recovering, err := s.inRecovery(ctx)
	if err == nil && !recovering {
		err = errors.New("the server runs as primary")
	}
	return err
}

// prepare makes the copy one that the primary can continue.
func (s *Server) prepare(ctx context.Context, host string) error {
	state, major, err := s.copyState()
	if err != nil {
		return err
	}
	primary, err := s.remote(ctx, host)
	if err != nil {
		return fmt.Errorf("connect to %s: %w", host, err)
	}
	defer closing(primary)
	if err := checkPrimary(ctx, primary, host); err != nil {
		return err
	}
	if state != copyPresent {
		return s.copyFrom(ctx, host)
	}
	c, err := s.compare(ctx, primary, host, major)
	if err != nil {
		return err
	}
	s.log.Printf("the copy of this member %s", c.reason)
	switch c.action {
	case keepCopy:
		return nil
	case rewindCopy:
		if s.rewind(ctx, primary, host, c) {
			return nil
		}
	}
	return s.copyFrom(ctx, host)
}

func checkPrimary(ctx context.Context, primary *pgx.Conn, host string) error {
	var recovering bool
	if err := primary.QueryRow(ctx, "select pg_is_in_recovery()").Scan(&recovering); err != nil {
		return fmt.Errorf("query %s: %w", host, err)
	}
	if recovering {
		return fmt.Errorf("%s is not primary", host)
	}
	return nil
}

// copyFrom deletes the copy, and makes a new one. pg_basebackup returns when the copy is on disk.
func (s *Server) copyFrom(ctx context.Context, host string) error {
	programs, err := s.installed(ctx, "")
	if err != nil {
		return err
	}
	s.log.Printf("copies all data of %s", host)
	if err := s.setMark(beingCopied); err != nil {
		return err
	}
	if err := s.deleteData(); err != nil {
		return err
	}
	_, err = s.output(ctx, programs.path("pg_basebackup"), "--pgdata="+s.config.DataDir, "--no-password",
		"--wal-method=stream", "--checkpoint=fast", "--dbname="+s.upstream(host, settings.Replicator).String())
	if err != nil {
		return err
	}
	if err := s.checkVersion(programs); err != nil {
		return err
	}
	return s.removeMark()
}

func (s *Server) checkVersion(programs installation) error {
	text, err := os.ReadFile(s.data(versionFile))
	if major := strings.TrimSpace(string(text)); err == nil && major != programs.major {
		return driver.Errorf(driver.NotInstalled, "the primary is of version %s, and the image has %s", major, programs.major)
	}
	return err
}

// rewind returns false if the data must be copied. pg_rewind requires a copy that was stopped cleanly, so
// one that was killed is recovered first. After a failure the copy has parts of both histories, and the
// mark remains.
func (s *Server) rewind(ctx context.Context, primary *pgx.Conn, host string, c comparison) bool {
	err := s.setMark(beingRewound)
	if err == nil && !c.log.control.CleanlyStopped() {
		err = s.recoverCopy(ctx)
	}
	if err == nil {
		// Before version 16, pg_rewind reads the timeline of the primary from its last checkpoint.
		_, err = primary.Exec(ctx, "checkpoint")
	}
	if err == nil {
		_, err = s.output(ctx, c.log.programs.path("pg_rewind"), "--target-pgdata="+s.config.DataDir, "--no-ensure-shutdown",
			"--source-server="+append(s.upstream(host, settings.Superuser), [2]string{"dbname", database}).String())
	}
	if err == nil {
		err = s.removeMark()
	}
	if err != nil {
		s.log.Printf("the copy cannot be rewound: %v", err)
	}
	return err == nil
}

// recoverCopy starts and stops a server that no client can reach. The mark exists, so it does not matter
// that the copy gets records that no other has.
func (s *Server) recoverCopy(ctx context.Context) error {
	mark, err := s.mark()
	if err != nil {
		return err
	}
	if mark != beingRewound {
		return fmt.Errorf("the copy is not marked")
	}
	if err := s.launch(ctx, forRecovery); err != nil {
		return err
	}
	return s.end(fastLimit)
}

// waitUntilStreaming returns an error for a standby that cannot continue with the log of the primary, or
// that makes no progress for a while. A standby replays its own log before it connects.
func (s *Server) waitUntilStreaming(ctx context.Context, host string) error {
	var replayed string
	asked, progressed := time.Now(), time.Now()
	for {
		var streaming bool
		var at string
		err := s.askLocal(ctx, "select exists (select from pg_stat_wal_receiver where status = 'streaming'), "+
			"coalesce(pg_last_wal_replay_lsn(), '0/0')::text", &streaming, &at)
		if err == nil && streaming {
			return nil
		}
		if err == nil && at != replayed {
			replayed, progressed = at, time.Now()
		}
		running, runErr := servers.Running()
		if runErr == nil && !running {
			return errors.New("the server has ended: see the log of the container")
		}
		if time.Since(asked) > askAgain {
			asked = time.Now()
			if reason, err := s.stranded(ctx, host); err == nil && reason != "" {
				return fmt.Errorf("the standby does not replicate: %s", reason)
			}
		}
		if time.Since(progressed) > progressLimit || !driver.Pause(ctx) {
			return errors.Join(errors.New("the standby does not replicate in time"), err)
		}
	}
}
