package postgresql

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/stateful-operator/stateful-operator/agent/driver"
	"github.com/stateful-operator/stateful-operator/agent/postgresql/settings"
	"github.com/stateful-operator/stateful-operator/agent/processes"
)

// Name is the type of the application in the arguments of the agent.
const Name = "postgresql"

// processName is the name of all processes of a server.
const processName = "postgres"

// Server is the driver for PostgreSQL.
type Server struct {
	config settings.Config
	member string // the name of the pod
	log    *driver.Log

	// For Maintain.
	mustReload bool
	rolesOf    string // a hash of the credentials that the roles of this server have, if known
}

var _ driver.Driver = &Server{}

// New returns the driver that the environment configures. It removes the variables of libpq from the
// environment, because they would change connections, and may contain a password.
func New(log *driver.Log) (*Server, error) {
	config, err := settings.Decode(os.Getenv(settings.Variable))
	if err != nil {
		return nil, driver.Errorf(driver.NotConfigured, "%w", err)
	}
	for _, entry := range os.Environ() {
		if key, _, _ := strings.Cut(entry, "="); strings.HasPrefix(key, "PG") {
			os.Unsetenv(key)
		}
	}
	member := os.Getenv("POD_NAME")
	if member == "" {
		return nil, driver.Errorf(driver.NotConfigured, "the environment variable POD_NAME is not set")
	}
	s := &Server{config: config, member: member, log: log}
	return s, s.makePrivate()
}

// makePrivate creates the private folder. Other containers of the pod can have created it, if they use the
// same memory.
func (s *Server) makePrivate() error {
	if err := os.Mkdir(s.privateDir(), 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return driver.Errorf(driver.NotConfigured, "runDir must be writable: %w", err)
	}
	info, err := os.Lstat(s.privateDir())
	if err != nil {
		return driver.Errorf(driver.NotConfigured, "runDir must be readable: %w", err)
	}
	owner, known := info.Sys().(*syscall.Stat_t)
	if !info.IsDir() || info.Mode().Perm() != 0o700 || !known || int(owner.Uid) != os.Geteuid() {
		return driver.Errorf(driver.NotConfigured, "%s belongs to another user, or others can read it: remove it, or the container that created it", s.privateDir())
	}
	return nil
}

// LockDir is the folder for the lock of commands.
func (s *Server) LockDir() string { return s.privateDir() }

// StartLimit is the time after which a command that starts the server gives up.
func (s *Server) StartLimit() time.Duration {
	return time.Duration(s.config.CommandSeconds) * time.Second
}

// privateDir contains the socket, so that the local superuser needs no password, and secrets.
func (s *Server) privateDir() string { return filepath.Join(s.config.RunDir, Name) }

func (s *Server) private(name string) string { return filepath.Join(s.privateDir(), name) }

func (s *Server) data(names ...string) string {
	return filepath.Join(append([]string{s.config.DataDir}, names...)...)
}

func (s *Server) walDir() string { return s.data("pg_wal") }

// running reports whether any process of a server exists in this PID namespace, which is that of the
// container. A process whose data folder is unknown counts too.
func (s *Server) running() (bool, error) {
	found, err := processes.Named(processName)
	return len(found) > 0, err
}

// Ready returns an error if the server does not accept connections.
func (s *Server) Ready(ctx context.Context) error {
	_, err := s.inRecovery(ctx)
	return err
}

// Primary is not supported: PostgreSQL has one primary.
func (s *Server) Primary(context.Context, []string) error {
	return driver.Errorf(driver.NotConfigured, "PostgreSQL has one primary: set spec.primaries to 1")
}
