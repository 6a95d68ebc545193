package etcd

import (
	"context"
	"time"

	"github.com/stateful-operator/stateful-operator/agent/driver"
	"github.com/stateful-operator/stateful-operator/agent/files"
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
	found, err := servers.List()
	if err != nil {
		return err
	}
	if driver.Terminate(s.log, found, endLimit, servers.Ended) {
		return nil
	}
	return s.kill()
}

func (s *Server) kill() error {
	if err := files.Remove(s.Private.Path(pidFile)); err != nil {
		return err
	}
	return servers.Kill(killLimit)
}

// Crashed reports whether a process that has ended was the server.
func (s *Server) Crashed(pid int) bool {
	return s.IsProcess(pidFile, pid)
}
