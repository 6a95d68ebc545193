package scribe

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/stateful-operator/stateful-operator/test/faults/testimony"
)

// run is a program at the other end of a connection. The scribe holds its lock.
type run struct {
	scribe *Scribe
	dir    string
	conn   *net.TCPConn
	id     string
	lock   *os.File // nil for one that is no run
	ended  bool
}

func (r *run) path() string { return filepath.Join(r.dir, testimony.RunPrefix+r.id) }

func (r *run) hear(text []byte) error {
	var line testimony.Line
	if err := json.Unmarshal(text, &line); err != nil {
		return err
	}
	if line.What == testimony.Start {
		return r.start(line)
	}
	return r.write(line)
}

// start believes that a program runs, when those that have ended are known to.
func (r *run) start(line testimony.Line) error {
	if r.lock != nil {
		return errors.New("a connection is one run's")
	}
	r.id = line.Run
	var others []string
	for other := range r.scribe.runs {
		if other.dir != r.dir {
			continue
		}
		if !other.ended && !other.closed() {
			others = append(others, other.id)
			continue
		}
		if err := other.buried(); err != nil {
			return err
		}
	}
	lock, err := takeLock(r.path())
	if err != nil {
		return err
	}
	r.lock = lock
	r.scribe.runs[r] = struct{}{}
	if err := r.write(line); err != nil {
		return err
	}
	for _, other := range others {
		meets := line
		meets.What, meets.Text = testimony.Meets, other
		if err := r.write(meets); err != nil {
			return err
		}
	}
	return nil
}

// end lets go of the run's lock, once.
func (r *run) end() {
	if r.lock != nil && !r.ended {
		r.ended = true
		_ = r.lock.Close()
	}
}

// closed tells whether the kernel has the connection's end, which its reader may
// not have come to yet.
func (r *run) closed() bool {
	raw, err := r.conn.SyscallConn()
	if err != nil {
		return true
	}
	ended := false
	err = raw.Control(func(fd uintptr) {
		n, _, err := syscall.Recvfrom(int(fd), make([]byte, 1), syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		ended = n == 0 && err == nil || err != nil && !errors.Is(err, syscall.EAGAIN) && !errors.Is(err, syscall.EINTR)
	})
	return ended || err != nil
}

// buried ends a run and waits until its observer has noted when, which it tells
// by removing the run's file.
func (r *run) buried() error {
	r.end()
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if _, err := os.Stat(r.path()); errors.Is(err, fs.ErrNotExist) {
			delete(r.scribe.runs, r)
			return nil
		}
	}
	return fmt.Errorf("nobody has noted the end of run %s", r.id)
}

// takeLock makes a run's file, with its lock held when it appears.
func takeLock(path string) (*os.File, error) {
	file, err := os.OpenFile(path+".new", os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o666)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX); err != nil {
		return nil, fmt.Errorf("locking %s: %w", path, err)
	}
	return file, os.Rename(path+".new", path)
}

func (r *run) write(line testimony.Line) error {
	line.At = testimony.Now()
	text, err := json.Marshal(line)
	if err != nil {
		return err
	}
	return add(filepath.Join(r.dir, testimony.DiaryFile), text)
}
