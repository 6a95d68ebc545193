package rabbitmq

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"time"

	"github.com/stateful-operator/stateful-operator/agent/driver"
	"github.com/stateful-operator/stateful-operator/agent/files"
	"github.com/stateful-operator/stateful-operator/agent/membership"
	"github.com/stateful-operator/stateful-operator/agent/processes"
)

// serveLimit is the time for which a start waits until clients can connect. A set runs one start at a time, and
// if the others lose their majority meanwhile, the next start is needed.
const serveLimit = 45 * time.Second

// hangLimit is the time in which a server that waits must answer.
const hangLimit = 10 * time.Second

// begin starts the server, and returns when its virtual machine answers.
func (s *Server) begin(ctx context.Context, from access) error {
	if err := s.writeFiles(from); err != nil {
		return err
	}
	program, err := s.program(ctx)
	if err != nil {
		return err
	}
	if err := s.awaitName(ctx); err != nil {
		return err
	}
	if err := startPortMapper(ctx); err != nil {
		return err
	}
	if err := ignoreVariables(); err != nil {
		return err
	}
	pid, err := processes.Detach(s.log.Output(), s.serverEnvironment(), program)
	if err != nil {
		return err
	}
	if err := os.WriteFile(s.Private.Path(pidFile), []byte(strconv.Itoa(pid)), 0o600); err != nil {
		return s.undoStart(err)
	}
	return s.undoStart(s.awaitAnswer(ctx))
}

// awaitAnswer waits until the virtual machine of the server answers.
func (s *Server) awaitAnswer(ctx context.Context) error {
	return driver.WaitUntil(ctx, s.running, func() error { return s.answers(ctx) })
}

// awaitName waits until the name of this member resolves, which takes some seconds in a new pod.
func (s *Server) awaitName(ctx context.Context) error {
	for {
		_, err := net.DefaultResolver.LookupHost(ctx, s.host())
		if err == nil {
			return nil
		}
		if !driver.Pause(ctx) {
			return fmt.Errorf("resolve the name of this member: %w", err)
		}
	}
}

// startPortMapper starts epmd, if it does not run. The server and the tools would start it otherwise, and it
// would end with them.
func startPortMapper(ctx context.Context) error {
	path, err := driver.FindProgram("epmd")
	if err != nil {
		return err
	}
	return processes.Run(processes.Tool(ctx, path, "-daemon"))
}

// undoStart kills the server after an error: a start takes effect before its command ends, or not at all.
func (s *Server) undoStart(err error) error { return driver.Undo(err, s.kill) }

// awaitService waits until clients can connect to the server.
func (s *Server) awaitService(ctx context.Context) error {
	return driver.WaitUntil(ctx, s.running, func() error { return s.Ready(ctx) })
}

// launch starts the server of a member, while others have a majority. It returns when clients can connect, or
// when the server waits for other members nevertheless.
func (s *Server) launch(ctx context.Context) error {
	if err := s.begin(ctx, allClients); err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, serveLimit)
	defer cancel()
	err := s.awaitService(limited)
	if limited.Err() != nil && ctx.Err() == nil {
		s.log.Printf("the server waits for the other members: %v", err)
		limited, cancel := context.WithTimeout(ctx, hangLimit)
		defer cancel()
		err = s.awaitAnswer(limited)
	}
	return s.undoStart(err)
}

// prepare returns the mark of a copy that is to be started. runs is true if it runs as a member already.
func (s *Server) prepare(ctx context.Context) (m membership.Mark, runs bool, err error) {
	if err := endTools(); err != nil {
		return m, false, err
	}
	m, runs, err = s.record().Prepare(s.running, func() error {
		ctx, cancel := context.WithTimeout(ctx, hangLimit)
		defer cancel()
		return s.awaitAnswer(ctx)
	})
	isOther := m.Member != "" && m.Member != s.node()
	if err == nil && !runs && isOther {
		err = driver.Errorf(driver.NotInstalled, "%s has data of %s, and this member is %s: to discard the data, delete the claim of %s",
			s.folder(), m.Member, s.node(), s.Name)
	}
	return m, runs, err
}

// Seed starts the first member: with its data, or as a new cluster if it has none. It does not wait for
// clients, because the member may need others for a majority.
func (s *Server) Seed(ctx context.Context) error {
	m, runs, err := s.prepare(ctx)
	switch {
	case err != nil, runs:
		return err
	case m.IsMember():
		return s.begin(ctx, allClients)
	}
	if err := s.record().CheckCreate(m, s.Name); err != nil {
		return err
	}
	return s.create(ctx)
}

// create creates a new cluster of this member. Until that is on record, only this pod reaches the server.
func (s *Server) create(ctx context.Context) error {
	if err := s.record().Write(membership.Mark{State: membership.Creating}); err != nil {
		return err
	}
	id := make([]byte, 16)
	if _, err := rand.Read(id); err != nil {
		return err
	}
	if err := s.beginEmpty(ctx); err != nil {
		return err
	}
	_, err := s.run(ctx, s.node(), "stop_app")
	if err == nil {
		err = s.complete(ctx, hex.EncodeToString(id))
	}
	return s.undoStart(err)
}

// beginEmpty starts a server without data, which only this pod reaches. It returns when the server has
// created its files.
func (s *Server) beginEmpty(ctx context.Context) error {
	if err := s.discard(); err != nil {
		return err
	}
	if err := s.begin(ctx, onlyThisPod); err != nil {
		return err
	}
	return s.undoStart(s.awaitService(ctx))
}

// complete records that the copy of a server is one of a member, and lets it serve clients. Its application is
// stopped. A restart of the application reads the files again, and takes less time than one of the virtual
// machine.
func (s *Server) complete(ctx context.Context, cluster string) error {
	if err := s.recordMember(cluster); err != nil {
		return err
	}
	if err := s.writeFiles(allClients); err != nil {
		return err
	}
	if _, err := s.run(ctx, s.node(), "start_app"); err != nil {
		return err
	}
	return s.awaitService(ctx)
}

// recordMember records that the copy is one of a member.
func (s *Server) recordMember(cluster string) error {
	if found, err := s.hasData(); err != nil || !found {
		return errors.Join(errors.New("the server has not written its data"), err)
	}
	// RabbitMQ does not sync all of its files, such as that of the feature flags, and does not start with an empty
	// one.
	if err := files.SyncAll(s.data()); err != nil {
		return err
	}
	return s.record().Write(membership.Mark{State: membership.Member, Cluster: cluster, Member: s.node()})
}
