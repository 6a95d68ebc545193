package main

import (
	"cmp"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/stateful-operator/stateful-operator/test/faults/testimony"
)

// witness writes the lines of one run.
type witness struct {
	line testimony.Line // template of its lines
	to   io.Writer      // where lines are written, without a buffer
}

// newWitness connects to the scribe or the observer. A failure is written into the diary, where an
// observer finds it.
func newWitness(began int64) *witness {
	w := &witness{line: testimony.Line{
		At: began, PID: os.Getpid(),
		Pod: os.Getenv("POD"), UID: os.Getenv("POD_UID"), Node: os.Getenv("NODE"),
	}}
	if to := os.Getenv("WITNESS_TO"); to != "" {
		w.to = must(testimony.Dial(to, testimony.Diary))
		return w
	}
	remote, err := testimony.DialFolder(folder())
	if err == nil {
		w.to = remote
		return w
	}
	w.to = must(openDiary())
	if !errors.Is(err, fs.ErrNotExist) {
		w.say(testimony.Cannot, err.Error())
		fail(err)
	}
	return w // there is no observer
}

func folder() string { return cmp.Or(os.Getenv("WITNESS_DIR"), "/witness.d") }

// openDiary opens the file that is used without an observer. The kernel does not interleave appended
// lines.
func openDiary() (*os.File, error) {
	syscall.Umask(0) // the next process may have another user
	return os.OpenFile(filepath.Join(folder(), testimony.DiaryFile), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o666)
}

// swear reports the start of a run. The observer checks for other runs before it acknowledges.
func swear(began int64) *witness {
	w := newWitness(began)
	w.line.Run = strings.ToLower(rand.Text()[:12])
	if os.Getenv("WITNESS_FORK") == "true" {
		w.fork()
	}
	start := w.line
	start.What, start.Args = testimony.Start, os.Args[1:]
	w.write(start)
	return w
}

// fork starts a child with the same connection that may outlive its parent.
func (w *witness) fork() {
	remote, heard := w.to.(*testimony.Remote)
	if !heard {
		fail(errors.New("no observer would see that a child runs"))
	}
	conn := must(remote.File())
	defer conn.Close()
	must(os.StartProcess("/proc/self/exe", []string{"note", "child", "24h"}, &os.ProcAttr{Files: []*os.File{nil, nil, nil, conn}}))
}

func (w *witness) say(what, text string) {
	line := w.line
	line.What, line.Text = what, text
	if what != testimony.Note {
		line.At = testimony.Now()
	}
	w.write(line)
}

func (w *witness) write(line testimony.Line) {
	must(w.to.Write(append(must(json.Marshal(line)), '\n')))
}
