// Package observer records the lines of an application's witnesses and detects their ends. Each witness
// has a connection to the observer. The kernel closes it when the last of the witness's processes ends
// for any reason.
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

// Folder is a witness's folder, with the socket of its observer.
type Folder struct {
	dir    string
	socket *net.UnixListener

	mu      sync.Mutex // guards the fields below
	closed  bool
	lines   []testimony.Line
	running []*Program
	ends    map[string]int64
}

// folders are the open folders by path, for Find.
var folders sync.Map

// Find returns the open folder with that path, or nil.
func Find(dir string) *Folder {
	f, _ := folders.Load(filepath.Clean(dir))
	found, _ := f.(*Folder)
	return found
}

// Open creates the folder and a socket in it that any user can access, and accepts connections.
func Open(dir string) (*Folder, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	if err := os.Chmod(dir, 0o777); err != nil { // override the umask
		return nil, err
	}
	f := &Folder{dir: dir, ends: map[string]int64{}}
	if err := f.listen(); err != nil {
		return nil, fmt.Errorf("listen in %s: %w", dir, err)
	}
	folders.Store(filepath.Clean(dir), f)
	go testimony.Accept(f.socket.AcceptUnix, func(conn *net.UnixConn) {
		p := f.Program(conn, false)
		defer p.End()
		testimony.Serve(conn, p.Hear)
	})
	return f, nil
}

// listen creates the socket. Its address uses a file descriptor of the folder, because an address has
// at most 108 bytes.
func (f *Folder) listen() error {
	dir, err := os.Open(f.dir)
	if err != nil {
		return err
	}
	defer dir.Close()
	path := filepath.Join(f.dir, testimony.SocketFile)
	_ = os.Remove(path) // of an earlier observer
	address := net.UnixAddr{Net: "unix", Name: fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), testimony.SocketFile)}
	if f.socket, err = net.ListenUnix("unix", &address); err != nil {
		return err
	}
	f.socket.SetUnlinkOnClose(false) // the address may belong to another folder by then
	return os.Chmod(path, 0o777)
}

// Dir returns the path on this machine and on its nodes.
func (f *Folder) Dir() string { return f.dir }

// Close accepts no new connections. Open connections and the folder stay.
func (f *Folder) Close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return
	}
	f.closed = true
	folders.CompareAndDelete(filepath.Clean(f.dir), f)
	_ = os.Remove(filepath.Join(f.dir, testimony.SocketFile)) // new witnesses write a diary
	_ = f.socket.Close()
}

// Runs returns the runs so far, in the order of their starts.
func (f *Folder) Runs() ([]testimony.Run, error) {
	lines, err := f.Lines()
	f.mu.Lock()
	defer f.mu.Unlock()
	return testimony.Runs(lines, f.ends), err
}

// Lines returns all lines so far. It returns an error if a program could not reach its observer,
// because the end of such a run is unknown.
func (f *Folder) Lines() ([]testimony.Line, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	diary, err := os.ReadFile(filepath.Join(f.dir, testimony.DiaryFile))
	switch {
	case f.closed || errors.Is(err, fs.ErrNotExist):
		err = nil
	case err == nil:
		err = fmt.Errorf("a witness did not reach its observer, and wrote a diary: %s", diary)
	}
	return slices.Clone(f.lines), err
}

// Kill kills a run's process by SIGKILL, as the OOM killer does. The kernel knows the PID at the other
// end of the connection, so the node's network may be cut.
func (f *Folder) Kill(run string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	i := slices.IndexFunc(f.running, func(p *Program) bool { return p.run == run })
	if i < 0 {
		return fmt.Errorf("run %s is not running", run)
	}
	pid, err := peer(f.running[i].conn)
	if err != nil {
		return fmt.Errorf("find the process of run %s: %w", run, err)
	}
	return syscall.Kill(pid, syscall.SIGKILL)
}

// Program is a program with a connection.
type Program struct {
	folder *Folder
	conn   syscall.Conn
	far    bool
	run    string // empty until Start
}

// Program returns a new program. For a remote program the observer sets the times of its lines: after
// the line was sent, and before the program continues.
func (f *Folder) Program(conn syscall.Conn, far bool) *Program {
	return &Program{folder: f, conn: conn, far: far}
}

// Hear records a line. At a Start, it first detects the programs that have ended, and then records that
// the new run meets all others. Runs that must not overlap are ordered by cause and effect, so this
// needs no clock.
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
		return errors.New("a connection belongs to one run")
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

// End records the end of the connection.
func (p *Program) End() {
	p.folder.mu.Lock()
	defer p.folder.mu.Unlock()
	p.folder.bury(func(other *Program) bool { return other == p })
}

// bury records the ends of programs. mu is held.
func (f *Folder) bury(gone func(*Program) bool) {
	f.running = slices.DeleteFunc(f.running, func(p *Program) bool {
		if !gone(p) {
			return false
		}
		f.ends[p.run] = testimony.Now()
		return true
	})
}
