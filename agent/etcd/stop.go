package etcd

import (
	"context"
	"errors"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/stateful-operator/stateful-operator/agent/files"
	"github.com/stateful-operator/stateful-operator/agent/processes"
)

const (
	// endLimit is the time in which a server moves the leadership, and ends.
	endLimit  = 20 * time.Second
	killLimit = 10 * time.Second
)

// pidFile has the process ID of the server. It does not exist while the server is being stopped.
const pidFile = "server.pid"

// Stop ends the server. If it is the leader, it moves the leadership to another member before.
func (s *Server) Stop(context.Context) error {
	if err := files.Remove(s.Private.Path(pidFile)); err != nil {
		return err
	}
	found, err := servers()
	if err != nil {
		return err
	}
	processes.Signal(found, syscall.SIGTERM)
	ended := func() bool {
		running, err := s.running()
		return err == nil && !running
	}
	if processes.WaitUntil(endLimit, ended) {
		return nil
	}
	s.log.Printf("the server does not end: SIGKILL")
	return s.kill()
}

func (s *Server) kill() error {
	if err := files.Remove(s.Private.Path(pidFile)); err != nil {
		return err
	}
	if !processes.Kill(killLimit, servers) {
		return errors.New("the server does not end")
	}
	return nil
}

// Crashed reports whether a process that has ended was the server.
func (s *Server) Crashed(pid int) bool {
	text, err := os.ReadFile(s.Private.Path(pidFile))
	return err == nil && strings.TrimSpace(string(text)) == strconv.Itoa(pid)
}
