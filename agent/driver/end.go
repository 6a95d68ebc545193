package driver

import (
	"syscall"
	"time"

	"github.com/stateful-operator/stateful-operator/agent/processes"
)

// Terminate sends SIGTERM to the processes of a server, and reports whether the server ends in time. Otherwise it
// must be killed, which is logged.
func Terminate(log *Log, server []processes.Process, limit time.Duration, ended func() bool) bool {
	processes.Signal(server, syscall.SIGTERM)
	if processes.WaitUntil(limit, ended) {
		return true
	}
	log.Printf("the server does not end: SIGKILL")
	return false
}
