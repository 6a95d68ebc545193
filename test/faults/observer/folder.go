// Package observer hears what the witnesses of an application say, and sees when
// they end: each has a connection to it, which the kernel closes at the instant
// that the last of its processes ends, however that comes.
package observer

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"

	"github.com/stateful-operator/stateful-operator/test/faults/testimony"
)

// Folder is a witness's folder, with the socket of its observer in it.
type Folder struct {
	dir    string
	socket *net.UnixListener

	mu      sync.Mutex // guards what follows
	closed  bool
	lines   []testimony.Line
	running []*Program
	ends    map[string]int64
}

// folders are the open ones by their paths, for Find.
var folders sync.Map

// Find is the folder that was opened with that path, or nil.
func Find(dir string) *Folder {
	f, _ := folders.Load(filepath.Clean(dir))
	found, _ := f.(*Folder)
	return found
}

// Open makes the folder and a socket in it, for any user, and hears who connects.
func Open(dir string) (*Folder, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	if err := os.Chmod(dir, 0o777); err != nil { // past the umask
		return nil, err
	}
	f := &Folder{dir: dir, ends: map[string]int64{}}
	if err := f.listen(); err != nil {
		return nil, fmt.Errorf("listening in %s: %w", dir, err)
	}
	folders.Store(filepath.Clean(dir), f)
	go testimony.Accept(f.socket.AcceptUnix, func(conn *net.UnixConn) {
		p := f.Program(conn, false)
		defer p.End()
		testimony.Serve(conn, p.Hear)
	})
	return f, nil
}

// listen makes the socket. Its address goes through a descriptor of the folder,
// because an address has 108 bytes at most.
func (f *Folder) listen() error {
	dir, err := os.Open(f.dir)
	if err != nil {
		return err
	}
	defer dir.Close()
	path := filepath.Join(f.dir, testimony.SocketFile)
	_ = os.Remove(path) // of one that was before
	address := net.UnixAddr{Net: "unix", Name: fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), testimony.SocketFile)}
	if f.socket, err = net.ListenUnix("unix", &address); err != nil {
		return err
	}
	f.socket.SetUnlinkOnClose(false) // that address is another folder's by then
	return os.Chmod(path, 0o777)
}

// Dir is its path on this machine, and on its nodes.
func (f *Folder) Dir() string { return f.dir }

// Close lets nobody in any more. Those who are in stay, and so does the folder.
func (f *Folder) Close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return
	}
	f.closed = true
	folders.CompareAndDelete(filepath.Clean(f.dir), f)
	_ = os.Remove(filepath.Join(f.dir, testimony.SocketFile)) // who comes now keeps a diary
	_ = f.socket.Close()
}

// Runs are the runs so far, in the order of their starts.
func (f *Folder) Runs() ([]testimony.Run, error) {
	lines, err := f.Lines()
	f.mu.Lock()
	defer f.mu.Unlock()
	return testimony.Runs(lines, f.ends), err
}

// Lines are all lines so far. A program that could not reach its observer is an
// error: nobody saw how long it ran.
func (f *Folder) Lines() ([]testimony.Line, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	diary, err := os.ReadFile(filepath.Join(f.dir, testimony.DiaryFile))
	switch {
	case f.closed || errors.Is(err, fs.ErrNotExist):
		err = nil
	case err == nil:
		err = fmt.Errorf("a witness did not reach its observer, and kept a diary: %s", diary)
	}
	return slices.Clone(f.lines), err
}

// Kill ends a run's program by SIGKILL, as the kernel does to one that takes too
// much memory. Nobody is asked, so its node may be cut off: the kernel says whose
// the other end of the connection is.
func (f *Folder) Kill(run string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	i := slices.IndexFunc(f.running, func(p *Program) bool { return p.run == run })
	if i < 0 {
		return fmt.Errorf("run %s does not run", run)
	}
	pid, err := peer(f.running[i].conn)
	if err != nil {
		return fmt.Errorf("asking who run %s is: %w", run, err)
	}
	return syscall.Kill(pid, syscall.SIGKILL)
}

// Program is who speaks through a connection.
type Program struct {
	folder *Folder
	conn   syscall.Conn
	far    bool
	run    string // empty until it says that it runs
}

// Program is a new one. The times of one that is far away are the observer's: a
// line is stamped after it was said, and before the speaker goes on.
func (f *Folder) Program(conn syscall.Conn, far bool) *Program {
	return &Program{folder: f, conn: conn, far: far}
}

// Hear takes a line. When it says that the program runs, those that have ended
// are known before that is believed, and the others are met: what must not
// overlap is ordered by cause and effect, and needs no clock.
func (p *Program) Hear(text []byte) error {
	var line testimony.Line
	if err := json.Unmarshal(text, &line); err != nil {
		return err
	}
	f := p.folder
	f.mu.Lock()
	defer f.mu.Unlock()
	starts := line.What == testimony.Start
	if starts && p.run != "" {
		return errors.New("a connection is one run's")
	}
	if starts {
		f.bury(func(other *Program) bool { return hungUp(other.conn) })
	}
	if p.far {
		line.At = testimony.Now()
	}
	f.lines = append(f.lines, line)
	if starts {
		for _, other := range f.running {
			f.lines = append(f.lines, testimony.Line{At: line.At, What: testimony.Meets, Run: line.Run, Pod: line.Pod, Text: other.run})
		}
		p.run = line.Run
		f.running = append(f.running, p)
	}
	return nil
}

// End tells that the connection has ended.
func (p *Program) End() {
	p.folder.mu.Lock()
	defer p.folder.mu.Unlock()
	p.folder.bury(func(other *Program) bool { return other == p })
}

// bury notes the ends of programs. mu is held.
func (f *Folder) bury(gone func(*Program) bool) {
	f.running = slices.DeleteFunc(f.running, func(p *Program) bool {
		if !gone(p) {
			return false
		}
		f.ends[p.run] = testimony.Now()
		return true
	})
}
