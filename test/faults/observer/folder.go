// Package observer watches the folder of a witness from outside: it reads the
// diary, and waits for the lock of each run, which the kernel gives away at the
// instant that the last of its processes ends, however that comes.
package observer

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/stateful-operator/stateful-operator/test/faults/testimony"
)

// lookEvery is how often the diary is read. A program that ends sooner than
// that after its start is seen to end later than it did, never earlier.
const lookEvery = 5 * time.Millisecond

// Folder is a witness's folder.
type Folder struct {
	dir  string
	stop chan struct{}
	once sync.Once
	done sync.WaitGroup

	mu    sync.Mutex // guards what follows
	read  int64
	lines []testimony.Line
	ends  map[string]int64
	err   error
}

// Open makes the folder, for any user to write into, and watches it.
func Open(dir string) (*Folder, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	if err := os.Chmod(dir, 0o777); err != nil { // past the umask
		return nil, err
	}
	f := &Folder{dir: dir, stop: make(chan struct{}), ends: map[string]int64{}}
	f.done.Go(f.watch)
	return f, nil
}

// Dir is its path on this machine, and on its nodes.
func (f *Folder) Dir() string { return f.dir }

// Close ends the watch. The folder stays.
func (f *Folder) Close() {
	f.once.Do(func() { close(f.stop) })
	f.done.Wait()
}

// Runs are the runs so far, in the order of their starts.
func (f *Folder) Runs() ([]testimony.Run, error) {
	lines, err := f.Lines()
	f.mu.Lock()
	defer f.mu.Unlock()
	return testimony.Runs(lines, f.ends), err
}

// Lines are all lines so far. A program that could not testify is an error.
func (f *Folder) Lines() ([]testimony.Line, error) {
	f.look()
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, l := range f.lines {
		if l.What == testimony.Cannot {
			return f.lines, errors.Join(f.err, fmt.Errorf("the witness in %s could not testify: %s", l.Pod, l.Text))
		}
	}
	return slices.Clone(f.lines), f.err
}

func (f *Folder) watch() {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-f.stop:
			return
		case <-tick.C:
			f.look()
		}
	}
}

// look reads what is new in the diary, and has somebody wait for the end of
// each run that is told of.
func (f *Folder) look() {
	f.mu.Lock()
	defer f.mu.Unlock()
	fresh, err := f.fresh()
	if err != nil {
		f.err = errors.Join(f.err, err)
	}
	f.lines = append(f.lines, fresh...)
	for _, l := range fresh {
		if l.What == testimony.Start {
			go f.await(l.Run) // ends with the run, which this cannot shorten
		}
	}
}

func (f *Folder) fresh() ([]testimony.Line, error) {
	file, err := os.Open(filepath.Join(f.dir, testimony.DiaryFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if info, err := file.Stat(); err != nil || info.Size() == f.read {
		return nil, err
	}
	var text bytes.Buffer
	if _, err := io.Copy(&text, io.NewSectionReader(file, f.read, 1<<40)); err != nil {
		return nil, err
	}
	lines, size, err := testimony.Read(text.Bytes())
	f.read += int64(size)
	return lines, err
}

// await waits for a run's lock and writes down when it came. Its file is of no
// more use then.
func (f *Folder) await(run string) {
	path := f.path(run)
	err := waitForLock(path)
	now := testimony.Now()
	f.mu.Lock()
	defer f.mu.Unlock()
	if err != nil {
		f.err = errors.Join(f.err, fmt.Errorf("waiting for the end of run %s: %w", run, err))
		return
	}
	f.ends[run] = now
	_ = os.Remove(path) // one that stays costs the next run a look
}

func waitForLock(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	for {
		if err := syscall.Flock(int(file.Fd()), syscall.LOCK_SH); !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

func (f *Folder) path(run string) string {
	return filepath.Join(f.dir, testimony.RunPrefix+run)
}

// Kill ends a run's program by SIGKILL, as the kernel does to one that takes too
// much memory. Nobody is asked, so its node may be cut off. The kernel's list of
// locks says who holds the lock that is this run's alone.
func (f *Folder) Kill(run string) error {
	var file syscall.Stat_t
	if err := syscall.Stat(f.path(run), &file); err != nil {
		return fmt.Errorf("looking for the lock of run %s: %w", run, err)
	}
	locks, err := os.ReadFile("/proc/locks")
	if err != nil {
		return err
	}
	pid := holder(string(locks), file.Ino)
	if pid == 0 {
		return fmt.Errorf("nobody holds the lock of run %s", run)
	}
	return syscall.Kill(pid, syscall.SIGKILL)
}

// holder finds who has the exclusive lock of a file. A line is, for example:
//
//	15: FLOCK  ADVISORY  WRITE 26120 fe:00:3548160 0 EOF
func holder(locks string, inode uint64) int {
	for line := range strings.Lines(locks) {
		words := strings.Fields(line)
		if len(words) < 6 || words[1] != "FLOCK" || words[3] != "WRITE" || !strings.HasSuffix(words[5], ":"+strconv.FormatUint(inode, 10)) {
			continue
		}
		if pid, err := strconv.Atoi(words[4]); err == nil {
			return pid
		}
	}
	return 0
}
