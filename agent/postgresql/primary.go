package postgresql

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/stateful-operator/stateful-operator/agent/driver"
)

// Seed starts a primary. An existing copy continues on a new timeline, so that copies with different
// histories never share one.
func (s *Server) Seed(ctx context.Context) error {
	if err := endWriters(); err != nil {
		return err
	}
	running, err := servers.Running()
	if err != nil {
		return err
	}
	if running {
		return s.Promote(ctx)
	}
	state, _, err := s.copyState()
	if err != nil {
		return err
	}
	if state == copyIncomplete {
		if err := s.checkUnused(); err != nil {
			return err
		}
	}
	if state != copyPresent {
		s.log.Printf("creates an empty database")
		if err := s.create(ctx); err != nil {
			return err
		}
		return s.launch(ctx, asPrimary)
	}
	if err := s.begin(ctx, forSeed); err != nil {
		return s.undoStart(err)
	}
	return s.promoteServer(ctx, s.requestPromotionByFile)
}

// checkUnused refuses to replace a copy that may have had data of users by an empty one.
func (s *Server) checkUnused() error {
	mark, err := s.mark()
	if err != nil || mark == beingCreated {
		return err
	}
	return driver.Errorf(driver.NotInstalled, "the copy in %s is incomplete (%s did not end), and cannot be seeded: "+
		"select another member, or delete the folder and %s to start with an empty database", s.config.DataDir, mark, s.markFile())
}

// Promote makes a running standby primary.
func (s *Server) Promote(ctx context.Context) error {
	running, err := servers.Running()
	if err != nil {
		return err
	}
	if !running {
		return errors.New("no server runs")
	}
	if err := s.checkNoMark(); err != nil {
		return err
	}
	recovering, err := s.inRecovery(ctx)
	if err != nil || !recovering {
		return err
	}
	return s.promoteServer(ctx, s.requestPromotion)
}

// requestPromotion asks a server that accepts connections.
func (s *Server) requestPromotion(ctx context.Context) error {
	var promoted bool
	return s.askLocal(ctx, "select pg_promote(false)", &promoted)
}

// requestPromotionByFile asks a server that does not accept connections before its promotion.
func (s *Server) requestPromotionByFile(ctx context.Context) error {
	major, err := s.presentMajor()
	if err != nil {
		return err
	}
	programs, err := s.installed(ctx, major)
	if err != nil {
		return err
	}
	_, err = s.output(ctx, programs.path("pg_ctl"), "promote", "--no-wait", "--pgdata="+s.config.DataDir)
	return err
}

// A promotion is requested again after these times: a server that starts refuses the request.
const (
	afterRefusal = 100 * time.Millisecond
	afterRequest = time.Second
)

// promoteServer requests a promotion until the server is primary. A promotion cannot be withdrawn, so the
// server is stopped if it is not primary in time.
func (s *Server) promoteServer(ctx context.Context, request func(context.Context) error) error {
	for {
		requestErr, limit := request(ctx), afterRequest
		if requestErr != nil {
			limit = afterRefusal
		}
		limited, cancel := context.WithTimeout(ctx, limit)
		err := driver.WaitUntil(limited, mayRun, func() error { return s.checkPrimary(ctx) })
		again := limited.Err() != nil && ctx.Err() == nil
		cancel()
		switch {
		case err == nil:
			return nil
		case !again:
			return s.undoStart(fmt.Errorf("the server is not primary: %w", errors.Join(requestErr, err)))
		}
	}
}

// mayRun reports whether a server runs. It returns true if that is not known.
func mayRun() (bool, error) {
	running, err := servers.Running()
	return running || err != nil, nil
}

// checkPrimary returns an error while the server is in recovery, or does not respond.
func (s *Server) checkPrimary(ctx context.Context) error {
	recovering, err := s.inRecovery(ctx)
	if err == nil && recovering {
		err = errors.New("it is in recovery")
	}
	return err
}

// Demote makes a primary a standby. Its shutdown waits until connected standbys have all records.
func (s *Server) Demote(ctx context.Context) error {
	running, err := servers.Running()
	if err != nil || !running {
		return err
	}
	if recovering, err := s.inRecovery(ctx); err == nil && recovering {
		return nil
	}
	if err := s.Stop(ctx); err != nil {
		return err
	}
	return s.launch(ctx, asStandby)
}
