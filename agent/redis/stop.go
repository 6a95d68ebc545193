package redis

import (
	"context"
	"errors"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/stateful-operator/stateful-operator/agent/processes"
)

const (
	killLimit = 10 * time.Second
	// endLimit is the time in which the server ends when it has saved its data.
	endLimit = 5 * time.Second
)

// Stop saves the data, and ends the server. It fails if the server cannot save, and continues to serve. A
// server that does not answer is killed.
func (s *Server) Stop(ctx context.Context) error {
	running, err := s.running()
	if err != nil || !running {
		return err
	}
	client := s.local()
	defer client.Close()
	if err := client.Ping(ctx).Err(); err == nil || isLoading(err) {
		s.shutDown(ctx)
		if processes.WaitUntil(endLimit, s.ended) {
			return nil
		}
		if client.Ping(ctx).Err() == nil {
			return errors.New("the server cannot save its data, and continues to run: see the log of the container")
		}
	}
	s.log.Printf("the server does not end: SIGKILL")
	return kill()
}

// shutDown returns when the server has saved its data and closes the connection, or refuses.
func (s *Server) shutDown(ctx context.Context) {
	o := s.localOptions()
	o.ReadTimeout = -1 // ctx limits the time for saving
	client := redis.NewClient(o)
	defer client.Close()
	_ = client.ShutdownSave(ctx).Err() // the end of the process is the result
}

func kill() error {
	if !processes.Kill(killLimit, servers) {
		return errors.New("the server does not end")
	}
	return nil
}

// Crashed reports whether a process that has ended was the server. The server removes the file with its
// process ID, unless it was killed.
func (s *Server) Crashed(pid int) bool {
	text, err := os.ReadFile(s.private.Path(pidFile))
	return err == nil && strings.TrimSpace(string(text)) == strconv.Itoa(pid)
}

func isLoading(err error) bool { return err != nil && strings.HasPrefix(err.Error(), "LOADING") }
