package rabbitmq

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/stateful-operator/stateful-operator/agent/driver"
	"github.com/stateful-operator/stateful-operator/agent/files"
	"github.com/stateful-operator/stateful-operator/agent/membership"
	"github.com/stateful-operator/stateful-operator/agent/processes"
	"github.com/stateful-operator/stateful-operator/agent/rabbitmq/settings"
)

// Name is the type of the application in the arguments of the agent.
const Name = "rabbitmq"

// virtualMachine is the name of the process of a server. Tools have the same name.
const virtualMachine = "beam.smp"

// Variables of the processes that the server and the tools start.
const (
	serverTag = "STATEFUL_OPERATOR_SERVER=" + Name
	toolTag   = "STATEFUL_OPERATOR_TOOL=" + Name
)

// Server is the driver for RabbitMQ.
type Server struct {
	driver.Member
	driver.AllPrimaries
	config settings.Config
	log    *driver.Log

	applied string // the password that this process has set, for Maintain
	checked bool   // the version of the image
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
	return &Server{Member: member, AllPrimaries: driver.AllPrimaries{Why: "all members of RabbitMQ are primaries"}, config: config, log: log}, nil
}

// folder returns the folder with all files of RabbitMQ.
func (s *Server) folder() string { return filepath.Join(s.config.DataDir, "rabbitmq") }

// data returns the folder with the logs of Raft and the queues.
func (s *Server) data() string { return filepath.Join(s.folder(), "data") }

// record returns the file with the mark of the copy.
func (s *Server) record() membership.File {
	return membership.File{Folder: s.config.DataDir, HasData: s.hasData, HasFiles: s.hasFiles}
}

// groups returns the folders of the Raft groups that are not queues.
func (s *Server) groups() ([]string, error) {
	return filepath.Glob(filepath.Join(s.data(), "coordination", "*", "RABBIT*"))
}

// hasFiles reports whether there is a member of the Raft group with the metadata. RabbitMQ deletes its folder
// when the member is removed. A folder whose configuration a crash has truncated counts.
func (s *Server) hasFiles() (bool, error) {
	return s.anyGroup(func(_ string, config []byte) (bool, error) {
		return len(config) == 0 || isMetadata(config), nil
	})
}

// hasData is hasFiles, but the member must also be in the table of Raft. Otherwise RabbitMQ ignores the folder, and
// starts as the first member of a new cluster.
func (s *Server) hasData() (bool, error) {
	return s.anyGroup(func(folder string, config []byte) (bool, error) {
		table, err := os.ReadFile(filepath.Join(filepath.Dir(folder), "names.dets"))
		if errors.Is(err, fs.ErrNotExist) {
			return false, nil
		}
		return isMetadata(config) && bytes.Contains(table, []byte(filepath.Base(folder))), err
	})
}

func isMetadata(config []byte) bool { return bytes.Contains(config, []byte("rabbitmq_metadata")) }

// anyGroup reports whether the check returns true for any group, with its configuration.
func (s *Server) anyGroup(is func(folder string, config []byte) (bool, error)) (bool, error) {
	folders, err := s.groups()
	if err != nil {
		return false, err
	}
	for _, folder := range folders {
		config, err := os.ReadFile(filepath.Join(folder, "config"))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return false, err
		}
		if found, err := is(folder, config); found || err != nil {
			return found, err
		}
	}
	return false, nil
}

// discard removes the data of the copy. The mark must be that of a copy without data.
func (s *Server) discard() error { return files.RemoveFolder(s.folder()) }

// host returns the name of this member for others.
func (s *Server) host() string { return s.Name + "." + s.config.Service }

// nodeOf returns the name of the Erlang node of a member.
func nodeOf(host string) string { return "rabbit@" + host }

func (s *Server) node() string { return nodeOf(s.host()) }

// list returns the processes of the server: first a script, which becomes the virtual machine, and then the
// programs that it starts.
func (s *Server) list() ([]processes.Process, error) { return processes.ListTagged(serverTag) }

// running reports whether the server runs.
func (s *Server) running() (bool, error) {
	found, err := s.list()
	return len(found) > 0, err
}

// connect connects to a port of the own server.
func connect(ctx context.Context, port int32) (net.Conn, error) {
	var d net.Dialer
	return d.DialContext(ctx, "tcp", net.JoinHostPort("localhost", strconv.Itoa(int(port))))
}

// Ready returns an error if clients cannot connect. The port is opened when the member has found a majority.
func (s *Server) Ready(ctx context.Context) error {
	if err := s.answers(ctx); err != nil {
		return err
	}
	connection, err := connect(ctx, s.config.Port)
	if err != nil {
		return fmt.Errorf("the member is starting, or has no majority: %w", err)
	}
	return connection.Close()
}

// answerLimit is the time in which the virtual machine must answer.
const answerLimit = 2 * time.Second

// answers returns an error if the virtual machine of the server does not answer, which needs no majority.
func (s *Server) answers(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	connection, err := connect(ctx, settings.DistributionPort)
	if err != nil {
		return err
	}
	defer connection.Close()
	if deadline, ok := ctx.Deadline(); ok {
		if err := connection.SetDeadline(deadline); err != nil {
			return err
		}
	}
	// It ends the connection, because this is no handshake.
	if _, err := connection.Write([]byte{0, 1, '-'}); err != nil {
		return err
	}
	if _, err = connection.Read(make([]byte, 1)); errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// Sequence returns 1 if this copy is a member of the cluster, and 0 if it is not.
func (s *Server) Sequence(context.Context) (uint64, error) { return s.record().Sequence() }

// Status returns the state of the server.
func (s *Server) Status(ctx context.Context) (driver.Code, error) {
	return s.record().Status(ctx, s.running, s.answers)
}
