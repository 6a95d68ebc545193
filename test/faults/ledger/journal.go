package main

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/stateful-operator/stateful-operator/test/faults/ledger/record"
	"github.com/stateful-operator/stateful-operator/test/faults/testimony"
)

// journal is the file to which a pod's processes append. A second file is locked while this process is
// primary. The kernel releases the lock when a killed process ends, so the lock shows reliably which
// processes are primary. A scribe keeps only the journal. Without a folder nothing is written.
type journal struct {
	dir  string
	self record.Line
	file io.Writer
	lock *os.File // nil while it is not primary
}

func newRun() string { return strings.ToLower(rand.Text()[:12]) }

func openJournal(s settings, run string) (*journal, error) {
	j := &journal{dir: s.journal, self: record.Line{Run: run, Pod: s.name, UID: s.uid}}
	if j.dir == "" {
		return j, nil
	}
	file, err := openEvidence(j.path(record.JournalSuffix), testimony.Journal, os.O_APPEND)
	if err != nil {
		return nil, fmt.Errorf("open the journal: %w", err)
	}
	j.file = file
	return j, nil
}

func (j *journal) path(suffix string) string {
	return j.dir + "/" + strings.TrimSuffix(j.self.Pod+"_"+j.self.UID, "_") + suffix
}

// openEvidence opens a file for lines, or connects to the scribe that keeps it.
func openEvidence(path, what string, mode int) (io.WriteCloser, error) {
	if strings.HasPrefix(path, testimony.Scheme) {
		return testimony.Dial(path, what)
	}
	syscall.Umask(0) // the next process may have another user
	return os.OpenFile(path, mode|os.O_CREATE|os.O_WRONLY, 0o666)
}

// say appends one line immediately. A process that cannot write its journal must exit. Otherwise its
// missing actions would look like a fault of other members.
func (j *journal) say(line record.Line) {
	if j.file == nil {
		return
	}
	line.At, line.Wall = testimony.Now(), time.Now().Format(time.RFC3339Nano)
	line.Run, line.Pod, line.UID = j.self.Run, j.self.Pod, j.self.UID
	if _, err := j.file.Write(record.Marshal(line)); err != nil {
		fmt.Fprintln(os.Stderr, "ledger: cannot write the journal:", err)
		os.Exit(1)
	}
}

// lead takes the lock, checks for other holders of a lock, and then records that it is primary. If two
// processes do this in parallel, both hold their locks before they check, so at least one of them finds
// the other.
func (j *journal) lead(epoch uint64) {
	if _, local := j.file.(*os.File); local && j.lock == nil {
		j.lock = must(os.OpenFile(j.path(record.LockSuffix), os.O_CREATE|os.O_RDWR, 0o666))
		need(flock(j.lock, syscall.LOCK_EX)) // blocks while others check
		must(j.lock.WriteAt([]byte(j.self.Run), 0))
		for _, path := range must(filepath.Glob(filepath.Join(j.dir, "*"+record.LockSuffix))) {
			if path != j.path(record.LockSuffix) {
				j.lookAt(path)
			}
		}
	}
	j.say(record.Line{What: record.Primary, Epoch: epoch})
}

// cease records that it is no longer primary, and then releases the lock.
func (j *journal) cease(epoch uint64) {
	j.say(record.Line{What: record.Ceased, Epoch: epoch})
	if j.lock != nil {
		_ = j.lock.Truncate(0) // distinguishes a process that ceased from one that was killed
		_ = j.lock.Close()
		j.lock = nil
	}
}

func flock(file *os.File, how int) error {
	for {
		if err := syscall.Flock(int(file.Fd()), how); !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

// lookAt reports the last run that took a lock, if it still holds it or did not cease. The check uses a
// shared lock, so that checks do not exclude each other.
func (j *journal) lookAt(path string) {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	defer must(file, err).Close()
	err = flock(file, syscall.LOCK_SH|syscall.LOCK_NB)
	held := errors.Is(err, syscall.EWOULDBLOCK)
	if !held {
		need(err)
	}
	switch run := string(must(os.ReadFile(path))); {
	case held:
		j.say(record.Line{What: record.Meets, Other: run})
	case run != "":
		j.say(record.Line{What: record.Over, Other: run})
	}
}
