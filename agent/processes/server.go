package processes

import (
	"errors"
	"time"
)

// Servers are the names of the processes of an application.
type Servers []string

// List returns the processes in this PID namespace, which is that of the container.
func (s Servers) List() ([]Process, error) { return Named(s...) }

// Running reports whether any of the processes exists.
func (s Servers) Running() (bool, error) {
	found, err := s.List()
	return len(found) > 0, err
}

// Ended reports whether none of the processes exists. It returns false if that is unknown.
func (s Servers) Ended() bool {
	running, err := s.Running()
	return err == nil && !running
}

// Kill ends the processes with SIGKILL. It returns an error if the time expires before.
func (s Servers) Kill(limit time.Duration) error {
	if !Kill(limit, s.List) {
		return errors.New("the server does not end")
	}
	return nil
}
