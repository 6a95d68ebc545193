package processes

import (
	"errors"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Servers are the names of the processes of an application.
type Servers []string

// List returns the processes in this PID namespace, which is that of the container.
func (s Servers) List() ([]Process, error) { return Named(s...) }

// ListTagged returns the processes of the application, and those that have a variable in their environment:
// what a server starts has its environment.
func (s Servers) ListTagged(tag string) ([]Process, error) {
	all, err := All()
	return slices.DeleteFunc(all, func(p Process) bool {
		return !slices.Contains(s, p.Name) && !p.has(tag)
	}), err
}

// ListTagged returns the processes that have a variable in their environment.
func ListTagged(tag string) ([]Process, error) { return Servers{}.ListTagged(tag) }

// While a process executes another program, its environment is empty or incomplete for a moment, which lasts
// longer if the program must be read from disk. So it is read until two reads are the same, or for a second if it
// is empty.
const (
	emptyLimit   = time.Second
	betweenReads = 200 * time.Microsecond
)

// has reports whether a process was started with a variable, which has the form NAME=VALUE. It returns false if
// the process has ended.
func (p Process) has(variable string) bool {
	previous := ""
	for deadline := time.Now().Add(emptyLimit); time.Now().Before(deadline); time.Sleep(betweenReads) {
		text, err := os.ReadFile("/proc/" + strconv.Itoa(p.ID) + "/environ")
		switch {
		case err != nil:
			return false
		case slices.Contains(strings.Split(string(text), "\x00"), variable):
			return true
		case len(text) > 0 && string(text) == previous:
			return false
		}
		if _, exists := read(p.ID); !exists {
			return false
		}
		previous = string(text)
	}
	return false
}

// Running reports whether any of the processes exists.
func (s Servers) Running() (bool, error) {
	found, err := s.List()
	return len(found) > 0, err
}

// Ended reports whether none of the processes exists. It returns false if that is unknown.
func (s Servers) Ended() bool { return Ended(s.List) }

// Ended reports whether a function lists no process. It returns false if that is unknown.
func Ended(list func() ([]Process, error)) bool {
	found, err := list()
	return err == nil && len(found) == 0
}

// Kill ends the processes with SIGKILL. It returns an error if the time expires before.
func (s Servers) Kill(limit time.Duration) error { return KillServer(limit, s.List) }

// KillServer ends the processes of a server that a function lists. It returns an error if the time expires
// before.
func KillServer(limit time.Duration, list func() ([]Process, error)) error {
	if !Kill(limit, list) {
		return errors.New("the server does not end")
	}
	return nil
}
