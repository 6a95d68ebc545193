// Package scribe writes down what programs testify that share no folder with
// those who ask, such as pods and the pod of a scorecard test. They tell it
// over the network, a line at a time, and go on when it is written. The files
// are those that they would write themselves, so who reads them need not know.
//
// Times are the scribe's own. A line is stamped after it was said and before the
// speaker goes on. What must not overlap is ordered by cause and effect: the
// connection of a program that has ended is closed, by the kernel, before
// anybody can start the next one, and the scribe looks for that before it
// believes a start.
package scribe

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/stateful-operator/stateful-operator/test/faults/ledger/record"
	"github.com/stateful-operator/stateful-operator/test/faults/testimony"
)

// Scribe keeps what it is told in files of one folder.
type Scribe struct {
	root     string
	listener net.Listener

	mu   sync.Mutex        // one line at a time
	runs map[*run]struct{} // that live, or whose end may not be noted yet
}

// Start keeps a scribe at an address, such as ":0", until it is closed.
func Start(address, root string) (*Scribe, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	s := &Scribe{root: root, listener: listener, runs: map[*run]struct{}{}}
	go s.accept()
	return s, nil
}

// Port is where it is reached.
func (s *Scribe) Port() int { return s.listener.Addr().(*net.TCPAddr).Port }

// Close lets nobody in any more. Those who are in stay.
func (s *Scribe) Close() error { return s.listener.Close() }

func (s *Scribe) accept() {
	for {
		conn, err := s.listener.Accept()
		if err != nil {
			return
		}
		go s.serve(conn.(*net.TCPConn))
	}
}

// listener takes lines from one connection, and is told of its end.
type listener interface {
	hear(line []byte) error
	end()
}

// serve answers each line by an empty one, or by what was wrong with it.
func (s *Scribe) serve(conn *net.TCPConn) {
	defer conn.Close()
	// A machine that is gone closes nothing.
	_ = conn.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true, Idle: time.Second, Interval: time.Second, Count: 5})
	lines := bufio.NewScanner(conn)
	lines.Buffer(nil, 1<<20)
	if !lines.Scan() {
		return
	}
	to, err := s.greet(conn, lines.Bytes())
	if answer(conn, err) != nil || err != nil {
		return
	}
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		to.end()
	}()
	for lines.Scan() {
		s.mu.Lock()
		err := to.hear(lines.Bytes())
		s.mu.Unlock()
		if answer(conn, err) != nil {
			return
		}
	}
}

func answer(conn net.Conn, err error) error {
	words := ""
	if err != nil {
		words = strings.ReplaceAll(err.Error(), "\n", " ")
	}
	_, err = conn.Write([]byte(words + "\n"))
	return err
}

func (s *Scribe) greet(conn *net.TCPConn, line []byte) (listener, error) {
	var hello testimony.Hello
	if err := json.Unmarshal(line, &hello); err != nil {
		return nil, fmt.Errorf("no greeting: %w", err)
	}
	if !filepath.IsLocal(hello.Path) {
		return nil, fmt.Errorf("the path %q leaves the folder", hello.Path)
	}
	path := filepath.Join(s.root, hello.Path)
	switch hello.What {
	case testimony.Diary:
		return &run{scribe: s, dir: path, conn: conn}, nil
	case testimony.Journal:
		return &file{path: path, change: stamped}, nil
	case testimony.History:
		return &file{path: path}, nil
	}
	return nil, fmt.Errorf("%q is nothing that a scribe keeps", hello.What)
}

// file takes lines as they are, or changed.
type file struct {
	path   string
	change func([]byte) ([]byte, error)
}

func (f *file) hear(line []byte) (err error) {
	if f.change != nil {
		if line, err = f.change(line); err != nil {
			return err
		}
	}
	return add(f.path, line)
}

func (f *file) end() {}

// stamped is a line of a ledger's journal at the time of now.
func stamped(text []byte) ([]byte, error) {
	var line record.Line
	if err := json.Unmarshal(text, &line); err != nil {
		return nil, err
	}
	line.At = testimony.Now()
	return json.Marshal(line)
}

// add appends a line to a file.
func add(path string, line []byte) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o666)
	if err != nil {
		return err
	}
	_, err = file.Write(append(append([]byte{}, line...), '\n'))
	return errors.Join(err, file.Close())
}
