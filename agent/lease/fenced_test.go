package lease

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// expired is the end of a wait.
func expired() <-chan time.Time {
	c := make(chan time.Time)
	close(c)
	return c
}

func TestWaitUntilArmed(t *testing.T) {
	for _, row := range []struct{ name, want string }{
		{"armed-7", ""},
		{"armed-6", `must show "armed-7", and shows "armed-6"`},
		{"armed-70", `shows "armed-70"`},
		{commWaiting, `shows "agent-waiting"`},
		{"armed-7x", `shows "armed-7x"`},
		{"", `shows ""`},
	} {
		comm := filepath.Join(t.TempDir(), "comm")
		write(t, filepath.Dir(comm), "comm", row.name+"\n")
		text := ""
		if err := (wait{comm: comm, ask: func() {}, limit: expired()}).untilArmed(7); err != nil {
			text = err.Error()
		}
		isArmed := row.want == ""
		if isArmed != (text == "") || !strings.Contains(text, row.want) || strings.Contains(text, "\n") {
			t.Errorf("%q: the error is %q", row.name, text)
		}
	}
	if err := (wait{comm: "/nonexistent", limit: expired()}).untilArmed(7); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("a missing file: %v", err)
	}
}

// A command whose epoch has passed does not wait.
func TestAnOutdatedCommandFailsAtOnce(t *testing.T) {
	comm := filepath.Join(t.TempDir(), "comm")
	write(t, filepath.Dir(comm), "comm", "armed-8\n")
	if err := (wait{comm: comm}).untilArmed(7); err == nil || !strings.Contains(err.Error(), "outdated") {
		t.Errorf("the error is %v", err)
	}
}

func TestACommandWaitsForItsEpoch(t *testing.T) {
	dir := t.TempDir()
	comm := filepath.Join(dir, "comm")
	write(t, dir, "comm", "armed-6\n")
	done := make(chan error)
	go func() { done <- (wait{comm: comm, ask: func() {}}).untilArmed(7) }()
	write(t, dir, "next", "armed-7\n")
	if err := os.Rename(filepath.Join(dir, "next"), comm); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// Process 1 is asked at once, and again, but only if it is an agent with a Lease.
func TestACommandAsksProcess1(t *testing.T) {
	dir := t.TempDir()
	comm := filepath.Join(dir, "comm")
	for _, name := range []string{commWaiting, "armed-6"} {
		write(t, dir, "comm", name+"\n")
		asked, again, done := make(chan struct{}), make(chan time.Time), make(chan error)
		w := wait{comm: comm, ask: func() { asked <- struct{}{} }, again: again}
		go func() { done <- w.untilArmed(7) }()
		<-asked
		again <- time.Time{}
		<-asked
		again <- time.Time{}
		<-asked
		write(t, dir, "next", "armed-7\n")
		if err := os.Rename(filepath.Join(dir, "next"), comm); err != nil {
			t.Fatal(err)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	for _, name := range []string{"agent", "agent-running", "sh", "armed-x", ""} {
		write(t, dir, "comm", name+"\n")
		w := wait{comm: comm, ask: func() { t.Errorf("process 1 with the name %q is asked", name) }, limit: expired()}
		if err := w.untilArmed(7); err == nil {
			t.Errorf("%q is armed", name)
		}
	}
}

func TestParseEpoch(t *testing.T) {
	for text, want := range map[string]int64{
		"1": 1, "120": 120, "0": 0, "": 0, "-1": 0, "+1": 0, "01": 0, "1x": 0, "0x1": 0, "9999999999999999999": 0,
	} {
		if got, ok := ParseEpoch(text); got != want || ok != (want > 0) {
			t.Errorf("%q is %d (%v), want %d", text, got, ok, want)
		}
	}
}

func TestAProgramThatCannotReplaceTheAgent(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "x")
	write(t, dir, "x", "")
	if err := os.Chmod(path, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := Replace(path, []string{path}); err == nil || !strings.Contains(err.Error(), "another architecture") {
		t.Errorf("the error is %v", err)
	}
}
