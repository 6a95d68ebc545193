package lease

import (
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

func TestLookUp(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "text", "")
	t.Setenv("PATH", dir+":/bin")
	for _, row := range []struct {
		name string
		code int
	}{
		{"sh", 0}, {"/bin/sh", 0}, {"nothing", ExitNotFound}, {"/nothing", ExitNotFound}, {filepath.Join(dir, "text", "x"), ExitNotFound},
		{"", ExitNotFound}, {dir, ExitCannotExecute}, {filepath.Join(dir, "text"), ExitCannotExecute},
	} {
		path, code, err := LookUp(row.name)
		if code != row.code || (err == nil) != (code == 0) || (path == "") != (code != 0) {
			t.Errorf("%q: %q %d (%v), want %d", row.name, path, code, err, row.code)
		}
	}
}

func TestWithLease(t *testing.T) {
	got := withLease([]string{"A=1", "A=2", "", "FENCING_EPOCH=9", "FENCING_LEASE", "FENCING_EPOCHS=3"}, "shop/orders", 4)
	want := []string{"A=1", "A=2", "", "FENCING_EPOCHS=3", "FENCING_EPOCH=4", "FENCING_LEASE=shop/orders"}
	if !slices.Equal(got, want) {
		t.Errorf("the environment is %q, want %q", got, want)
	}
	if len(environment()) == 0 {
		t.Error("the own environment is empty")
	}
}

func TestStart(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "text", "no program")
	if _, err := start(filepath.Join(dir, "text"), []string{"text"}, nil); err == nil {
		t.Error("a text was started")
	}
	for script, want := range map[string]int{"exit 7": 7, "kill -TERM $$": 128 + 15} {
		pid, err := start("/bin/sh", []string{"sh", "-c", script}, nil)
		if err != nil {
			t.Fatal(err)
		}
		var status syscall.WaitStatus
		if _, err := syscall.Wait4(pid, &status, 0, nil); err != nil {
			t.Fatal(err)
		}
		if got := exitCode(status); got != want {
			t.Errorf("%s: exit code %d, want %d", script, got, want)
		}
	}
}

func TestHint(t *testing.T) {
	for err, want := range map[error]string{syscall.ENOEXEC: "architecture", syscall.ENOENT: "interpreter", syscall.EACCES: ""} {
		if got := hint(err); !strings.Contains(got, want) || (got == "") != (want == "") {
			t.Errorf("%v: %q", err, got)
		}
	}
}
