package redis

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"

	"github.com/stateful-operator/stateful-operator/agent/driver"
	"github.com/stateful-operator/stateful-operator/agent/files"
	"github.com/stateful-operator/stateful-operator/agent/processes"
)

// oldestMajor is the first version with functions.
const oldestMajor = 7

var versionText = regexp.MustCompile(`^(?:(Redis|Valkey) s|S)erver v=(\d+)\.`)

// program returns the path of the server in the image.
func (s *Server) program(ctx context.Context) (string, error) {
	for _, name := range servers {
		path, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		out, err := processes.Output(processes.Tool(ctx, path, "--version"))
		if err != nil {
			return "", err
		}
		match := versionText.FindStringSubmatch(out)
		if match == nil {
			return "", driver.Errorf(driver.NotConfigured, "%s --version prints %q", path, out)
		}
		if major, err := strconv.Atoi(match[2]); err != nil || major < oldestMajor {
			return "", driver.Errorf(driver.NotConfigured, "the image has version %s of %s, and the min version is %d", match[2], name, oldestMajor)
		}
		return path, nil
	}
	return "", driver.Errorf(driver.NotConfigured, "the image contains neither redis-server nor valkey-server in PATH")
}

// launch starts the server, and returns when it serves its data. If it does not, it is stopped again: a
// start takes effect before its command ends, or not at all.
func (s *Server) launch(ctx context.Context) error {
	err := s.begin(ctx)
	if err == nil {
		err = s.waitUntilServes(ctx)
	}
	return s.undoStart(err)
}

// undoStart kills the server after an error. It may have the data of its snapshot only, or is a copy of
// the primary, so it need not save.
func (s *Server) undoStart(err error) error { return driver.Undo(err, kill) }

// begin starts the server with additional arguments, without waiting for it.
func (s *Server) begin(ctx context.Context, args ...string) error {
	program, err := s.program(ctx)
	if err != nil {
		return err
	}
	if err := s.checkFolder(); err != nil {
		return err
	}
	if err := s.removeStale(); err != nil {
		return err
	}
	if err := s.writeConfiguration(); err != nil {
		return err
	}
	// The server resolves the name of the primary in its main thread.
	environment := []string{"RES_OPTIONS=timeout:1 attempts:2"}
	_, err = processes.Detach(s.log.Output(), environment, program, append([]string{s.Private.Path(configFile)}, args...)...)
	return err
}

// checkFolder returns an error if the folder has data that the server would not read.
func (s *Server) checkFolder() error {
	for _, name := range []string{"appendonlydir", "appendonly.aof"} {
		_, err := os.Lstat(s.data(name))
		if err == nil {
			return driver.Errorf(driver.NotInstalled, "%s is an append-only file, which is not supported: "+
				"make a snapshot of its data with another server, and remove it", s.data(name))
		}
		if !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}

// removeStale removes the files of a server that was killed: its process ID, which may belong to another
// process now, and unfinished snapshots, which would fill the volume. No server runs.
func (s *Server) removeStale() error {
	unfinished, _ := filepath.Glob(s.data("temp-*.rdb")) // the pattern is correct
	for _, path := range append(unfinished, s.Private.Path(pidFile), s.Private.Path(socket)) {
		if err := files.Remove(path); err != nil {
			return err
		}
	}
	return nil
}

// waitUntilServes returns when the server serves its data, which it reads first.
func (s *Server) waitUntilServes(ctx context.Context) error {
	client := s.local()
	defer client.Close()
	return driver.WaitUntil(ctx, servers.Running, func() error { return client.Ping(ctx).Err() })
}
