package main

import (
	"os"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/stateful-operator/stateful-operator/test/faults/ledger/record"
)

// server is the child that serves.
type server struct {
	pid   int
	run   string
	input *os.File    // it ends when this is closed
	told  atomic.Bool // to stop
	ended chan struct{}
}

// endsNow tells whether a server that did not answer is one that ends. Its last
// connection is gone a moment before it is.
func (s *server) endsNow() bool {
	select {
	case <-s.ended:
		return true
	case <-time.After(time.Second):
		return false
	}
}

// launch starts the server. Its socket is there before it is, so that the first
// order waits for it.
func (v *supervisor) launch() (*server, error) {
	listener, err := listenUnix(v.serverSocket())
	if err != nil {
		return nil, err
	}
	defer listener.Close()
	orders, err := listener.File()
	if err != nil {
		return nil, err
	}
	defer orders.Close()
	theirs, input, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer theirs.Close()
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	s := &server{run: newRun(), input: input, ended: make(chan struct{})}
	v.mu.Lock() // reap must know it before it can end
	defer v.mu.Unlock()
	s.pid, err = syscall.ForkExec(self, []string{"ledger", "serve", s.run}, &syscall.ProcAttr{
		Env:   os.Environ(),
		Files: []uintptr{theirs.Fd(), 1, 2, orders.Fd()},
	})
	runtime.KeepAlive(theirs)
	if err != nil {
		input.Close()
		return nil, err
	}
	v.server, v.role, v.failed = s, none, false
	return s, nil
}

// kill ends a server by force. Nobody else can have its number before reap has
// taken its exit.
func (v *supervisor) kill(s *server) {
	v.mu.Lock()
	if v.server == s {
		_ = syscall.Kill(s.pid, syscall.SIGKILL)
	}
	v.mu.Unlock()
	<-s.ended
}

// reap takes the exit of every process that ended: the server's, and those of
// orphans, whom nobody else takes.
func (v *supervisor) reap() {
	v.mu.Lock()
	defer v.mu.Unlock()
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
		if err == syscall.EINTR {
			continue
		}
		if err != nil || pid <= 0 {
			return
		}
		v.bury(pid)
	}
}

// bury notes that a process has ended. mu is held.
func (v *supervisor) bury(pid int) {
	s := v.server
	if s == nil || s.pid != pid {
		return
	}
	v.journal.say(record.Line{What: record.Over, Other: s.run})
	v.failed = v.role == primary && !s.told.Load()
	v.server, v.role = nil, none
	s.input.Close()
	close(s.ended)
}
