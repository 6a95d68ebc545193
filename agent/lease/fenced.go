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
	// armedLimit limits the wait for an epoch. A request lasts up to 10 s if its connection is dead.
	armedLimit = 15 * time.Second
	pollComm   = 20 * time.Millisecond
	askEvery   = time.Second
	// askSignal asks process 1 of a member to read its Lease. Without a Lease, Go's runtime ignores it.
	askSignal = syscall.SIGUSR1
)

// ParseEpoch parses a decimal number of at least 1.
func ParseEpoch(text string) (epoch int64, ok bool) {
	if !isEpoch(text) {
		return 0, false
	}
	epoch, err := strconv.ParseInt(text, 10, 64)
	return epoch, err == nil
}

// WaitUntilArmed waits some seconds until process 1 of a member is armed with an epoch, and returns an error if it is
// not. Process 1 is asked to read its Lease, because its watch can be dead for minutes.
func WaitUntilArmed(epoch int64) error {
	again := time.NewTicker(askEvery)
	defer again.Stop()
	w := wait{comm: CommOfProcess1, again: again.C, limit: time.After(armedLimit)}
	w.ask = func() { _ = syscall.Kill(1, askSignal) } // the wait goes on if another user runs process 1
	return w.untilArmed(epoch)
}

// wait is a wait for process 1.
type wait struct {
	comm  string // the file with the name of process 1
	ask   func()
	again <-chan time.Time // when process 1 is asked again
	limit <-chan time.Time
}

func (w wait) untilArmed(epoch int64) error {
	poll := time.NewTicker(pollComm)
	defer poll.Stop()
	for due := true; ; {
		text, err := os.ReadFile(w.comm)
		name := strings.TrimSuffix(string(text), "\n")
		isOutdated := armedEpoch(name) > epoch
		switch {
		case err == nil && name == armedComm(epoch):
			return nil
		case isOutdated:
			return notArmed(epoch, name, err)
		case due && canBeAsked(name):
			due = false
			w.ask()
		}
		select {
		case <-w.limit:
			return notArmed(epoch, name, err)
		case <-w.again:
			due = true
		case <-poll.C:
		}
	}
}

// canBeAsked reports whether a name of process 1 is one of an agent with a Lease. The signal could end another program.
func canBeAsked(name string) bool { return name == commWaiting || armedEpoch(name) > 0 }

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
