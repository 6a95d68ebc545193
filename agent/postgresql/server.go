package postgresql

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"github.com/stateful-operator/stateful-operator/agent/driver"
	"github.com/stateful-operator/stateful-operator/agent/postgresql/settings"
	"github.com/stateful-operator/stateful-operator/agent/processes"
)

// Name is the type of the application in the arguments of the agent.
const Name = "postgresql"

// servers are the processes of a server, which have the same name. A process whose data folder is unknown
// counts too.
var servers = processes.Servers{"postgres"}

// Server is the driver for PostgreSQL.
type Server struct {
	driver.Member
	config settings.Config
	log    *driver.Log

	// For Maintain.
	mustReload bool
	rolesOf    string // a hash of the credentials that the roles of this server have, if known
}

var _ driver.Copier = &Server{}

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
	member, err := driver.NewMember(Name, config.Common)
	if err != nil {
		return nil, err
	}
	return &Server{Member: member, config: config, log: log}, nil
}

func (s *Server) data(names ...string) string {
	return filepath.Join(append([]string{s.config.DataDir}, names...)...)
}

func (s *Server) walDir() string { return s.data("pg_wal") }

// Ready returns an error if the server does not accept connections.
func (s *Server) Ready(ctx context.Context) error {
	_, err := s.inRecovery(ctx)
	return err
}

// Primary is not supported: PostgreSQL has one primary.
func (s *Server) Primary(context.Context, []string) error {
	return driver.Errorf(driver.NotConfigured, "PostgreSQL has one primary: set spec.primaries to 1")
}
