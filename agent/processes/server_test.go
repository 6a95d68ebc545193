package processes

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

func TestServers(t *testing.T) {
	cmd := exec.Command("sleep", "1000")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }() // killed below
	servers := Servers{"no-such-server", "sleep"}
	if running, err := servers.Running(); !running || err != nil || servers.Ended() {
		t.Errorf("a running server: %t (%v), ended %t", running, err, servers.Ended())
	}
	none := Servers{"no-such-server"}
	if running, err := none.Running(); running || err != nil || !none.Ended() || none.Kill(time.Second) != nil {
		t.Errorf("no server: %t (%v), ended %t", running, err, none.Ended())
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-ended
}

// TestAProcessThatExecutesAnotherProgramIsListed lists a script that executes itself all the time.
func TestAProcessThatExecutesAnotherProgramIsListed(t *testing.T) {
	script := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(script, []byte("#!/bin/sh\nexec \"$0\"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	const tag = "PROCESSES_TEST=executes"
	cmd := exec.Command(script)
	cmd.Env = append(os.Environ(), tag)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	for i := range 3000 {
		if !(Process{ID: cmd.Process.Pid}).has(tag) {
			t.Fatalf("the variable is missing in call %d", i)
		}
	}
}
