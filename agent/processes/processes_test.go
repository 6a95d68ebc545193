package processes

import (
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"
)

func TestParse(t *testing.T) {
	for stat, want := range map[string]Process{
		"7 (postgres) S 1 7 7 0 -1":  {ID: 7, Parent: 1, Name: "postgres"},
		"7 (a) b (c)) R 12 7 7 0 -1": {ID: 7, Parent: 12, Name: "a) b (c)"},
		"7 (postgres) T 1 7 7 0 -1":  {ID: 7, Parent: 1, Name: "postgres"}, // stopped by a signal
		"7 (postgres) D 1 7 7 0 -1":  {ID: 7, Parent: 1, Name: "postgres"},
		"7 (postgres) Z 1 7 7 0 -1":  {},
		"7 (postgres) X 1 7 7 0 -1":  {},
		// One thread, and several ones.
		"7 (beam.smp) Z 1 7 7 0 -1 4 0 0 0 0 0 0 0 0 20 0 1 0":  {},
		"7 (beam.smp) Z 1 7 7 0 -1 4 0 0 0 0 0 0 0 0 20 0 12 0": {ID: 7, Parent: 1, Name: "beam.smp"},
		"":                        {},
		"7 (postgres)":            {},
		"7 postgres S 1 7 7 0 -1": {},
		"7 (postgres) S x 7 7 -1": {},
	} {
		got, ok := parse(7, stat)
		if ok != (want.ID != 0) || ok && got != want {
			t.Errorf("%q is %+v (%v), want %+v", stat, got, ok, want)
		}
	}
}

// A zombie has ended, although kill -0 finds it.
func TestZombiesDoNotCount(t *testing.T) {
	cmd := exec.Command("sleep", "1000")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	count := func() int {
		found, err := Named("sleep")
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, p := range found {
			if p.Parent == os.Getpid() {
				n++
			}
		}
		return n
	}
	if !WaitUntil(5*time.Second, func() bool { return count() == 1 }) {
		t.Error("a running process does not count")
	}
	Signal([]Process{{ID: cmd.Process.Pid}}, syscall.SIGKILL)
	if !WaitUntil(5*time.Second, func() bool { return count() == 0 }) {
		t.Error("a zombie counts")
	}
	if err := cmd.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("the process is no zombie: %v", err)
	}
	_ = cmd.Wait() // killed
}
