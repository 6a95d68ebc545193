package observer

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/stateful-operator/stateful-operator/test/faults/testimony"
)

// build builds the witness.
func build(t *testing.T) string {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("the witness runs on the nodes of a local cluster, which need Linux")
	}
	path := filepath.Join(t.TempDir(), "witness")
	if out, err := exec.Command("go", "build", "-o", path, "../witness").CombinedOutput(); err != nil {
		t.Fatalf("building the witness: %v\n%s", err, out)
	}
	return path
}

// scene is a folder with programs that testify in it.
type scene struct {
	*testing.T
	*Folder
	program string
}

func open(t *testing.T) scene {
	program := build(t)
	f, err := Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.Close)
	return scene{t, f, program}
}

// start runs a witness as a pod.
func (s scene) start(pod string, env ...string) *exec.Cmd {
	s.Helper()
	cmd := exec.Command(s.program, "argument of", pod)
	cmd.Env = append(os.Environ(), append(env, "WITNESS_DIR="+s.Dir(), "POD="+pod)...)
	if err := cmd.Start(); err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return cmd
}

// runs waits until the runs are as wanted.
func (s scene) runs(what string, want func([]testimony.Run) bool) []testimony.Run {
	s.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		runs, err := s.Runs()
		if err != nil {
			s.Fatal(err)
		}
		if want(runs) {
			return runs
		}
		if time.Now().After(deadline) {
			s.Fatalf("%s does not come: %+v", what, runs)
		}
	}
}

func living(n int) func([]testimony.Run) bool {
	return func(runs []testimony.Run) bool {
		return len(slices.DeleteFunc(slices.Clone(runs), func(r testimony.Run) bool { return !r.Alive() })) == n
	}
}

func ended(n int) func([]testimony.Run) bool {
	return func(runs []testimony.Run) bool { return len(runs) == n && living(0)(runs) }
}

func TestOneAfterTheOther(t *testing.T) {
	s := open(t)
	for i, end := range []func(*exec.Cmd) error{
		func(c *exec.Cmd) error { return c.Process.Signal(syscall.SIGTERM) },
		func(c *exec.Cmd) error { return c.Process.Kill() },
	} {
		c := s.start(fmt.Sprint("pod-", i))
		s.runs("the start", living(1))
		if err := end(c); err != nil {
			t.Fatal(err)
		}
		_ = c.Wait()
		s.runs("the end", ended(i+1))
	}
	runs, err := s.Runs()
	if err != nil || len(testimony.Overlaps(runs, testimony.Now())) > 0 {
		t.Errorf("%v, %+v", err, runs)
	}
	if !runs[0].Stopped || runs[1].Stopped {
		t.Errorf("the first was asked to stop and the second killed: %+v", runs)
	}
	if gaps := testimony.Gaps(runs); len(gaps) != 1 || gaps[0].Length <= 0 {
		t.Errorf("gaps %+v", gaps)
	}
	if !slices.Equal(runs[0].Args, []string{"argument of", "pod-0"}) || runs[0].Pod != "pod-0" || runs[0].PID == 0 {
		t.Errorf("it does not say who it is: %+v", runs[0])
	}
}

func TestTwoAtATimeMeet(t *testing.T) {
	s := open(t)
	s.start("one")
	s.runs("the first", living(1))
	s.start("two", "WITNESS_EXIT_AFTER=1ms", "WITNESS_EXIT_CODE=3")
	runs := s.runs("the second, and its end", func(runs []testimony.Run) bool { return len(runs) == 2 && living(1)(runs) && len(runs[1].Met) == 1 })
	if runs[1].Met[0] != runs[0].ID {
		t.Errorf("the second met %v and not %s", runs[1].Met, runs[0].ID)
	}
	if o := testimony.Overlaps(runs, testimony.Now()); len(o) != 1 || o[0].Length <= 0 {
		t.Errorf("overlaps %+v", o)
	}
}

// TestManyAtOnce starts many together: whichever comes later finds the others.
func TestManyAtOnce(t *testing.T) {
	s := open(t)
	const many = 8
	for i := range many {
		s.start(fmt.Sprint("pod-", i))
	}
	s.runs("all of them", func(runs []testimony.Run) bool {
		met := 0
		for _, r := range runs {
			met += len(r.Met)
		}
		// Each pair is found at least once.
		return living(many)(runs) && met >= many*(many-1)/2
	})
}

func TestAChildHoldsTheLock(t *testing.T) {
	s := open(t)
	c := s.start("parent", "WITNESS_FORK=true")
	run := s.runs("the start", living(1))[0]
	if err := s.Kill(run.ID); err != nil {
		t.Fatal(err)
	}
	_ = c.Wait() // the parent is gone
	if runs, err := s.Runs(); err != nil || !living(1)(runs) {
		t.Errorf("%v: a run has ended whose child lives: %+v", err, runs)
	}
	s.endChild(c.Process.Pid)
	s.runs("the end of the child", ended(1))
}

// endChild ends the child of a witness, whose parent is gone: it is the one
// other process with this folder in its environment.
func (s scene) endChild(parent int) {
	s.Helper()
	environs, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, path := range environs {
		var pid int
		_, _ = fmt.Sscanf(path, "/proc/%d/", &pid)
		text, err := os.ReadFile(path)
		if err == nil && pid != parent && pid != os.Getpid() && slices.Contains(splitZero(text), "WITNESS_DIR="+s.Dir()) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

func splitZero(text []byte) []string {
	var words []string
	for start, i := 0, 0; i < len(text); i++ {
		if text[i] == 0 {
			words, start = append(words, string(text[start:i])), i+1
		}
	}
	return words
}

func TestKill(t *testing.T) {
	s := open(t)
	c := s.start("victim", "WITNESS_IGNORE_TERM=true")
	run := s.runs("the start", living(1))[0]
	if err := c.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := s.Kill(run.ID); err != nil {
		t.Fatal(err)
	}
	state, err := c.Process.Wait()
	if err != nil || state.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Errorf("it ended by %v, %v", state, err)
	}
	s.runs("the end", ended(1))
	if err := s.Kill(run.ID); err == nil {
		t.Error("a run that has ended cannot be killed")
	}
}

func TestHolder(t *testing.T) {
	const locks = `1: POSIX  ADVISORY  WRITE 11 fe:00:77 0 EOF
2: FLOCK  ADVISORY  READ 12 fe:00:77 0 EOF
2: -> FLOCK  ADVISORY  WRITE 15 fe:00:77 0 EOF
3: FLOCK  ADVISORY  WRITE 13 fe:00:177 0 EOF
4: FLOCK  ADVISORY  WRITE 14 fe:00:77 0 EOF
`
	if got := holder(locks, 77); got != 14 {
		t.Errorf("got %d, want 14", got)
	}
	if got := holder(locks, 7); got != 0 {
		t.Errorf("got %d, want nobody", got)
	}
}
