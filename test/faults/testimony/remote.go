package testimony

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"
)

// What a scribe is asked to keep.
const (
	// Diary is a folder with the diary and the locks of the runs of one
	// application. The run that a connection tells of lives while it is open.
	Diary = "diary"
	// Journal is a file of lines, whose times become the scribe's.
	Journal = "journal"
	// History is a file of lines as they are.
	History = "history"
)

// Scheme begins the address of what a scribe keeps: tcp://host:port/path.
const Scheme = "tcp://"

// Hello is the first line of a connection.
type Hello struct {
	What string `json:"what"`
	Path string `json:"path"`
}

// Remote is somebody who testifies to a scribe, because no folder is shared.
type Remote struct {
	conn    net.Conn
	mu      sync.Mutex // one line at a time
	answers *bufio.Reader
}

// Dial reaches the scribe of an address.
func Dial(address, what string) (*Remote, error) {
	host, path, ok := strings.Cut(strings.TrimPrefix(address, Scheme), "/")
	if !ok {
		return nil, fmt.Errorf("%q is no %shost:port/path", address, Scheme)
	}
	conn, err := net.DialTimeout("tcp", host, 10*time.Second)
	if err != nil {
		return nil, fmt.Errorf("reaching the scribe: %w", err)
	}
	r := &Remote{conn: conn, answers: bufio.NewReader(conn)}
	hello, err := json.Marshal(Hello{What: what, Path: path})
	if err == nil {
		_, err = r.Write(append(hello, '\n'))
	}
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return r, nil
}

// Write says one line, with its end, and waits until it is written down.
func (r *Remote) Write(line []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, err := r.conn.Write(line); err != nil {
		return 0, fmt.Errorf("telling the scribe: %w", err)
	}
	answer, err := r.answers.ReadString('\n')
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return 0, fmt.Errorf("waiting for the scribe: %w", err)
	}
	if answer = strings.TrimSpace(answer); answer != "" {
		return 0, fmt.Errorf("the scribe says: %s", answer)
	}
	return len(line), nil
}

// Close ends the connection, and the run that was told of.
func (r *Remote) Close() error { return r.conn.Close() }
