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
		if err := waitUntilArmed(comm, 7, expired()); err != nil {
			text = err.Error()
		}
		isArmed := row.want == ""
		if isArmed != (text == "") || !strings.Contains(text, row.want) || strings.Contains(text, "\n") {
			t.Errorf("%q: the error is %q", row.name, text)
		}
	}
	if err := waitUntilArmed("/nonexistent", 7, expired()); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("a missing file: %v", err)
	}
}

// A command whose epoch has passed does not wait.
func TestAnOutdatedCommandFailsAtOnce(t *testing.T) {
	comm := filepath.Join(t.TempDir(), "comm")
	write(t, filepath.Dir(comm), "comm", "armed-8\n")
	if err := waitUntilArmed(comm, 7, nil); err == nil || !strings.Contains(err.Error(), "outdated") {
		t.Errorf("the error is %v", err)
	}
}

func TestACommandWaitsForItsEpoch(t *testing.T) {
	dir := t.TempDir()
	comm := filepath.Join(dir, "comm")
	write(t, dir, "comm", "armed-6\n")
	done := make(chan error)
	go func() { done <- waitUntilArmed(comm, 7, nil) }()
	write(t, dir, "next", "armed-7\n")
	if err := os.Rename(filepath.Join(dir, "next"), comm); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
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
