package testimony

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
)

// What a scribe is asked to keep.
const (
	// Diary is what the witnesses of one application say. The run that a
	// connection tells of lives while it is open.
	Diary = "diary"
	// Journal is a file of lines, whose times become the scribe's.
	Journal = "journal"
	// History is a file of lines as they are.
	History = "history"
)

// Scheme begins the address of what a scribe keeps: tcp://host:port/path.
const Scheme = "tcp://"

// Hello is the first line of a connection to a scribe.
type Hello struct {
	What string `json:"what"`
	Path string `json:"path"`
}

// Remote is a connection of somebody who testifies. It is open, and a run is one
// that runs, until the last process that has it ends.
type Remote struct {
	net.Conn
	mu      sync.Mutex // one line at a time
	answers *bufio.Reader
}

// Dial reaches the scribe of an address.
func Dial(address, what string) (*Remote, error) {
	host, path, ok := strings.Cut(strings.TrimPrefix(address, Scheme), "/")
	if !ok {
		return nil, fmt.Errorf("%q is no %shost:port/path", address, Scheme)
	}
	r, err := dial("tcp", host)
	if err != nil {
		return nil, err
	}
	hello, err := json.Marshal(Hello{What: what, Path: path})
	if err == nil {
		_, err = r.Write(append(hello, '\n'))
	}
	if err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

// DialFolder reaches the observer of a folder. The error is fs.ErrNotExist where
// there is none.
func DialFolder(dir string) (*Remote, error) { return dial("unix", filepath.Join(dir, SocketFile)) }

func dial(network, address string) (*Remote, error) {
	conn, err := net.DialTimeout(network, address, 10*time.Second)
	if err != nil {
		return nil, fmt.Errorf("reaching who listens: %w", err)
	}
	return &Remote{Conn: conn, answers: bufio.NewReader(conn)}, nil
}

// File is the connection for another process.
func (r *Remote) File() (*os.File, error) {
	return r.Conn.(interface{ File() (*os.File, error) }).File() // each kind of connection has it
}

// Write says one line, with its end, and waits until it is heard.
func (r *Remote) Write(line []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, err := r.Conn.Write(line); err != nil {
		return 0, fmt.Errorf("telling who listens: %w", err)
	}
	answer, err := r.answers.ReadString('\n')
	if err != nil {
		return 0, fmt.Errorf("waiting for who listens: %w", err)
	}
	if answer = strings.TrimSpace(answer); answer != "" {
		return 0, fmt.Errorf("who listens says: %s", answer)
	}
	return len(line), nil
}

// Accept hands over each connection that comes, until there can be none any more.
func Accept[C net.Conn](accept func() (C, error), serve func(C)) {
	for {
		conn, err := accept()
		if err != nil {
			return
		}
		go func() {
			defer conn.Close()
			serve(conn)
		}()
	}
}

// Serve answers each line that somebody says by an empty one, or by what was
// wrong with it, until the connection ends.
func Serve(conn net.Conn, hear func(line []byte) error) {
	lines := bufio.NewScanner(conn)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		words := ""
		if err := hear(lines.Bytes()); err != nil {
			words = strings.ReplaceAll(err.Error(), "\n", " ")
		}
		if _, err := conn.Write([]byte(words + "\n")); err != nil {
			return
		}
	}
}
