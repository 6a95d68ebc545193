package main

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stateful-operator/stateful-operator/agent/driver"
	"github.com/stateful-operator/stateful-operator/agent/lease"
)

func TestFencedRefusesItsArguments(t *testing.T) {
	for _, args := range [][]string{
		{}, {"--epoch=1"}, {"--epoch=1", "--"}, {"--epoch=1", "true"}, {"--", "true"}, {"--epoch=0", "--", "true"},
		{"--epoch=-1", "--", "true"}, {"--epoch=01", "--", "true"}, {"--epoch=x", "--", "true"}, {"--epoch=", "--", "true"},
		{"--epoch", "1", "--", "true"}, {"--epoch=1", "x", "--", "true"},
	} {
		cmd := exec.Command(agentBinary, append([]string{"fenced"}, args...)...)
		out, _ := cmd.CombinedOutput() // the exit code is compared
		if cmd.ProcessState.ExitCode() != int(driver.Unimplemented) || string(out) != usage+"\n" {
			t.Errorf("%v: %s: %s", args, cmd.ProcessState, out)
		}
	}
}

// A program that is not in the image fails before the wait.
func TestFencedLooksUpTheProgram(t *testing.T) {
	cmd := exec.Command(agentBinary, "fenced", "--epoch=1", "--", "/etc/passwd")
	out, _ := cmd.CombinedOutput() // the exit code is compared
	if cmd.ProcessState.ExitCode() != lease.ExitCannotExecute || !strings.Contains(string(out), `cannot run program "/etc/passwd"`) {
		t.Errorf("%s: %s", cmd.ProcessState, out)
	}
}
