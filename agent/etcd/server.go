package etcd

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/stateful-operator/stateful-operator/agent/driver"
	"github.com/stateful-operator/stateful-operator/agent/etcd/gateway"
	"github.com/stateful-operator/stateful-operator/agent/etcd/settings"
	"github.com/stateful-operator/stateful-operator/agent/processes"
	"github.com/stateful-operator/stateful-operator/agent/secrets"
)

// Name is the type of the application in the arguments of the agent.
const Name = "etcd"

// processName is the name of a server, and of its program.
const processName = "etcd"

// servers are the processes of a server.
var servers = processes.Servers{processName}

// Server is the driver for etcd.
type Server struct {
	driver.Member
	driver.AllPrimaries
	config settings.Config
	log    *driver.Log
}

var (
	_ driver.Driver = &Server{}
	_ driver.Leaver = &Server{}
)

// New returns the driver that the environment configures.
func New(log *driver.Log) (*Server, error) {
	config, err := settings.Decode(os.Getenv(settings.Variable))
	if err != nil {
		return nil, driver.Errorf(driver.NotConfigured, "%w", err)
	}
	member, err := driver.NewMember(Name, config.Common)
	if err != nil {
		return nil, err
	}
	return &Server{Member: member, AllPrimaries: driver.AllPrimaries{Why: "etcd elects its leader: all members are primaries"}, config: config, log: log}, nil
}

// folder returns the folder in which etcd creates its own.
func (s *Server) folder() string { return filepath.Join(s.config.DataDir, "etcd") }

// host returns the name of this member for others.
func (s *Server) host() string { return s.Name + "." + s.config.Service }

func (s *Server) peerURL() string { return s.url(s.host(), s.config.PeerPort()) }

func (s *Server) url(host string, port int32) string { return "http://" + address(host, port) }

func address(host string, port int32) string {
	return net.JoinHostPort(host, strconv.Itoa(int(port)))
}

// listenHost returns the address at which the server listens: all addresses of both families, if the
// machine has both.
func (s *Server) listenHost() string {
	if s.config.ListenAddresses != "*" {
		return s.config.ListenAddresses
	}
	l, err := net.Listen("tcp6", "[::1]:0") // [::] can be used although the machine has no IPv6
	if err != nil {
		return "0.0.0.0"
	}
	l.Close()
	return "::"
}

// loopback returns the address that only this pod reaches.
func (s *Server) loopback() string {
	if s.listenHost() == "::" {
		return "::1"
	}
	return "127.0.0.1"
}

// localHost returns the address of the own server.
func (s *Server) localHost() string {
	switch host := s.listenHost(); host {
	case "::", "0.0.0.0":
		return s.loopback()
	default:
		return host
	}
}

// client returns a client of a member.
func (s *Server) client(host string) (*gateway.Client, error) {
	password, err := secrets.Password(s.config.CredentialsDir, settings.PasswordKey)
	if err != nil {
		return nil, err
	}
	return gateway.New(address(host, s.config.Port), password), nil
}

// getLimit is the time for one request to the own server.
const getLimit = 2 * time.Second

// get sends a request to the port for metrics of the own server, and returns the status of the response.
func (s *Server) get(ctx context.Context, path string) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, getLimit)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url(s.localHost(), s.config.MetricsPort())+path, http.NoBody)
	if err != nil {
		return 0, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	return response.StatusCode, nil
}

// answers returns an error if the own server does not answer. It needs neither a majority nor the database,
// which can be busy for a long time. The path does not exist.
func (s *Server) answers(ctx context.Context) error {
	_, err := s.get(ctx, "/alive")
	return err
}

// Ready returns an error if the server does not have a majority. A full database can be read.
func (s *Server) Ready(ctx context.Context) error {
	code, err := s.get(ctx, "/health?exclude=NOSPACE")
	if err == nil && code != http.StatusOK {
		err = errors.New("the server has no leader, or an alarm: see the log of the container")
	}
	return err
}

// Sequence returns 1 if this copy is a member of the cluster, and 0 if it is not.
func (s *Server) Sequence(context.Context) (uint64, error) { return s.record().Sequence() }

// Status returns the state of the server.
func (s *Server) Status(ctx context.Context) (driver.Code, error) {
	return s.record().Status(ctx, servers.Running, s.answers)
}
