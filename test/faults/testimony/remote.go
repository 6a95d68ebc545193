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

// Kinds of connections to a scribe.
const (
	// Diary has the lines of one application's witnesses. The run of a connection is alive while the
	// connection is open.
	Diary = "diary"
	// Journal is a file of lines, with the scribe's times.
	Journal = "journal"
	// History is a file of unchanged lines.
	History = "history"
)

// Scheme is the prefix of an address at a scribe: tcp://host:port/path.
const Scheme = "tcp://"

// Hello is the first line of a connection to a scribe.
type Hello struct {
	What string `json:"what"`
	Path string `json:"path"`
}

// Remote is a connection to a scribe or an observer. It stays open, and its run counts as alive, until
// the last process that has it ends.
type Remote struct {
	net.Conn
	mu      sync.Mutex // one line at a time
	answers *bufio.Reader
}

// Dial connects to the scribe of an address.
func Dial(address, what string) (*Remote, error) {
	host, path, ok := strings.Cut(strings.TrimPrefix(address, Scheme), "/")
	if !ok {
		return nil, fmt.Errorf("%q is not a %shost:port/path", address, Scheme)
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

// DialFolder connects to the observer of a folder. The error is fs.ErrNotExist if there is none.
func DialFolder(dir string) (*Remote, error) { return dial("unix", filepath.Join(dir, SocketFile)) }

func dial(network, address string) (*Remote, error) {
	conn, err := net.DialTimeout(network, address, 10*time.Second)
	if err != nil {
		return nil, fmt.Errorf("connect to the observer: %w", err)
	}
	return &Remote{Conn: conn, answers: bufio.NewReader(conn)}, nil
}

// File returns the connection's file for another process.
func (r *Remote) File() (*os.File, error) {
	return r.Conn.(interface{ File() (*os.File, error) }).File() // every kind of connection has it
}

// Write sends one complete line and waits for the acknowledgment.
func (r *Remote) Write(line []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, err := r.Conn.Write(line); err != nil {
		return 0, fmt.Errorf("send to the observer: %w", err)
	}
	answer, err := r.answers.ReadString('\n')
	if err != nil {
		return 0, fmt.Errorf("wait for the observer: %w", err)
	}
	if answer = strings.TrimSpace(answer); answer != "" {
		return 0, fmt.Errorf("the observer returned: %s", answer)
	}
	return len(line), nil
}

// Accept calls serve for each new connection, until accept fails.
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

// Serve acknowledges each line by an empty line, or by the error of hear, until the connection ends.
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
