package processes

import (
	"os/exec"
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
