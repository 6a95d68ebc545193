package main

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/stateful-operator/stateful-operator/agent/driver"
	"github.com/stateful-operator/stateful-operator/agent/processes"
)

func TestProcess1StopsTheApplication(t *testing.T) {
	m := newSet(t, 1).members[0]
	m.must(driver.Succeeded, "seed")
	m.execute("/usr/bin/sh", "-c", "trap '' TERM INT; sleep 1000 >/dev/null 2>&1 </dev/null &")
	m.eventually("the other program runs", func() bool { return len(m.processes("sleep")) == 1 })
	check(t, m.runc("kill", m.container(), "TERM").Run())
	m.ends()
	m.restart()
	out, err := exec.Command("sh", "-c", "LC_ALL=C /usr/lib/postgresql/*/bin/pg_controldata "+m.data()).Output()
	check(t, err)
	if !strings.Contains(string(out), "Database cluster state:               shut down\n") {
		t.Errorf("the server was not stopped cleanly: %s", out)
	}
	m.must(driver.Stopped, "status")
}

// The end of the container is the fastest report of a crash.
func TestProcess1EndsWithACrash(t *testing.T) {
	m := newSet(t, 1).members[0]
	m.must(driver.Succeeded, "seed")
	m.signal("postgres", syscall.SIGKILL)
	m.ends()
	if log := m.log(); !strings.Contains(log, "the application was killed or has crashed: ends the container") {
		t.Errorf("the log has no reason: %s", log)
	}
}

// Process 1 survives a stop, also one with SIGKILL, and releases zombies.
func TestProcess1Remains(t *testing.T) {
	m := newSet(t, 1).members[0]
	m.must(driver.Succeeded, "seed")
	id := m.processes("agent")[0].ID
	m.signal("postgres", syscall.SIGSTOP) // only SIGKILL ends it
	m.must(driver.Succeeded, "stop")
	m.must(driver.Stopped, "status")
	m.eventually("no zombie remains", func() bool {
		out, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", id, id))
		return err == nil && strings.TrimSpace(string(out)) == ""
	})
	if err := syscall.Kill(id, 0); err != nil {
		t.Errorf("process 1 has ended: %v", err)
	}
	m.must(driver.Succeeded, "seed")
}

// Outside of a container, the program would kill all processes of the machine.
func TestIdleMustBeProcess1(t *testing.T) {
	out, err := exec.Command(agentBinary, "postgresql", "idle").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "must be process 1") {
		t.Errorf("idle: %v: %s", err, out)
	}
	if all, err := processes.All(); err != nil || len(all) < 2 {
		t.Errorf("the processes are %v (%v)", all, err)
	}
}

func TestIdleRefusesItsFlags(t *testing.T) {
	for _, row := range []struct {
		args []string
		code driver.Code
		text string
	}{
		{[]string{"--lease=a", "--duration=15s"}, driver.NotConfigured, "must be process 1"},
		{[]string{"--lease=a", "--duration=9s"}, driver.NotConfigured, "from 10s to 10m0s"},
		{[]string{"--lease=a"}, driver.NotConfigured, "from 10s to 10m0s"},
		{[]string{"--duration=15s"}, driver.Unimplemented, usage},
		{[]string{"--lease=a", "--duration=15s", "x"}, driver.Unimplemented, usage},
		{[]string{"--start=1.2"}, driver.Unimplemented, usage},
	} {
		cmd := exec.Command(agentBinary, append([]string{"etcd", "idle"}, row.args...)...)
		out, _ := cmd.CombinedOutput() // the exit code is compared
		if cmd.ProcessState.ExitCode() != int(row.code) || !strings.Contains(string(out), row.text) {
			t.Errorf("%v: %s: %s", row.args, cmd.ProcessState, out)
		}
	}
}

func TestUnknownArgumentsGetTheUsage(t *testing.T) {
	for _, args := range [][]string{{}, {"help"}, {"install"}, {"postgresql"}, {"mysql", "status"}, {"postgresql", "dance"}, {"postgresql", "idle", "x"}} {
		out, err := exec.Command(agentBinary, args...).CombinedOutput()
		if err == nil || string(out) != usage+"\n" {
			t.Errorf("%v: %v: %s", args, err, out)
		}
	}
}
