package galera

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strconv"

	"github.com/stateful-operator/stateful-operator/agent/driver"
	"github.com/stateful-operator/stateful-operator/agent/files"
	"github.com/stateful-operator/stateful-operator/agent/processes"
)

// Versions with the settings that the agent uses.
const oldestMajor, oldestMinor = 10, 6

var versionText = regexp.MustCompile(`Ver (\d+)\.(\d+)\..*-MariaDB`)

// program returns the path of the server in the image.
func (s *Server) program(ctx context.Context) (string, error) {
	path, err := driver.FindProgram(processName)
	if err != nil {
		return "", err
	}
	out, err := processes.Output(processes.Tool(ctx, path, "--no-defaults", "--version"))
	if err != nil {
		return "", err
	}
	match := versionText.FindStringSubmatch(out)
	if match == nil {
		return "", driver.Errorf(driver.NotConfigured, "%s --version prints %q", path, out)
	}
	major, _ := strconv.Atoi(match[1]) // digits
	minor, _ := strconv.Atoi(match[2])
	oldMinor := major == oldestMajor && minor < oldestMinor
	if major < oldestMajor || oldMinor {
		return "", driver.Errorf(driver.NotConfigured, "the image has MariaDB %s.%s, and the min version is %d.%d", match[1], match[2], oldestMajor, oldestMinor)
	}
	return path, nil
}

// begin starts the server in a cluster of a generation, without waiting for it.
func (s *Server) begin(ctx context.Context, g generation, p position, w weight, args ...string) error {
	program, err := s.program(ctx)
	if err != nil {
		return err
	}
	if err := s.clearTemporary(); err != nil {
		return err
	}
	if err := s.writeConfiguration(configFile, w); err != nil {
		return err
	}
	// A copy that was interrupted leaves them, and the process ID can be that of another process now.
	for _, name := range []string{copyingFile, scriptFile} {
		if err := files.Remove(s.data(name)); err != nil {
			return err
		}
	}
	args = append([]string{"--defaults-file=" + s.Private.Path(configFile), "--wsrep-cluster-name=" + g.String(), "--wsrep-start-position=" + p.String()}, args...)
	pid, err := processes.Detach(s.log.Output(), append(s.environment(), tag), program, args...)
	if err != nil {
		return err
	}
	return os.WriteFile(s.Private.Path(pidFile), []byte(strconv.Itoa(pid)), 0o600)
}

// undoStart kills the server after an error: a start takes effect before its command ends, or not at all.
func (s *Server) undoStart(err error) error { return driver.Undo(err, s.kill) }

// prepare returns the mark of a copy before a start. runs is true if it runs already.
func (s *Server) prepare(ctx context.Context) (m mark, runs bool, err error) {
	m, err = s.mark()
	if err != nil {
		return m, false, err
	}
	running, err := s.running()
	if err != nil {
		return m, false, err
	}
	if !running {
		return m, false, s.checkForeign(m)
	}
	if alive, err := servers.Running(); err != nil || !alive {
		return m, false, errors.Join(errRemains, err)
	}
	found, err := s.local(ctx)
	if err == nil && found.serves() {
		return m, true, nil
	}
	return m, false, errors.Join(errors.New("the server runs, and does not serve"), err)
}

// Seed starts the first member: with its data, or with a new database if it has none. It begins a
// generation.
func (s *Server) Seed(ctx context.Context) error {
	m, runs, err := s.prepare(ctx)
	if err != nil || runs {
		return err
	}
	p := nowhere
	if m.hasData() {
		if p, err = s.position(ctx, m); err != nil {
			return err
		}
		if !p.known() && !m.isNew() {
			return driver.Errorf(driver.NotInstalled, "this copy is not complete, and its cluster may have data: to create a new database without that data, delete the claim of %s", s.Name)
		}
	} else if err := s.create(ctx); err != nil {
		return err
	}
	if !m.Seed || m.Generation.Start != s.start {
		next, err := m.Generation.next(s.start, max(0, p.Number))
		if err != nil {
			return err
		}
		m = mark{State: stateMember, Cluster: m.Cluster, Generation: next, Seed: true}
		if err := s.setMark(m); err != nil {
			return err
		}
	}
	return s.undoStart(s.seed(ctx, m, p))
}

// create creates an empty database. All marks after it are those of a member.
func (s *Server) create(ctx context.Context) error {
	if err := s.setMark(mark{State: stateCreating}); err != nil {
		return err
	}
	if err := s.discard(); err != nil {
		return err
	}
	tool, err := driver.FindProgram("mariadb-install-db")
	if err != nil {
		return err
	}
	if err := s.clearTemporary(); err != nil {
		return err
	}
	if _, err := provider(); err != nil { // before there is a database that cannot be started
		return err
	}
	if _, err := s.Private.Replace(createFile, []byte(s.configuration(nil))); err != nil {
		return err
	}
	cmd := processes.Tool(ctx, tool, "--defaults-file="+s.Private.Path(createFile), "--auth-root-authentication-method=normal", "--skip-test-db", "--skip-name-resolve", "--force") // names need not be known
	cmd.Env = append(cmd.Env, s.environment()...)
	if _, err := processes.Output(cmd); err != nil {
		return err
	}
	return files.SyncAll(s.config.DataDir)
}

// discard removes the data of the copy. The mark must be that of a copy without data.
func (s *Server) discard() error { return files.RemoveFolder(s.folder()) }

// seed starts the server as the first member, and returns when it serves.
func (s *Server) seed(ctx context.Context, m mark, p position) error {
	if err := s.allowSeed(p); err != nil {
		return err
	}
	if err := s.writeInit(m.isNew()); err != nil {
		return err
	}
	if err := s.begin(ctx, m.Generation, p, allWeight, "--wsrep-cluster-address=gcomm://", "--wsrep-new-cluster"); err != nil {
		return err
	}
	return s.awaitService(ctx, p, func(context.Context) error { return nil })
}

// settle records the generation of a member that serves, and lets it count for a majority.
func (s *Server) settle(ctx context.Context, db *sql.DB, found view) error {
	m, err := s.mark()
	if err != nil {
		return err
	}
	seed := m.Seed && m.Generation == found.generation
	if want := (mark{State: stateMember, Cluster: found.id, Generation: found.generation, Seed: seed}); m != want {
		if err := s.setMark(want); err != nil {
			return err
		}
	}
	if found.counts {
		return nil
	}
	if _, err := db.ExecContext(ctx, "set global wsrep_provider_options = ?", allWeight.String()); err != nil {
		return fmt.Errorf("count the member for a majority: %w", err)
	}
	return nil
}

// awaitService returns when the server serves, and its generation is on record. Its cluster must have the
// history of a position, if that is known. It ends with the error of a function that it calls repeatedly.
func (s *Server) awaitService(ctx context.Context, p position, giveUp func(context.Context) error) error {
	db, err := s.own()
	if err != nil {
		return err
	}
	defer db.Close()
	var found view
	alive := func() (bool, error) {
		if err := giveUp(ctx); err != nil {
			return false, err
		}
		return servers.Running()
	}
	err = driver.WaitUntil(ctx, alive, func() (err error) {
		if found, err = inspect(ctx, db); err == nil && !found.serves() {
			err = fmt.Errorf("the member is %s", found.local)
		}
		return err
	})
	if err != nil {
		return err
	}
	if p.known() && found.id != p.Cluster {
		return fmt.Errorf("the server has begun cluster %s, and its data belongs to %s", found.id, p.Cluster)
	}
	return s.settle(ctx, db, found)
}
