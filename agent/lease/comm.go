package lease

import (
	"os"
	"strings"
)

// The names of process 1 in /proc. They are visible in the container, and only process 1 can set them.
const (
	commWaiting = "agent-waiting"
	commRunning = "agent-running"

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
