package main

import (
	"slices"
	"strings"

	"github.com/stateful-operator/stateful-operator/agent/driver"
	"github.com/stateful-operator/stateful-operator/agent/lease"
)

// epochFlag precedes the epoch in the arguments of fenced.
const epochFlag = "--epoch="

// fenced becomes a command when process 1 of this member is armed with the epoch of the command. So a command that
// is late, or has reached another container, does not begin: the exit code is lease.ExitFenced.
func fenced(args []string) driver.Code {
	end := slices.Index(args, "--")
	if end != 1 || len(args) == 2 || !strings.HasPrefix(args[0], epochFlag) {
		return misused()
	}
	epoch, ok := lease.ParseEpoch(strings.TrimPrefix(args[0], epochFlag))
	if !ok {
		return misused()
	}
	argv := args[end+1:]
	path, code, err := lease.LookUp(argv[0])
	if err != nil {
		fail("fenced", err)
		return driver.Code(code)
	}
	if err := lease.WaitUntilArmed(epoch); err != nil {
		fail("fenced", err)
		return lease.ExitFenced
	}
	fail("fenced", lease.Replace(path, argv))
	return lease.ExitCannotExecute
}
