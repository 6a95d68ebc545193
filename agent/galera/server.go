package galera

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"

	"github.com/stateful-operator/stateful-operator/agent/driver"
	"github.com/stateful-operator/stateful-operator/agent/galera/settings"
	"github.com/stateful-operator/stateful-operator/agent/processes"
)

// Name is the type of the application in the arguments of the agent.
const Name = "galera"

// processName is the name of a server, and of its program.
const processName = "mariadbd"

// servers are the processes of a server.
var servers = processes.Servers{processName}

// Server is the driver for MariaDB Galera.
type Server struct {
	driver.Member
	driver.AllPrimaries
	config        settings.Config
	start         driver.Start
	log           *driver.Log
	address       string // of the pod
	localPassword string // of the agent

	applied string // the password that this process has set, for Maintain
}

var _ driver.Copier = &Server{}

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
	address := os.Getenv(settings.AddressVariable)
	if net.ParseIP(address) == nil {
		return nil, driver.Errorf(driver.NotConfigured, "the environment variable %s is %q, and not an IP address", settings.AddressVariable, address)
	}
	password, err := member.Private.Password()
	if err != nil {
		return nil, err
	}
	return &Server{Member: member, AllPrimaries: driver.AllPrimaries{Why: "all members of Galera are primaries"}, config: config, start: start, log: log, address: address, localPassword: password}, nil
}

// folder returns the data folder of MariaDB.
func (s *Server) folder() string { return filepath.Join(s.config.DataDir, "mysql") }

// temporary returns the folder for temporary files, which can be as large as the data.
func (s *Server) temporary() string { return filepath.Join(s.config.DataDir, "tmp") }

func (s *Server) data(name string) string { return filepath.Join(s.folder(), name) }

func address(host string, port int32) string { return net.JoinHostPort(host, strconv.Itoa(int(port))) }

const (
	// copyingFile exists while the server receives a copy of the data.
	copyingFile = "sst_in_progress"
	// scriptFile has the process ID of the script for a copy.
	scriptFile = "wsrep_sst.pid"
)

func (s *Server) copying() bool {
	_, err := os.Stat(s.data(copyingFile))
	return err == nil
}

// Ready returns an error while clients cannot write.
func (s *Server) Ready(ctx context.Context) error {
	found, err := s.local(ctx)
	switch {
	case err != nil:
		return err
	case !found.serves():
		return fmt.Errorf("the member is %s in a cluster that is %s", found.local, found.cluster)
	}
	return nil
}

// Status returns the state of the server. A server without a majority, and one that does not answer, is
// queried again until the time is over.
func (s *Server) Status(ctx context.Context) (driver.Code, error) {
	for {
		code, err := s.status(ctx)
		if err == nil || !isTransient(err) {
			return code, err
		}
		if driver.Pause(ctx) {
			continue
		}
		if isFull(err) { // it works, and one that is busy must not be stopped
			return driver.Primary, nil
		}
		return driver.Failed, err
	}
}

// transientError is a state that can end soon.
type transientError struct{ error }

func (e transientError) Unwrap() error { return e.error }

func isTransient(err error) bool {
	var transient transientError
	return errors.As(err, &transient)
}

// status returns the state of the server now.
func (s *Server) status(ctx context.Context) (driver.Code, error) {
	joins, err := driver.Copying()
	if err != nil {
		return driver.Failed, err
	}
	running, err := s.running()
	switch {
	case err != nil:
		return driver.Failed, err
	case !running && joins:
		return driver.DegradedPrimary, nil // it is about to start
	case !running:
		return driver.Stopped, nil
	}
	if alive, err := servers.Running(); err != nil || !alive {
		return driver.Failed, errors.Join(errRemains, err)
	}
	found, err := s.local(ctx)
	if err != nil {
		if joins {
			return driver.DegradedPrimary, nil // it does not answer before it has all data
		}
		return driver.Failed, transientError{err}
	}
	switch {
	case found.serves() && found.counts:
		return driver.Primary, nil
	case found.serves(), joins && found.primary():
		return driver.DegradedPrimary, nil
	case found.primary():
		return driver.Failed, transientError{fmt.Errorf("the member is %s", found.local)}
	}
	return driver.Failed, transientError{errors.New("the member is not connected to a majority")}
}

var errRemains = errors.New("the server has ended, and a program that it has started still runs")

// Sequence returns the number of this copy.
func (s *Server) Sequence(ctx context.Context) (uint64, error) {
	running, err := s.running()
	if err != nil {
		return 0, err
	}
	if running {
		return s.runningSequence(ctx)
	}
	m, err := s.mark()
	if err != nil {
		return 0, err
	}
	if !m.hasData() {
		return 0, s.checkForeign(m)
	}
	p, err := s.position(ctx, m)
	switch {
	case err != nil:
		return 0, err
	case p.known():
		return m.Generation.sequence(p.Number), nil
	case m.isNew():
		return m.Generation.sequence(0), nil
	}
	return 0, nil
}

// runningSequence returns the number of a running server, when all transactions up to it are on disk.
func (s *Server) runningSequence(ctx context.Context) (uint64, error) {
	db, err := s.own()
	if err != nil {
		return 0, err
	}
	defer db.Close()
	found, err := inspect(ctx, db)
	if err != nil {
		if stored, readErr := s.readState(); readErr == nil && !stored.known() && s.copying() {
			return 0, nil // it receives a copy
		}
		return 0, err
	}
	if err := waitForDisk(ctx, db); err != nil {
		return 0, err
	}
	return found.generation.sequence(found.committed), nil
}

// checkForeign returns an error if the folder has data that no command of the agent has created.
func (s *Server) checkForeign(m mark) error {
	entries, err := os.ReadDir(s.folder())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil && len(entries) > 0 && m.State == "" {
		return driver.Errorf(driver.NotInstalled, "%s has data of another MariaDB, and %s does not exist: move the data away, and load a dump of it into the set",
			s.folder(), s.markPath())
	}
	return err
}
