// Package scribe records lines of programs that share no folder with their readers, such as pods and
// the pod of a scorecard test. Programs send a line over the network and continue when it is
// acknowledged. Lines of witnesses are passed to the observer of their folder. Lines of ledgers are
// written into the same files that ledgers write themselves. So readers need not distinguish the two
// cases.
//
// Times are the scribe's. Runs that must not overlap are ordered by cause and effect: the kernel closes
// the connection of a program that has ended before the next one can be started.
package scribe

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/stateful-operator/stateful-operator/test/faults/ledger/record"
	"github.com/stateful-operator/stateful-operator/test/faults/observer"
	"github.com/stateful-operator/stateful-operator/test/faults/testimony"
)

// Scribe records lines into one folder.
type Scribe struct {
	root     string
	listener net.Listener
	mu       sync.Mutex // one line at a time
}

// Start runs a scribe at an address, such as ":0", until Close.
func Start(address, root string) (*Scribe, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	s := &Scribe{root: root, listener: listener}
	go testimony.Accept(listener.Accept, func(conn net.Conn) { s.serve(conn.(*net.TCPConn)) })
	return s, nil
}

// Port returns the scribe's port.
func (s *Scribe) Port() int { return s.listener.Addr().(*net.TCPAddr).Port }

// Close accepts no new connections. Open connections stay.
func (s *Scribe) Close() error { return s.listener.Close() }

// serve handles a connection. Its first line specifies the handling of the others.
func (s *Scribe) serve(conn *net.TCPConn) {
	// A machine that is powered off closes no connections.
	_ = conn.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true, Idle: time.Second, Interval: time.Second, Count: 5})
	var to listener
	testimony.Serve(conn, func(line []byte) (err error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if to != nil {
			return to.Hear(line)
		}
		to, err = s.greet(conn, line)
		return err
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	if to != nil {
		to.End()
	}
}

// listener handles the lines and the end of one connection.
type listener interface {
	Hear(line []byte) error
	End()
}

func (s *Scribe) greet(conn *net.TCPConn, line []byte) (listener, error) {
	var hello testimony.Hello
	if err := json.Unmarshal(line, &hello); err != nil {
		return nil, fmt.Errorf("no greeting: %w", err)
	}
	if !filepath.IsLocal(hello.Path) {
		return nil, fmt.Errorf("the path %q is outside the folder", hello.Path)
	}
	path := filepath.Join(s.root, hello.Path)
	switch hello.What {
	case testimony.Diary:
		if folder := observer.Find(path); folder != nil {
			return folder.Program(conn, true), nil
		}
		return nil, fmt.Errorf("no observer for %q", hello.Path)
	case testimony.Journal:
		return file{path: path, stamped: true}, nil
	case testimony.History:
		return file{path: path}, nil
	}
	return nil, fmt.Errorf("%q is not a record that a scribe stores", hello.What)
}

// file writes lines unchanged, or with the current time for a ledger's journal.
type file struct {
	path    string
	stamped bool
}

// Hear appends a line.
func (f file) Hear(text []byte) error {
	if f.stamped {
		var line record.Line
		if err := json.Unmarshal(text, &line); err != nil {
			return err
		}
		line.At = testimony.Now()
		text = bytes.TrimSpace(record.Marshal(line))
	}
	to, err := os.OpenFile(f.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o666)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(to, "%s\n", text)
	return errors.Join(err, to.Close())
}

// End does nothing.
func (f file) End() {}
