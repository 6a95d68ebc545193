package scribe

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stateful-operator/stateful-operator/test/faults/ledger/record"
	"github.com/stateful-operator/stateful-operator/test/faults/observer"
	"github.com/stateful-operator/stateful-operator/test/faults/testimony"
)

// scene is a folder that a scribe keeps for witnesses elsewhere.
type scene struct {
	*testing.T
	scribe  *Scribe
	folder  *observer.Folder
	program string
	to      string
}

func open(t *testing.T) scene {
	if runtime.GOOS != "linux" {
		t.Skip("witnesses and scribes are programs of pods")
	}
	program := filepath.Join(t.TempDir(), "witness")
	if out, err := exec.Command("go", "build", "-o", program, "../witness").CombinedOutput(); err != nil {
		t.Fatalf("building the witness: %v\n%s", err, out)
	}
	root := t.TempDir()
	folder, err := observer.Open(filepath.Join(root, "namespace", "app"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(folder.Close)
	s, err := Start("127.0.0.1:0", root)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return scene{t, s, folder, program, fmt.Sprintf("%s127.0.0.1:%d/", testimony.Scheme, s.Port())}
}

func (s scene) start(pod string, env ...string) *exec.Cmd {
	s.Helper()
	cmd := exec.Command(s.program)
	cmd.Env = append(os.Environ(), append(env, "WITNESS_TO="+s.to+"namespace/app", "POD="+pod)...)
	if err := cmd.Start(); err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return cmd
}

// runs waits until the runs are as wanted.
func (s scene) runs(what string, want func([]testimony.Run) bool) []testimony.Run {
	s.Helper()
	var runs []testimony.Run
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		var err error
		if runs, err = s.folder.Runs(); err != nil {
			s.Fatal(err)
		}
		if want(runs) {
			return runs
		}
	}
	s.Fatalf("waited for %s: %+v", what, runs)
	return nil
}

func (s scene) started(n int) []testimony.Run {
	s.Helper()
	return s.runs(fmt.Sprint(n, " runs"), func(runs []testimony.Run) bool { return len(runs) == n && runs[n-1].Alive() })
}

func (s scene) overlaps() []testimony.Overlap {
	s.Helper()
	runs, err := s.folder.Runs()
	if err != nil {
		s.Fatal(err)
	}
	return testimony.Overlaps(runs, testimony.Now())
}

func TestOneAfterAnother(t *testing.T) {
	s := open(t)
	for i := range 20 {
		cmd := s.start(fmt.Sprint("pod-", i))
		s.started(i + 1)
		end := syscall.SIGTERM
		if i%2 == 1 {
			end = syscall.SIGKILL
		}
		if err := cmd.Process.Signal(end); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait() // the next one starts at once
	}
	runs := s.runs("all to end", func(runs []testimony.Run) bool { return !runs[len(runs)-1].Alive() })
	for i, r := range runs {
		if r.Stopped != (i%2 == 0) || r.Pod != fmt.Sprint("pod-", i) {
			t.Errorf("run %d is %+v", i, r)
		}
	}
	if found := s.overlaps(); len(found) > 0 {
		t.Errorf("none ran together: %+v", found)
	}
}

func TestTwoTogether(t *testing.T) {
	s := open(t)
	s.start("first")
	first := s.started(1)[0]
	s.start("second")
	second := s.started(2)[1]
	if len(second.Met) != 1 || second.Met[0] != first.ID {
		t.Errorf("the second one met %v, and %s ran", second.Met, first.ID)
	}
	if found := s.overlaps(); len(found) != 1 || found[0].Length <= 0 {
		t.Errorf("both run: %+v", found)
	}
}

// A scribe that had no time reads the start of the next run before the end of
// the last one.
func TestEndReadLate(t *testing.T) {
	s := open(t)
	cmd := s.start("first")
	s.started(1)
	s.scribe.mu.Lock() // nobody is heard
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	next := &run{scribe: s.scribe, dir: s.folder.Dir()}
	err := next.start(testimony.Line{What: testimony.Start, Run: "next", Pod: "next"})
	s.scribe.mu.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	s.started(2)
	if found := s.overlaps(); len(found) > 0 {
		t.Errorf("the first one had ended: %+v", found)
	}
}

func TestFiles(t *testing.T) {
	s := open(t)
	journal, err := testimony.Dial(s.to+"namespace/j", testimony.Journal)
	if err != nil {
		t.Fatal(err)
	}
	before := testimony.Now()
	if _, err := journal.Write(record.Marshal(record.Line{What: record.Ack, At: 1})); err != nil {
		t.Fatal(err)
	}
	lines, err := record.ReadLines[record.Line](filepath.Join(s.scribe.root, "namespace", "j"))
	if err != nil || len(lines) != 1 || lines[0].At < before || lines[0].What != record.Ack {
		t.Errorf("%v, %+v: what is answered is written, at the scribe's time", err, lines)
	}
	history, err := testimony.Dial(s.to+"namespace/h", testimony.History)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := history.Write([]byte("as it is\n")); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(filepath.Join(s.scribe.root, "namespace", "h")); err != nil || string(text) != "as it is\n" {
		t.Errorf("%v: %q", err, text)
	}
}

func TestRefused(t *testing.T) {
	s := open(t)
	if _, err := testimony.Dial(s.to+"../escaped", testimony.History); err == nil || !strings.Contains(err.Error(), "leaves the folder") {
		t.Errorf("a path out of the folder: %v", err)
	}
	if _, err := testimony.Dial(s.to+"x", "poem"); err == nil || !strings.Contains(err.Error(), "poem") {
		t.Errorf("something else: %v", err)
	}
	lost, err := testimony.Dial(s.to+"no/such/folder", testimony.History)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := lost.Write([]byte("lost\n")); err == nil {
		t.Error("what cannot be written down is not answered")
	}
}
