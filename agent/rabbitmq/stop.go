package rabbitmq

import (
	"context"
	"slices"
	"time"

	"github.com/stateful-operator/stateful-operator/agent/driver"
	"github.com/stateful-operator/stateful-operator/agent/files"
	"github.com/stateful-operator/stateful-operator/agent/processes"
)

const (
	// endLimit is the time in which a server closes its connections, and writes its data.
	endLimit  = time.Minute
	killLimit = 10 * time.Second
)

// pidFile has the process ID of the server. It does not exist while the server is being stopped.
const pidFile = "server.pid"

// Stop ends the server. Other members become the leaders of its queues.
func (s *Server) Stop(context.Context) error {
	if err := files.Remove(s.Private.Path(pidFile)); err != nil {
		return err
	}
	if err := endTools(); err != nil {
		return err
	}
	found, err := s.list()
	if err != nil {
		return err
	}
	found = slices.DeleteFunc(found, func(p processes.Process) bool { return p.Name != virtualMachine })
	if len(found) == 0 {
		return s.kill() // scripts
	}
	if driver.Terminate(s.log, found, endLimit, func() bool { return processes.Ended(s.list) }) {
		return nil
	}
	return s.kill()
}

func (s *Server) kill() error {
	if err := files.Remove(s.Private.Path(pidFile)); err != nil {
		return err
	}
	return processes.KillServer(killLimit, s.list)
}

// Crashed reports whether a process that has ended was the server.
func (s *Server) Crashed(pid int) bool {
	return s.IsProcess(pidFile, pid)
}
