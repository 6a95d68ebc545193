package redis

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/stateful-operator/stateful-operator/agent/processes"
)

const (
	killLimit = 10 * time.Second
	// endLimit is the time in which the server ends when it has saved its data.
	endLimit = 5 * time.Second
	// stalledLimit is the time in which a snapshot that is being written grows.
	stalledLimit = 20 * time.Second
)

// Stop saves the data, and ends the server. It fails if the server cannot save, and continues to serve. A
// server that neither answers nor saves is killed.
func (s *Server) Stop(ctx context.Context) error {
	running, err := servers.Running()
	if err != nil {
		return err
	}
	if running && s.answers(ctx) {
		s.shutDown(ctx)
	}
	// It saves as well, and needs no connection, which a server with too many clients refuses.
	found, err := servers.List()
	if err != nil {
		return err
	}
	processes.Signal(found, syscall.SIGTERM)
	for ctx.Err() == nil && !processes.WaitUntil(endLimit, servers.Ended) {
		if s.saves() {
			continue
		}
		if s.answers(ctx) {
			return errors.New("the server cannot save its data, and continues to run: see the log of the container")
		}
		s.log.Printf("the server does not end: SIGKILL")
		break
	}
	if err := kill(); err != nil {
		return err
	}
	return s.setPending(false)
}

// answers reports whether the server answers, also with an error.
func (s *Server) answers(ctx context.Context) bool {
	client := s.local()
	defer client.Close()
	err := client.Ping(ctx).Err()
	var answer redis.Error
	return err == nil || errors.As(err, &answer)
}

// saves reports whether the server writes a snapshot. It does not answer while it saves before its end.
func (s *Server) saves() bool {
	unfinished, _ := filepath.Glob(s.data("temp-*.rdb")) // the pattern is correct
	return slices.ContainsFunc(unfinished, func(path string) bool {
		info, err := os.Stat(path)
		return err == nil && time.Since(info.ModTime()).Abs() < stalledLimit
	})
}

// shutDown returns when the server has saved its data and closes the connection, or refuses.
func (s *Server) shutDown(ctx context.Context) {
	o := s.localOptions()
	o.ReadTimeout = -1 // ctx limits the time for saving
	client := redis.NewClient(o)
	defer client.Close()
	_ = client.ShutdownSave(ctx).Err() // the end of the process is the result
}

func kill() error { return servers.Kill(killLimit) }

// Crashed reports whether a process that has ended was the server. The server removes the file with its
// process ID, unless it was killed.
func (s *Server) Crashed(pid int) bool {
	return s.IsProcess(pidFile, pid)
}
