package lease

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	// armedLimit limits the wait for an epoch. A member is armed within seconds after its Lease was written.
	armedLimit = 8 * time.Second
	pollComm   = 20 * time.Millisecond
)

// ParseEpoch parses a decimal number of at least 1.
func ParseEpoch(text string) (epoch int64, ok bool) {
	if !isEpoch(text) {
		return 0, false
	}
	epoch, err := strconv.ParseInt(text, 10, 64)
	return epoch, err == nil
}

// WaitUntilArmed waits a few seconds until process 1 of a member is armed with an epoch, and returns an error if it
// is not. comm is the file with the name of process 1.
func WaitUntilArmed(comm string, epoch int64) error {
	return waitUntilArmed(comm, epoch, time.After(armedLimit))
}

func waitUntilArmed(comm string, epoch int64, limit <-chan time.Time) error {
	poll := time.NewTicker(pollComm)
	defer poll.Stop()
	for {
		text, err := os.ReadFile(comm)
		name := strings.TrimSuffix(string(text), "\n")
		isOutdated := armedEpoch(name) > epoch
		switch {
		case err == nil && name == armedComm(epoch):
			return nil
		case isOutdated:
			return notArmed(epoch, name, err)
		}
		select {
		case <-limit:
			return notArmed(epoch, name, err)
		case <-poll.C:
		}
	}
}

func notArmed(epoch int64, name string, err error) error {
	shown := fmt.Sprintf("%q", name)
	if err != nil {
		shown = err.Error()
	}
	return fmt.Errorf("nothing was started: process 1 must show %q, and shows %s; "+
		"the agent of this pod may not reach the API server, or this command is outdated", armedComm(epoch), shown)
}

// Replace replaces this process with a program. It returns only if that fails.
func Replace(path string, argv []string) error {
	err := syscall.Exec(path, argv, environment())
	return fmt.Errorf("the kernel refuses to run %q: %w%s", path, err, hint(err))
}
