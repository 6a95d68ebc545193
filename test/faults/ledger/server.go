package main

import (
	"io"
	"os"
	"os/exec"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/stateful-operator/stateful-operator/test/faults/ledger/record"
)

// server is the child process that serves.
type server struct {
	process *os.Process
	run     string
	input   io.Closer   // the server ends when it is closed
	told    atomic.Bool // to stop
	ended   chan struct{}
}

// endsNow reports whether a server that did not respond is ending. Its last connection is closed
// shortly before it ends.
func (s *server) endsNow() bool {
	select {
	case <-s.ended:
		return true
	case <-time.After(time.Second):
		return false
	}
}

// launch starts the server. The socket is created before, so that the first order waits for the server.
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
	s := &server{run: newRun(), ended: make(chan struct{})}
	command := exec.Command(os.Args[0], "serve", s.run)
	command.Stdout, command.Stderr, command.ExtraFiles = os.Stdout, os.Stderr, []*os.File{orders}
	if s.input, err = command.StdinPipe(); err != nil {
		return nil, err
	}
	v.mu.Lock() // reap must see the server before it can end
	defer v.mu.Unlock()
	if err := command.Start(); err != nil {
		return nil, err
	}
	s.process = command.Process
	v.server, v.role, v.failed = s, none, false
	return s, nil
}

// kill kills a server.
func (v *supervisor) kill(s *server) {
	_ = s.process.Kill() // the error means that it has ended
	<-s.ended
}

// reap reaps every ended process: the server, and orphans, which have no other parent. So nothing else
// may wait for the command.
func (v *supervisor) reap() {
	v.mu.Lock()
	defer v.mu.Unlock()
	for {
		pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
		if err != nil || pid <= 0 {
			return
		}
		if s := v.server; s != nil && s.process.Pid == pid {
			v.journal.say(record.Line{What: record.Over, Other: s.run})
			v.failed = v.role == primary && !s.told.Load()
			v.server, v.role = nil, none
			_ = s.process.Release()
			s.input.Close()
			close(s.ended)
		}
	}
}
