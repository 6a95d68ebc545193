package driver

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stateful-operator/stateful-operator/agent/files"
	"github.com/stateful-operator/stateful-operator/agent/settings"
)

// Member is the part of a Driver that all applications have.
type Member struct {
	Name string // of the pod
	// Private contains the socket of the server, and secrets.
	Private files.Private

	startLimit time.Duration
}

// NewMember returns the member in which this process runs.
func NewMember(application string, config settings.Common) (Member, error) {
	name := os.Getenv("POD_NAME")
	if name == "" {
		return Member{}, Errorf(NotConfigured, "the environment variable POD_NAME is not set")
	}
	private, err := files.OpenPrivate(config.RunDir, application)
	if err != nil {
		return Member{}, Errorf(NotConfigured, "%w", err)
	}
	return Member{Name: name, Private: private, startLimit: time.Duration(config.CommandSeconds) * time.Second}, nil
}

// LockDir is the folder for the lock of commands.
func (m Member) LockDir() string { return string(m.Private) }

// StartLimit is the time after which a command that starts the server gives up.
func (m Member) StartLimit() time.Duration { return m.startLimit }

// ErrNoOther is the error of a command that needs another primary.
var ErrNoOther = errors.New("no other primary was named")

// Others returns the hosts without this member.
func (m Member) Others(primaries []string) []string {
	return slices.DeleteFunc(slices.Clone(primaries), func(host string) bool {
		name, _, _ := strings.Cut(host, ".")
		return name == m.Name
	})
}

// SourceOf returns the primary to copy from. This member may be in the list.
func (m Member) SourceOf(primaries []string) (string, error) {
	others := m.Others(primaries)
	if len(others) == 0 {
		return "", ErrNoOther
	}
	return others[0], nil
}

// IsProcess reports whether a private file has this process ID.
func (m Member) IsProcess(file string, pid int) bool {
	text, err := os.ReadFile(m.Private.Path(file))
	return err == nil && strings.TrimSpace(string(text)) == strconv.Itoa(pid)
}

// Undo stops the server after an error of a start: a start takes effect before its command ends, or not at
// all.
func Undo(err error, stop func() error) error {
	if err == nil {
		return nil
	}
	if stopErr := stop(); stopErr != nil {
		return fmt.Errorf("%w, and then: %w", err, stopErr)
	}
	return err
}
