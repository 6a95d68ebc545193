package redis

import (
	"context"
	"os"
	"path/filepath"

	"github.com/redis/go-redis/v9"

	"github.com/stateful-operator/stateful-operator/agent/driver"
	"github.com/stateful-operator/stateful-operator/agent/processes"
	"github.com/stateful-operator/stateful-operator/agent/redis/settings"
)

// Name is the type of the application in the arguments of the agent.
const Name = "redis"

// servers are the processes of a server. They have the name of its program.
var servers = processes.Servers{"redis-server", "valkey-server"}

// Server is the driver for Redis.
type Server struct {
	driver.Member
	config        settings.Config
	start         driver.Start
	log           *driver.Log
	localPassword string // of the agent

	applied string // a hash of the credentials that this server has, for Maintain
}

var _ driver.Driver = &Server{}

// New returns the driver that the environment configures.
func New(log *driver.Log, start driver.Start) (*Server, error) {
	config, err := settings.Decode(os.Getenv(settings.Variable))
	if err != nil {
		return nil, driver.Errorf(driver.NotConfigured, "%w", err)
	}
	member, err := driver.NewMember(Name, config.Common)
	if err != nil {
		return nil, err
	}
	password, err := member.Private.Password()
	if err != nil {
		return nil, err
	}
	redis.SetLogger(silent{})
	return &Server{Member: member, config: config, start: start, log: log, localPassword: password}, nil
}

func (s *Server) data(name string) string { return filepath.Join(s.config.DataDir, name) }

// Ready returns an error if the server does not serve its data, or has not received it yet.
func (s *Server) Ready(ctx context.Context) error {
	client := s.local()
	defer client.Close()
	found, err := inspect(ctx, client)
	switch {
	case err != nil:
		return err
	case found.copying:
		return errCopying
	case found.loading:
		return errLoading
	}
	return nil
}

// Primary is not supported: Redis has one primary.
func (s *Server) Primary(context.Context, []string) error {
	return driver.Errorf(driver.NotConfigured, "Redis has one primary: set spec.primaries to 1")
}
