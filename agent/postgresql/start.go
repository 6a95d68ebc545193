package postgresql

import (
	"context"
	"errors"
	"os"
	"strings"

	"github.com/stateful-operator/stateful-operator/agent/driver"
	"github.com/stateful-operator/stateful-operator/agent/files"
	"github.com/stateful-operator/stateful-operator/agent/postgresql/wal"
	"github.com/stateful-operator/stateful-operator/agent/processes"
)

// launch starts the server, and returns when the server accepts connections. If it does not, it is
// stopped again: a start takes effect before its command ends, or not at all.
func (s *Server) launch(ctx context.Context, as role) error {
	err := s.begin(ctx, as)
	if err == nil {
		err = s.waitUntilAnswers(ctx)
	}
	return s.undoStart(err)
}

// undoStart stops the server after an error.
func (s *Server) undoStart(err error) error {
	return driver.Undo(err, func() error { return s.end(fastAfterFailure) })
}

// begin starts the server without waiting for it.
func (s *Server) begin(ctx context.Context, as role) error {
	running, err := servers.Running()
	if err != nil {
		return err
	}
	if running {
		return errors.New("a server is running already")
	}
	major, err := s.version()
	if err != nil {
		return err
	}
	programs, err := s.installed(ctx, major)
	if err != nil {
		return err
	}
	var control *wal.Control
	if as == asStandby {
		found, err := s.control(ctx, programs)
		if err != nil {
			return err
		}
		control = &found
	}
	if err := s.removeStale(); err != nil {
		return err
	}
	if err := s.setSignal(as); err != nil {
		return err
	}
	if err := s.writeConfiguration(as, control); err != nil {
		return err
	}
	// The server gets the environment of the container, which archive commands may need.
	_, err = processes.Detach(s.log.Output(), []string{"HOME=" + string(s.Private)}, programs.path("postgres"), "-D", s.config.DataDir)
	return err
}

// version returns the version of the data, also of a copy with a mark.
func (s *Server) version() (string, error) {
	text, err := os.ReadFile(s.data(versionFile))
	return strings.TrimSpace(string(text)), err
}

// removeStale removes the files of a server that was killed. Their process ID may belong to another
// process now, which would prevent the start. No server runs in this container, and no other container
// uses the volume.
func (s *Server) removeStale() error {
	socket := s.Private.Path(".s.PGSQL." + s.port())
	for _, path := range []string{s.data(pidFile), socket, socket + ".lock"} {
		if err := files.Remove(path); err != nil {
			return err
		}
	}
	return nil
}

// waitUntilAnswers returns when the server accepts connections. Recovery may need minutes before.
func (s *Server) waitUntilAnswers(ctx context.Context) error {
	return driver.WaitUntil(ctx, servers.Running, func() error {
		_, err := s.inRecovery(ctx)
		return err
	})
}
