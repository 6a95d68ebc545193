package postgresql

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/stateful-operator/stateful-operator/agent/processes"
)

// pidFile has the process ID of the server in its first line.
const pidFile = "postmaster.pid"

const (
	// fastLimit is the time for a shutdown that waits until connected standbys have all records.
	fastLimit        = 60 * time.Second
	fastWhenHanging  = 5 * time.Second
	fastAfterFailure = 5 * time.Second
	immediateLimit   = 5 * time.Second
	killLimit        = 10 * time.Second
)

// Stop ends all processes of the server.
func (s *Server) Stop(ctx context.Context) error {
	if err := endWriters(); err != nil {
		return err
	}
	fast := fastLimit
	running, err := servers.Running()
	if err == nil && running {
		if _, err := s.inRecovery(ctx); err != nil {
			fast = fastWhenHanging
		}
	}
	return s.end(fast)
}

// writers are programs that write into the data folder.
var writers = []string{"pg_basebackup", "pg_rewind", "initdb"}

// endWriters ends programs of a command that was killed. The caller holds the lock of commands. The process
// with which pg_basebackup receives the log survives pg_basebackup, and would write into the next copy.
func endWriters() error {
	if !processes.Kill(killLimit, func() ([]processes.Process, error) { return processes.Named(writers...) }) {
		return errors.New("a program of an earlier command does not end")
	}
	return nil
}

// end returns nil only if no process of a server remains. A shutdown that is not fast requires recovery
// at the next start.
func (s *Server) end(fast time.Duration) error {
	for _, step := range []struct {
		name   string
		signal syscall.Signal
		limit  time.Duration
	}{
		{"fast", syscall.SIGINT, fast},
		{"immediate", syscall.SIGQUIT, immediateLimit},
	} {
		found, err := servers.List()
		if err != nil {
			return err
		}
		if len(found) == 0 {
			return nil
		}
		if step.signal != syscall.SIGINT {
			s.log.Printf("%d processes have not ended: %s shutdown", len(found), step.name)
		}
		processes.Signal(postmasters(found), step.signal)
		if processes.WaitUntil(step.limit, servers.Ended) {
			return nil
		}
	}
	s.log.Printf("the server does not end: SIGKILL")
	if processes.Kill(killLimit, servers.List) {
		return nil
	}
	found, err := servers.List()
	return errors.Join(err, fmt.Errorf("processes %v do not end", found))
}

// Crashed reports whether a process that has ended was the server. The server removes the file with its
// process ID, unless it was killed.
func (s *Server) Crashed(pid int) bool {
	text, err := os.ReadFile(s.data(pidFile))
	first, _, _ := strings.Cut(string(text), "\n")
	return err == nil && first == strconv.Itoa(pid)
}

// postmasters returns the processes whose parent is not a process of the server.
func postmasters(all []processes.Process) []processes.Process {
	isServer := map[int]bool{}
	for _, p := range all {
		isServer[p.ID] = true
	}
	var roots []processes.Process
	for _, p := range all {
		if !isServer[p.Parent] {
			roots = append(roots, p)
		}
	}
	return roots
}
