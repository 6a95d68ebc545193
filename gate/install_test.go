package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stateful-operator/stateful-operator/gate/script"
)

func TestInstallCopiesTheGate(t *testing.T) {
	dir := t.TempDir()
	want, err := os.ReadFile(gateBinary)
	if err != nil {
		t.Fatal(err)
	}
	installed := filepath.Join(dir, "gate")
	check := func() {
		t.Helper()
		for name, want := range map[string][]byte{"gate": want, "entrypoint-wrapper.sh": []byte(script.Text)} {
			got, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil || !bytes.Equal(got, want) {
				t.Errorf("%s has %d bytes (%v), want %d", name, len(got), err, len(want))
			}
			if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Mode() != 0o755 {
				t.Errorf("%s is %v (%v), want mode 0755", name, info.Mode(), err)
			}
		}
		if entries, err := os.ReadDir(dir); err != nil || len(entries) != 2 {
			t.Errorf("the folder contains %v (%v), want only the gate and its script", entries, err)
		}
	}
	umask := exec.Command("sh", "-c", `umask 077; exec "$@"`, "sh", gateBinary, "install", dir)
	if got, want := run(t, umask), (result{status: "exit 0"}); got != want {
		t.Fatalf("install: %+v, want %+v", got, want)
	}
	check()

	// Installing replaces a running copy, also if that copy installs itself.
	p := newPod(t, "")
	cmd := gate(p, "wait")
	cmd.Path = installed
	r := start(t, cmd)
	r.waits()
	if got, want := run(t, exec.Command(installed, "install", dir)), (result{status: "exit 0"}); got != want {
		t.Fatalf("install: %+v, want %+v", got, want)
	}
	check()
	p.grant(granted)
	wantEqual(t, "the exit", r.end().status, "exit 0")
}

func TestInstallSaysWhatIsWrong(t *testing.T) {
	got := run(t, exec.Command(gateBinary, "install", "/no/where"))
	if !strings.HasPrefix(got.stderr, "StatefulSingleton: cannot install the gate: ") ||
		!strings.Contains(got.stderr, "no such file or directory") || got.status != "exit 1" {
		t.Errorf("%+v, want exit 1 and one line with the cause", got)
	}

	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "gate"), 0o755); err != nil { // the target is a folder
		t.Fatal(err)
	}
	if got := run(t, exec.Command(gateBinary, "install", dir)); got.status != "exit 1" {
		t.Errorf("%+v, want exit 1", got)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("remaining files are %v (%v)", entries, err)
	}
}
