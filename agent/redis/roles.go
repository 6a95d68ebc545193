package redis

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/stateful-operator/stateful-operator/agent/driver"
	"github.com/stateful-operator/stateful-operator/agent/files"
)

// Seed starts the first member as primary.
func (s *Server) Seed(ctx context.Context) error {
	if err := s.checkStart(); err != nil {
		return err
	}
	running, err := servers.Running()
	if err != nil {
		return err
	}
	if running {
		return s.lead(ctx)
	}
	if err := s.setPending(true); err != nil {
		return err
	}
	if err := s.launch(ctx); err != nil {
		return err
	}
	return s.undoStart(s.lead(ctx))
}

// Promote makes a running secondary primary.
func (s *Server) Promote(ctx context.Context) error {
	if err := s.checkStart(); err != nil {
		return err
	}
	running, err := servers.Running()
	if err == nil && !running {
		err = errors.New("the server does not run")
	}
	if err != nil {
		return err
	}
	if err := s.waitUntilServes(ctx); err != nil {
		return err
	}
	return s.lead(ctx)
}

func (s *Server) checkStart() error {
	if s.start.Epoch < 1 {
		return driver.Errorf(driver.NotConfigured, "this command requires the argument %sTIME.EPOCH", driver.StartFlag)
	}
	return nil
}

// lead makes the server primary, and begins an epoch. If that is interrupted, status fails, so that the
// server is stopped: without an epoch of its own, its copy could not be distinguished from others.
func (s *Server) lead(ctx context.Context) error {
	if err := s.setPending(true); err != nil {
		return err
	}
	client := s.local()
	defer client.Close()
	if err := client.ReplicaOf(ctx, "NO", "ONE").Err(); err != nil {
		return err
	}
	if err := s.beginEpoch(ctx, client); err != nil {
		return err
	}
	return s.setPending(false)
}

// pendingFile exists while a start as primary is not complete. It is as old as the pod, and so is the
// server.
const pendingFile = "start-pending"

func (s *Server) pending() bool {
	_, err := os.Stat(s.Private.Path(pendingFile))
	return err == nil
}

func (s *Server) setPending(on bool) error {
	if on {
		return os.WriteFile(s.Private.Path(pendingFile), nil, 0o600)
	}
	return files.Remove(s.Private.Path(pendingFile))
}

// Secondary starts a secondary of the primary. Data that only this member has is discarded.
func (s *Server) Secondary(ctx context.Context, primaries []string) error {
	running, err := servers.Running()
	if err != nil {
		return err
	}
	if running {
		return s.checkSecondary(ctx)
	}
	if _, err := s.SourceOf(primaries); err != nil {
		return err
	}
	if err := s.setPending(false); err != nil {
		return err
	}
	// It follows the name of the primary, so that it needs no command after a failover.
	if err := s.begin(ctx, "--replicaof", s.config.PrimaryHost, s.port()); err != nil {
		return s.undoStart(err)
	}
	return s.undoStart(s.waitUntilLinked(ctx))
}

func (s *Server) checkSecondary(ctx context.Context) error {
	client := s.local()
	defer client.Close()
	found, err := inspect(ctx, client)
	if err == nil && found.primary {
		err = errors.New("the server runs as primary")
	}
	return err
}

// waitUntilLinked returns when this member has all data of the primary, and receives its writes, or when
// the copy of its data takes longer. A secondary that does not connect is an error soon, because a set runs
// one start at a time.
func (s *Server) waitUntilLinked(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, linkLimit)
	defer cancel()
	primary, err := s.remotePrimary()
	if err != nil {
		return err
	}
	defer primary.Close()
	client := s.local()
	defer client.Close()
	began := time.Now()
	err = driver.WaitUntil(ctx, servers.Running, func() error {
		err := checkLink(ctx, client, primary)
		if errors.Is(err, errCopying) && time.Since(began) > driver.HandOff {
			s.log.Printf("the copy continues in the background")
			return nil
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("not a secondary of %s: %w", s.config.PrimaryHost, err)
	}
	return nil
}

// linkLimit is the time in which a secondary must connect, and receive data.
const linkLimit = 60 * time.Second

// errCopying is the error of a secondary that receives all data. The server continues without the command.
var errCopying = errors.New("it has not received all data")

func checkLink(ctx context.Context, client, primary *redis.Client) error {
	own, err := inspect(ctx, client)
	if err != nil {
		return err
	}
	if own.copying {
		return errCopying
	}
	if own.primary || !own.linked {
		return errors.New("it is not connected")
	}
	theirs, err := inspect(ctx, primary)
	if err != nil {
		return err
	}
	if !theirs.primary || theirs.history != own.history {
		return errors.New("it follows another server")
	}
	return nil
}

const (
	// pauseLimit ends the pause of clients if this command dies.
	pauseLimit = 15 * time.Second
	// drainLimit is the time in which a secondary must have received all writes.
	drainLimit = 5 * time.Second
)

// Demote makes the primary a secondary, when a secondary has all writes. Clients wait, and then get an
// error.
func (s *Server) Demote(ctx context.Context) error {
	client := s.local()
	defer client.Close()
	found, err := inspect(ctx, client)
	if err != nil || !found.primary {
		return err
	}
	if err := client.Do(ctx, "client", "pause", pauseLimit.Milliseconds(), "write").Err(); err != nil {
		return err
	}
	if err := s.drain(ctx, client); err != nil {
		s.log.Printf("%v", err)
	}
	if err := client.ReplicaOf(ctx, s.config.PrimaryHost, s.port()).Err(); err != nil {
		return err
	}
	return client.Do(ctx, "client", "unpause").Err()
}

// drain waits until all connected secondaries have all writes. One is sufficient if the time expires.
func (s *Server) drain(ctx context.Context, client *redis.Client) error {
	deadline := time.Now().Add(drainLimit)
	for {
		found, err := inspect(ctx, client)
		if err != nil {
			return err
		}
		behind := func(offset int64) bool { return offset < found.offset }
		if len(found.replicas) > 0 && !slices.ContainsFunc(found.replicas, behind) {
			return nil
		}
		if time.Now().After(deadline) {
			if slices.ContainsFunc(found.replicas, func(offset int64) bool { return !behind(offset) }) {
				return nil
			}
			return fmt.Errorf("no secondary has all writes after %s", drainLimit)
		}
		if !driver.Pause(ctx) {
			return ctx.Err()
		}
	}
}
