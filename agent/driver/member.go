package driver

import (
	"errors"
	"os"
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

// SourceOf returns the primary to copy from. This member may be in the list.
func (m Member) SourceOf(primaries []string) (string, error) {
	for _, host := range primaries {
		if name, _, _ := strings.Cut(host, "."); name != m.Name {
			return host, nil
		}
	}
	return "", errors.New("no other primary was named")
}
