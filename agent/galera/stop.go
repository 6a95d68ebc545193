package galera

import (
	"context"
	"time"

	"github.com/stateful-operator/stateful-operator/agent/driver"
	"github.com/stateful-operator/stateful-operator/agent/files"
	"github.com/stateful-operator/stateful-operator/agent/processes"
)

const (
	// endLimit is the time in which a server writes its data, and ends.
	endLimit  = 3 * time.Minute
	killLimit = 10 * time.Second
)

// pidFile has the process ID of the server. It does not exist while the server is being stopped.
const pidFile = "server.pid"

// tag is a variable of the server and of the scripts that it runs, which write to its data folder.
const tag = "STATEFUL_OPERATOR_SERVER=" + Name

// list returns the processes of the server.
func (s *Server) list() ([]processes.Process, error) { return servers.ListTagged(tag) }

func (s *Server) running() (bool, error) {
	found, err := s.list()
	return len(found) > 0, err
}

// Stop ends the server, which leaves the cluster before. A server that receives a copy would end when it is
// complete.
func (s *Server) Stop(context.Context) error {
	if p, err := s.readState(); err == nil && !p.known() && s.copying() {
		return s.kill()
	}
	if err := files.Remove(s.Private.Path(pidFile)); err != nil {
		return err
	}
	found, err := servers.List()
	if err != nil {
		return err
	}
	driver.Terminate(s.log, found, endLimit, servers.Ended)
	return s.kill() // scripts can remain
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
