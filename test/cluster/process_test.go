package cluster

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

func TestStartTimeOfAProgram(t *testing.T) {
	const tail = " 1 2 3 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 98765 11 12"
	for name, row := range map[string]struct {
		stat    string
		start   string
		running bool
	}{
		"a running program":                             {"42 (etcd) S" + tail, "98765", true},
		"a name with brackets and spaces":               {"42 (a) R (b c) S" + tail, "98765", true},
		"a zombie process":                              {"42 (etcd) Z" + tail, "", false},
		"a file that was read while the program exited": {"", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			start, running := parseStat([]byte(row.stat))
			if start != row.start || running != row.running {
				t.Errorf("got %q, %t; want %q, %t", start, running, row.start, row.running)
			}
		})
	}
}

func TestARecycledIDIsNotTheProcess(t *testing.T) {
	self := identify(os.Getpid())
	if !self.alive() {
		t.Fatalf("this process %+v is not alive", self)
	}
	other := process{PID: self.PID, Start: self.Start + "0"}
	if other.alive() {
		t.Error("a process with this id and another start time counts as the same")
	}
	if (process{}).alive() {
		t.Error("no process counts as alive")
	}
}

func TestAStartedProcessIsMarkedStoppedAndLogged(t *testing.T) {
	dir := t.TempDir()
	p, err := startProcess(dir, "sleeper", []string{"sh", "-c", "echo here; sleep 60; true"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat("/proc/self/environ"); err == nil {
		// The environment is only set once the program is loaded.
		if err := poll(context.Background(), 10*time.Second, func() bool { return len(marked(dir)) > 0 }); err != nil {
			t.Error("the process does not have the mark of its cluster")
		}
	}
	log := filepath.Join(dir, "logs", "sleeper.log")
	if err := poll(context.Background(), 10*time.Second, func() bool {
		content, _ := os.ReadFile(log)
		return string(content) == "here\n"
	}); err != nil {
		t.Error("its output is missing in its log")
	}
	if err := p.stop(context.Background(), time.Second); err != nil {
		t.Fatal(err)
	}
	if p.alive() {
		t.Error("it runs after stop")
	}
	if err := killAll(context.Background(), state{}, dir); err != nil {
		t.Errorf("a child that is found only by its mark: %v", err)
	}
	if left := marked(dir); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

func TestWhatEndsByItselfIsStartedAgain(t *testing.T) {
	dir := t.TempDir()
	c := &Cluster{dir: dir, state: state{Processes: map[string]process{}}}
	starts := filepath.Join(dir, "starts")
	if err := c.startForGood("scheduler", "sh", "-c", `echo "$0" >>"$1"`, "start", starts); err != nil {
		t.Fatal(err)
	}
	if err := poll(context.Background(), 10*time.Second, func() bool {
		content, _ := os.ReadFile(starts)
		return string(content) == "start\nstart\n"
	}); err != nil {
		t.Error("it was not stopped")
	}
	if !c.process("scheduler").alive() {
		t.Error("it is not recorded")
	}
	if err := killAll(context.Background(), c.state, dir); err != nil || len(marked(dir)) > 0 {
		t.Errorf("it did not exit with its cluster: %v", err)
	}
}

func TestParsePIDs(t *testing.T) {
	if pid, parent, err := parsePIDs("42 (a) b) S 7 42 0"); pid != 42 || parent != 7 || err != nil {
		t.Errorf("process %d of %d, %v", pid, parent, err)
	}
	for _, stat := range []string{"", "42 (a)", "42 (a) S x", "x (a) S 7"} {
		if _, _, err := parsePIDs(stat); err == nil {
			t.Errorf("%q has no error", stat)
		}
	}
}

func TestDescendants(t *testing.T) {
	child := exec.Command("sleep", "60")
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = child.Process.Kill()
		_ = child.Wait()
	})
	found, err := descendants(os.Getpid())
	if err != nil || found[0] != os.Getpid() || !slices.Contains(found, child.Process.Pid) || slices.Contains(found, os.Getppid()) {
		t.Errorf("process %d with child %d has %v, %v", os.Getpid(), child.Process.Pid, found, err)
	}
}
