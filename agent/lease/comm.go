package lease

import (
	"os"
	"strconv"
	"strings"
)

// The names of process 1 in /proc. They are visible in the container, and only process 1 can set them.
const (
	commWaiting = "agent-waiting"
	commRunning = "agent-running"
	// commArmed precedes the epoch with which process 1 of a member is armed.
	commArmed = "armed-"
	// maxCommBytes is a limit of the kernel, which truncates longer names.
	maxCommBytes = 15

	ownComm = "/proc/self/comm"
	// CommOfProcess1 is the file with the name of process 1.
	CommOfProcess1 = "/proc/1/comm"
)

func setComm(name string) error { return os.WriteFile(ownComm, []byte(name), 0) }

// IsStarted reports whether a process has started its program, by its comm file.
func IsStarted(comm string) (bool, error) {
	text, err := os.ReadFile(comm)
	return strings.TrimSpace(string(text)) == commRunning, err
}

// isShowable reports whether the name of process 1 can show an epoch.
func isShowable(epoch int64) bool { return epoch > 0 && len(armedComm(epoch)) <= maxCommBytes }

func armedComm(epoch int64) string { return commArmed + strconv.FormatInt(epoch, 10) }

// armedEpoch returns the epoch that a name of process 1 shows, or 0.
func armedEpoch(comm string) int64 {
	text, isArmed := strings.CutPrefix(comm, commArmed)
	if !isArmed {
		return 0
	}
	epoch, _ := ParseEpoch(text) // 0 if it is none
	return epoch
}
