package main

import (
	"cmp"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/stateful-operator/stateful-operator/test/faults/testimony"
)

// witness writes lines for one run.
type witness struct {
	dir    string
	line   testimony.Line    // who it is
	lock   *os.File          // held until the process, and its child, end
	scribe *testimony.Remote // or else one that holds it while it is connected
}

func newWitness(began int64) (*witness, error) {
	w := &witness{dir: folder(), line: self(began)}
	var err error
	if to := os.Getenv("WITNESS_TO"); to != "" {
		w.scribe, err = testimony.Dial(to, testimony.Diary)
	}
	return w, err
}

func folder() string { return cmp.Or(os.Getenv("WITNESS_DIR"), "/witness.d") }

func self(began int64) testimony.Line {
	return testimony.Line{
		At: began, PID: os.Getpid(),
		Pod: os.Getenv("POD"), UID: os.Getenv("POD_UID"), Node: os.Getenv("NODE"),
	}
}

// swear takes the run's lock, and then says that it runs and who else does. Two
// that start together both have their locks before they look, so that at least
// one of them finds the other.
func swear(began int64) (*witness, error) {
	syscall.Umask(0) // the next one may be another user
	w, err := newWitness(began)
	if err != nil {
		return nil, err
	}
	w.line.Run = strings.ToLower(rand.Text()[:12])
	if w.scribe != nil {
		if os.Getenv("WITNESS_FORK") == "true" {
			return nil, errors.New("a child cannot keep the connection to the scribe")
		}
		return w, w.sayStart() // the scribe looks for others
	}
	if err := w.takeLock(); err != nil {
		return nil, errors.Join(err, w.say(testimony.Cannot, err.Error()))
	}
	if os.Getenv("WITNESS_FORK") == "true" {
		if err := w.fork(); err != nil {
			return nil, err
		}
	}
	others, err := w.running()
	if err != nil {
		return nil, errors.Join(err, w.say(testimony.Cannot, err.Error()))
	}
	if err := w.sayStart(); err != nil {
		return nil, err
	}
	for _, other := range others {
		if err := w.say(testimony.Meets, other); err != nil {
			return nil, err
		}
	}
	return w, nil
}

func (w *witness) sayStart() error {
	start := w.line
	start.What, start.Args = testimony.Start, os.Args[1:]
	return w.write(start)
}

// takeLock makes the run's file. It appears under its name with its lock held,
// so that a file without one is of a run that has ended.
func (w *witness) takeLock() error {
	path := filepath.Join(w.dir, testimony.RunPrefix+w.line.Run)
	file, err := os.OpenFile(path+".new", os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o666)
	if err != nil {
		return err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX); err != nil {
		return fmt.Errorf("locking %s: %w", path, err)
	}
	w.lock = file
	return os.Rename(path+".new", path)
}

// fork starts a child that outlives its parent if it can.
func (w *witness) fork() error {
	child := append(os.Environ(), "WITNESS_DIR="+w.dir)
	_, err := os.StartProcess("/proc/self/exe", []string{"note", "child", "24h"},
		&os.ProcAttr{Env: child, Files: []*os.File{nil, nil, nil, w.lock}})
	return err
}

// running are the other runs whose locks are held. The shared lock that it asks
// for is the observer's too, and theirs do not exclude each other.
func (w *witness) running() ([]string, error) {
	files, err := filepath.Glob(filepath.Join(w.dir, testimony.RunPrefix+"*"))
	if err != nil {
		return nil, err
	}
	var held []string
	for _, path := range files {
		id := strings.TrimPrefix(filepath.Base(path), testimony.RunPrefix)
		if id == w.line.Run || strings.HasSuffix(id, ".new") {
			continue
		}
		file, err := os.Open(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue // the observer has seen its end
		}
		if err != nil {
			return nil, err
		}
		err = syscall.Flock(int(file.Fd()), syscall.LOCK_SH|syscall.LOCK_NB)
		if errors.Is(err, syscall.EWOULDBLOCK) {
			held = append(held, id)
		} else if err != nil {
			return nil, fmt.Errorf("asking for the lock of %s: %w", path, err)
		}
		file.Close()
	}
	return held, nil
}

func (w *witness) say(what, text string) error {
	line := w.line
	line.What, line.Text = what, text
	if what != testimony.Note {
		line.At = testimony.Now()
	}
	return w.write(line)
}

// write appends a line at once: the kernel lets no other come in between.
func (w *witness) write(line testimony.Line) error {
	text, err := json.Marshal(line)
	if err != nil {
		return err
	}
	if w.scribe != nil {
		_, err := w.scribe.Write(append(text, '\n'))
		return err
	}
	syscall.Umask(0)
	file, err := os.OpenFile(filepath.Join(w.dir, testimony.DiaryFile), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o666)
	if err != nil {
		return err
	}
	_, err = file.Write(append(text, '\n'))
	return errors.Join(err, file.Close())
}
